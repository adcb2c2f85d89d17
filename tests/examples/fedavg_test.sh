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
assert "test_accuracy" in rounds[1] and "test_accuracy" not in rounds[2], rounds
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
fedavg 3 "${small[@]}" --deterministic --resume --run-dir "$work/resumed" | grep -F 'going on after round 2' >/dev/null
python3 - "$work" <<'CHECK'
import json, sys
def losses(run):
    return [(r["round"], r["local_loss"], round(r["test_accuracy"], 9)) for r in
            (json.loads(line) for line in open(f"{sys.argv[1]}/{run}/rounds.jsonl"))]
assert losses("resumed") == losses("ranks1"), "a resumed run differs"
CHECK

# Every algorithm runs and learns.
for algorithm in fedavg fedprox fedavgm fednova scaffold fedadagrad fedadam fedyogi; do
  server_lr=$([[ $algorithm == fedad* || $algorithm == fedyogi ]] && echo 0.1 || echo 1)
  line=$(fedavg 2 "${small[@]}" --comm-round 15 --algorithm $algorithm --server-lr "$server_lr" | tail -1)
  accuracy=${line##*Test/Acc } accuracy=${accuracy% %}
  awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy > 25) }' || { echo "FAILED: $algorithm reached $accuracy %"; exit 1; }
done

# Groups of ranks, a partition from a file, and the check of a set-up.
fedavg 4 "${small[@]}" --groups 2 --comm-round 1 | grep -F '2 groups of ranks' >/dev/null
digits=(--dataset digits --model lr --client-num-in-total 10 --client-optimizer sgd --lr 0.03)
fedavg 2 "${digits[@]}" --ci --run-dir "$work/digits" | grep -F 'Round [1/1]' >/dev/null
fedavg 1 "${digits[@]}" --ci --partition-method hetero-fix --partition-file "$work/digits/partition.json" \
  --run-dir "$work/again" >/dev/null
cmp "$work/digits/partition.json" "$work/again/partition.json"

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
expect_error "test/truck/*.png: missing" --dataset cinic10 --data-dir "$work"
expect_error "fed_cifar100_test.h5: missing" --dataset fed_cifar100 --data-dir "$work"
expect_error "fed_emnist_train.h5: missing" --dataset fed_emnist --data-dir "$work"
expect_error "nor TFF's fed_emnist_train.h5" --dataset femnist --data-dir "$work"
expect_error "'imagenet' is not one of mnist" --dataset imagenet
expect_error "'fedsgd' is not one of fedavg" --algorithm fedsgd
expect_error "model cnn takes samples of 1 × 28 × 28, not of 60" --dataset synthetic --model cnn
expect_error "30 of 20 clients cannot train in a round" "${small[@]}" --client-num-per-round 30
expect_error "--algorithm scaffold needs --client-optimizer sgd" --algorithm scaffold
expect_error "--resume and --checkpoint-every need --run-dir" "${small[@]}" --resume
expect_error "comes with its clients" "${small[@]}" --partition-method homo
