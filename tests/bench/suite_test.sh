#!/usr/bin/env bash
# `fedrun bench` leaves JSON, CSV and a page that say what was measured; it goes on after a failure, and stops when told to.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../scripts/expect.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/expect.sh"
bin=$1
has_torch=$2
cd "$sandbox"

cat >check.py <<'CHECK'
import csv, html.parser, json, os, sys
directory, sections = sys.argv[1], sys.argv[2:]
document = json.load(open(f"{directory}/results.json"))
rows = document["results"]
assert rows and {row["section"] for row in rows} == set(sections), ({row["section"] for row in rows}, sections)
assert document["machine"]["hosts"][0]["cores"] > 0 and document["machine"]["hosts"][0]["cpu"], document["machine"]
assert document["machine"]["software"]["fedrun"], document["machine"]
assert document["device"] == "cpu" and all(row["device"] == "cpu" for row in rows)
assert all(os.path.exists(f"{directory}/{step['log']}") for step in document["steps"])
assert len(rows) == sum(step["rows"] for step in document["steps"])
assert not [row for row in rows if row.get("wrong")], "wrong results"
table = list(csv.DictReader(open(f"{directory}/results.csv")))
assert len(table) == len(rows), (len(table), len(rows))
for line, row in zip(table, rows):
    assert line["section"] == row["section"] and all(field in line for field in row), (line, row)

class Page(html.parser.HTMLParser):
    plots, ids, open_tags = 0, set(), []
    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.plots += tag == "svg"
        self.ids.add(attributes.get("id"))
        if tag != "meta": self.open_tags.append(tag)
        assert tag not in ("script", "link", "img", "iframe"), tag
        for name in ("src", "href"):
            target = attributes.get(name, "")
            assert ":" not in target and not target.startswith("//"), target
            if target and not target.startswith("#"): assert os.path.exists(f"{directory}/{target}"), target
    def handle_startendtag(self, tag, attributes):
        assert tag in ("path", "rect", "circle"), tag
    def handle_endtag(self, tag):
        assert self.open_tags.pop() == tag, tag
text = open(f"{directory}/report.html").read()
page = Page()
page.feed(text)
assert not page.open_tags, page.open_tags
assert page.plots >= len(sections) and set(sections) <= page.ids, (page.plots, page.ids)
assert "no GPU was used" in text and "http" not in text
for skip in document["skipped"]: assert skip["what"] in text, skip
CHECK
# check_files <directory> <sections...>: the three files agree with each other.
check_files() { output+=$(python3 check.py "$@" 2>&1) || complain "the files in $1 are not as they must be"; }

# All of it.
sections=(collectives scaling)
if [[ $has_torch == ON ]]; then sections=(collectives training batch precision compression scaling fedavg); fi
SECONDS=0
run "$bin/fedrun" bench -np 2 --device cpu --quick --out all
expect_status 0
expect_output "all/report.html"
check_files all "${sections[@]}"
echo "fedrun bench --quick took $SECONDS s"

# It does not write over results.
run "$bin/fedrun" bench --quick --out all
expect_status 2
expect_output "there are results in it already"

# What would be done, without doing it.
run "$bin/fedrun" bench -np 4 --only collectives --dry-run --out none
expect_status 0
expect_output "fedrun -np 4 --device cpu"
expect_output "allreduce_bench --collective allreduce,reduce_scatter,allgather,broadcast,alltoall"
expect_output "# not measured: GPUs: "
[[ ! -e none ]] || complain "--dry-run has written something"

# Mistakes.
run "$bin/fedrun" bench --only everything
expect_status 2
expect_output "fedrun bench: --only: 'everything' is not one of collectives"
run "$bin/fedrun" bench -np 1 --only collectives --out nothing
expect_status 2
expect_output "nothing is left to measure:"
run "$bin/fedrun" bench --out "$bin/fedrun/below-a-file"
expect_status 2
expect_output "cannot be made"
run "$bin/fedrun" bench --help
expect_status 0
expect_output "--quick"

# A step that fails is named, and the others are measured all the same.
mkdir broken
for program in fedrun bench_suite; do cp "$bin/$program" broken; done
cat >broken/allreduce_bench <<PROGRAM
#!/bin/sh
case "\$*" in *alltoall*) echo "no luck" >&2; exit 3 ;; esac
exec "$bin/allreduce_bench" "\$@"
PROGRAM
chmod +x broken/allreduce_bench
run broken/fedrun bench -np 2 --device cpu --quick --only collectives,scaling --out partly
expect_status 1
expect_output "collectives: collectives by size on 2 ranks failed (exit code 3); see logs/01-collectives.txt"
grep -q "no luck" partly/logs/01-collectives.txt || complain "the log lacks what the program said"
check_files partly scaling
grep -q "collectives by size on 2 ranks failed" partly/report.html || complain "the page does not name the failure"

# A signal ends what runs, and leaves what has been measured.
cat >broken/allreduce_bench <<PROGRAM
#!/bin/sh
case "\$*" in *alltoall*) exec "$bin/allreduce_bench" "\$@" ;; esac
echo \$\$ >>"$sandbox/sleepers"
exec sleep 600
PROGRAM
broken/fedrun bench -np 2 --device cpu --quick --only collectives,scaling --out stopped >stopped.txt 2>&1 &
suite=$!
background+=("$suite")
all_asleep() { [[ -e sleepers && $(wc -l <sleepers) == 2 ]]; }
eventually all_asleep
kill -TERM "$suite" # a script's background jobs ignore SIGINT
status=0
wait "$suite" || status=$?
output=$(cat stopped.txt)
expect_status 143
expect_output "was stopped"
check_files stopped collectives
while read -r sleeper; do
  ! kill -0 "$sleeper" 2>/dev/null || complain "rank $sleeper is still there"
done <sleepers
