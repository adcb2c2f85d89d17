#!/usr/bin/env bash
# Federated training as users start it: what they see, what it leaves behind, and what they hear of mistakes.
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fedavg() { "$bin/fedrun" --no-prefix -np "$1" "$bin/fedavg" "${@:2}"; }
small=(--dataset synthetic --model lr --client-num-in-total 20 --client-num-per-round 8 --comm-round 4 --epochs 1
  --batch-size 10 --client-optimizer sgd --lr 0.1)

# The lines of a run, with FedML's spelling of flags too.
output=$(fedavg 2 "${small[@]}" --frequency_of_the_test=2 --run_dir "$work/first")
echo "$output"
[[ $(grep -c '^Round \[./4\], local loss: ' <<<"$output") == 4 ]]
[[ $(grep -c 'Test/Acc: 0\.' <<<"$output") == 2 ]]
grep -E '^4 rounds: .* s training, .* s communicating, .* s evaluating; best Test/Acc [0-9.]+ %$' <<<"$output" >/dev/null

python3 - "$work/first" <<'CHECK'
import json, sys
rounds = [json.loads(line) for line in open(sys.argv[1] + "/rounds.jsonl")]
assert [r["round"] for r in rounds] == [0, 1, 2, 3], rounds
assert all(len(r["clients"]) == 8 and r["dropped"] == [] for r in rounds), rounds
assert rounds[1]["test_accuracy"] > 0 and rounds[2]["test_accuracy"] is None, rounds
assert all(r["train_seconds"] > 0 and r["communicate_seconds"] > 0 for r in rounds), rounds
assert rounds[3]["train_loss"] < rounds[1]["train_loss"], rounds
config = json.load(open(sys.argv[1] + "/config.json"))
assert config["flags"]["batch-size"] == "10" and config["flags"]["mu"] == "0.1", config
assert len(config["partition_hash"]) == 16, config
partition = json.load(open(sys.argv[1] + "/partition.json"))
weights = open(sys.argv[1] + "/model.safetensors", "rb").read()
header = json.loads(weights[8:8 + int.from_bytes(weights[:8], "little")])
assert sorted(tensor["shape"] for tensor in header.values()) == [[10], [10, 60]], header
assert len(partition) == 20 and all(partition.values()), "each client has samples"
CHECK

# The events for TensorBoard: the steps of each tag, in one file for each start of the program.
cat >"$work/events.py" <<'EVENTS'
import glob, struct
def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at
def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = (8, at) if key & 7 == 1 else (4, at) if key & 7 == 5 else varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value
def events(run):  # a list for each file: (step, {tag: value})
    files = []
    for path in sorted(glob.glob(run + "/events.out.tfevents.*")):
        data, found = open(path, "rb").read(), []
        while data:
            size = struct.unpack("<Q", data[:8])[0]
            event, data = dict(fields(data[12:12 + size])), data[16 + size:]
            if 5 in event:
                values = [dict(fields(value)) for _, value in fields(event[5])]
                found.append((event[2], {v[1].decode(): struct.unpack("<f", v[2])[0] for v in values}))
        files.append(found)
    return files
EVENTS
PYTHONPATH=$work python3 - "$work/first" <<'CHECK'
import json, sys
from events import events
rounds = [json.loads(line) for line in open(sys.argv[1] + "/rounds.jsonl")]
(found,) = events(sys.argv[1])
assert [step for step, _ in found] == [0, 1, 2, 3], found
tested = {"Train/Acc", "Train/Loss", "Test/Acc", "Test/Loss"}
always = {"Round/LocalLoss", "Seconds/Training", "Seconds/Communicating", "Seconds/Evaluating"}
for step, values in found:
    assert set(values) == (always | tested if step % 2 == 1 else always), found
assert abs(found[3][1]["Test/Acc"] - rounds[3]["test_accuracy"]) < 1e-6, (found, rounds)
assert abs(found[2][1]["Seconds/Training"] - rounds[2]["train_seconds"]) < 1e-6, (found, rounds)
CHECK

# --deterministic: the same clients, losses and accuracies on any number of ranks.
for ranks in 1 2 3; do
  fedavg "$ranks" "${small[@]}" --deterministic --run-dir "$work/ranks$ranks" >/dev/null
done
python3 - "$work" <<'CHECK'
import json, sys
def losses(ranks):
    return [(r["clients"], r["local_loss"], round(r["test_accuracy"], 9)) for r in
            (json.loads(line) for line in open(f"{sys.argv[1]}/ranks{ranks}/rounds.jsonl"))]
assert losses(1) == losses(2) == losses(3), "results depend on the number of ranks"
CHECK

