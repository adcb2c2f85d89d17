#!/usr/bin/env bash
# The example of a task of one's own learns its line, on one rank and on several alike.
set -euo pipefail
bin=$1

alone=$("$bin/own_task")
echo "$alone"
grep -E '^y = (2\.9|3\.0)[0-9] x \+ -(0\.9|1\.0)[0-9], mean squared error 0\.0(09|10)[0-9]; worst at station' <<<"$alone" >/dev/null
[[ $("$bin/fedrun" --no-prefix -np 3 "$bin/own_task") == "$alone" ]]