# A run that goes on from a checkpoint ends with the same numbers as one that was never interrupted.
fedavg 2 "${small[@]}" --deterministic --comm-round 2 --checkpoint-every 1 --run-dir "$work/resumed" >/dev/null
fedavg 3 "${small[@]}" --deterministic --resume --run-dir "$work/resumed" >"$work/resumed.out"
grep -F 'going on after round 2' "$work/resumed.out" >/dev/null
grep '^2 rounds: ' "$work/resumed.out" >/dev/null
PYTHONPATH=$work python3 - "$work" <<'CHECK'
import json, sys
def losses(run):
    return [(r["round"], r["local_loss"], round(r["test_accuracy"], 9)) for r in
            (json.loads(line) for line in open(f"{sys.argv[1]}/{run}/rounds.jsonl"))]
assert losses("resumed") == losses("ranks1"), "a resumed run differs"
from events import events
assert [[step for step, _ in file] for file in events(sys.argv[1] + "/resumed")] == [[0, 1], [2, 3]]
CHECK

# Every algorithm runs and learns.
for algorithm in fedavg fedprox fedavgm fednova scaffold fedadagrad fedadam fedyogi; do
  server_lr=$([[ $algorithm == fedad* || $algorithm == fedyogi ]] && echo 0.1 || echo 1)
  line=$(fedavg 2 "${small[@]}" --comm-round 15 --algorithm $algorithm --server-lr "$server_lr" | tail -1)
  accuracy=${line##*Test/Acc } accuracy=${accuracy% %}
  awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy > 25) }' || { echo "FAILED: $algorithm reached $accuracy %"; exit 1; }
done

# Clients in groups that average among themselves first: the same on any number of ranks.
for ranks in 1 4; do
  fedavg "$ranks" "${small[@]}" --algorithm hierarchical --group-num 3 --deterministic --run-dir "$work/tree$ranks" |
    grep -F "$((ranks < 3 ? ranks : 3)) groups of ranks" >/dev/null
done
cmp "$work/tree1/model.safetensors" "$work/tree4/model.safetensors"

# Tables of clients.
output=$(fedavg 3 "${small[@]}" --client-table --run-dir "$work/table")
grep -E '^test_accuracy of 20 clients: worst 0.* \(client [0-9]+, [0-9]+ samples\), median .*, best ' <<<"$output" >/dev/null
[[ $(grep -c '^test_loss,' "$work/table/clients.csv") == 20 ]]

# A run that ended after its last checkpoint, and is resumed, has each round once.
fedavg 1 "${small[@]}" --comm-round 3 --checkpoint-every 2 --run-dir "$work/cut" >/dev/null
fedavg 1 "${small[@]}" --resume --run-dir "$work/cut" >/dev/null
[[ $(grep -o '"round":[0-9]' "$work/cut/rounds.jsonl" | tr '\n' ' ') == '"round":0 "round":1 "round":2 "round":3 ' ]]
fedavg 1 "${small[@]}" --resume --run-dir "$work/cut" --comm-round 2 | grep -F 'nothing to train: 2 rounds were done' >/dev/null

# A run that begins anew leaves nothing of the one before that a later --resume could take for its own.
fedavg 1 "${small[@]}" --comm-round 1 --run-dir "$work/cut" >/dev/null
[[ ! -e $work/cut/checkpoint ]]

# Switches that are off are off.
output=$(fedavg 1 "${small[@]}" --comm-round 2 --ci=0 --client-table=false --resume=false --deterministic=false)
grep -F 'Round [2/2]' <<<"$output" >/dev/null
[[ $output != *'test_accuracy of '* ]]

# Clients that diverge or are late are left out; with too few of the others the run ends, after the attempts it has.
expect_end() { # expect_end <text> <arguments of fedavg>
  local text=$1 output
  shift
  if output=$(timeout 60 "$bin/fedrun" --no-prefix -np 2 "$bin/fedavg" "${small[@]}" "$@" 2>&1); then
    echo "no error for $*" && return 1
  fi
  grep -F -- "$text" <<<"$output" >/dev/null || { echo "'$text' is not in: $output" && return 1; }
}
expect_end "round 0: 0 of 8 clients finished, where 1 are needed" --lr 1e40
expect_end " failed)" --lr 1e40 --groups 1
expect_end " diverged)" --lr 1e9 --deterministic
expect_end "clients were chosen, where 8 are needed" --sampling poisson --min-clients 8 --comm-round 100
expect_end " late)" --client-timeout 0.0001 --epochs 10000
expect_end "it is repeated with other clients" --lr 1e40 --round-attempts 2

# A rank that is killed ends the run, with its signal, and nothing stays behind.
mine=(--comm-round 1000000 --seed $$) # tells this run's ranks from those of others
"$bin/fedrun" -np 2 "$bin/fedavg" "${small[@]}" "${mine[@]}" >"$work/killed" 2>&1 &
for _ in {1..100}; do
  sleep 0.1
  ! grep -q 'Round \[2/' "$work/killed" || break
done
kill -9 "$(pgrep -f "^$bin/fedavg .*${mine[*]}" | head -n 1)"
code=0
wait $! || code=$?
[[ $code == 137 ]]
grep -F 'was ended by signal 9 (Killed)' "$work/killed" >/dev/null
! pgrep -f "^$bin/fedavg .*${mine[*]}"

# Groups of ranks, a partition from a file, and the check of a set-up.
fedavg 4 "${small[@]}" --groups 2 --comm-round 1 | grep -F '2 groups of ranks' >/dev/null
fedavg 3 "${small[@]}" --groups 0,2/1 --comm-round 1 | grep -F '2 groups of ranks' >/dev/null
fedavg 2 --dataset digits --model cnn --client-num-in-total 10 --ci --groups host --buffers local | grep -F 'Round [1/1]' >/dev/null
digits=(--dataset digits --model lr --client-num-in-total 10 --client-optimizer sgd --lr 0.03)
fedavg 2 "${digits[@]}" --ci --run-dir "$work/digits" | grep -F 'Round [1/1]' >/dev/null
fedavg 1 "${digits[@]}" --ci --partition-method hetero-fix --partition-file "$work/digits/partition.json" \
  --run-dir "$work/again" >/dev/null
cmp "$work/digits/partition.json" "$work/again/partition.json"

# CINIC-10: class by class a colour of its own, grey or with a palette too, so that even lr learns it.
python3 - "$work/cinic" <<'IMAGES'
import os, struct, sys, zlib
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
def png(kind, pixel, palette=b""):
    rows = (b"\0" + pixel * 32) * 32
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, kind, 0, 0, 0)) + palette
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
names = "airplane automobile bird cat deer dog frog horse ship truck".split()
for split, count in ("train", 12), ("test", 3):
    for label, name in enumerate(names):
        os.makedirs(f"{sys.argv[1]}/{split}/{name}")
        for i in range(count):
            rgb = bytes((25 * label, 25 * (label * 3 % 10), 200 + i))
            image = [lambda: png(2, rgb), lambda: png(6, rgb + b"\x80"),
                     lambda: png(3, b"\0", chunk(b"PLTE", rgb))][i % 3]()
            open(f"{sys.argv[1]}/{split}/{name}/{i:03}.png", "wb").write(image)
IMAGES
cinic=(--dataset cinic10 --data-dir "$work/cinic" --model lr --partition-method homo --client-num-in-total 4
  --client-optimizer sgd --lr 0.03)
output=$(fedavg 2 "${cinic[@]}" --comm-round 3)
grep -F 'fedavg on CINIC-10: 4 clients, 4 a round, 120 training and 30 test samples' <<<"$output" >/dev/null
grep -E 'best Test/Acc ([3-9]|10)[0-9]' <<<"$output" >/dev/null

expect_error() { # expect_error <text> <arguments of fedavg>
  local text=$1 output
  shift
  if output=$(fedavg 2 "$@" 2>&1); then
    echo "no error for $*"
    return 1
  fi
  [[ $(grep -cF -- "$text" <<<"$output") == 1 ]] || { echo "'$text' not exactly once in: $output" && return 1; }
}
expect_error "data_batch_3.bin: missing" --data-dir "$work"
expect_error "train-images-idx3-ubyte: missing" --dataset mnist --data-dir "$work/nothing-here"
head -c 60 "$work/cinic/train/bird/001.png" >"$work/cinic/train/bird/002.png"
expect_error "train/bird/002.png is a damaged PNG file" "${cinic[@]}"
expect_error "test/truck/*.png: missing" --dataset cinic10 --data-dir "$work"
expect_error "fed_cifar100_test.h5: missing" --dataset fed_cifar100 --data-dir "$work"
expect_error "fed_emnist_train.h5: missing" --dataset fed_emnist --data-dir "$work"
expect_error "nor TFF's fed_emnist_train.h5" --dataset femnist --data-dir "$work"
expect_error "'imagenet' is not one of mnist" --dataset imagenet
expect_error "'fedsgd' is not one of fedavg" --algorithm fedsgd
expect_error "model cnn takes samples of 1 × 28 × 28, not of 60" --dataset synthetic --model cnn
expect_error "30 of 20 clients cannot train in a round" "${small[@]}" --client-num-per-round 30
expect_error "--algorithm scaffold needs --client-optimizer sgd" --algorithm scaffold
expect_error "--momentum needs --client-optimizer sgd" "${small[@]}" --client-optimizer adam --momentum 0.9
expect_error "is of a run with seeds 0 and 0, not with seeds 7 and 7" "${small[@]}" --resume --seed 7 \
  --run-dir "$work/resumed"
expect_error "--resume and --checkpoint-every need --run-dir" "${small[@]}" --resume
expect_error "'x' is not a whole number" "${small[@]}" --groups 0,x/1
expect_error "--client-timeout must not be negative" "${small[@]}" --client-timeout -1
expect_error "rank 1 is in no rank group" "${small[@]}" --groups 0-0
expect_error "fedrun --gpu-mapping FILE" "${small[@]}" --gpu-mapping-file gpus.yaml
expect_error "are not for --algorithm hierarchical" "${small[@]}" --algorithm hierarchical --min-clients 2
expect_error "20 clients cannot form 30 groups" "${small[@]}" --algorithm hierarchical --group-num 30
expect_error "comes with its clients" "${small[@]}" --partition-method homo
