#!/bin/bash
# Flags from a config file, the command line before them, and GPU mappings, from the file to the ranks.
. "$(dirname "$0")/launched.sh"
examples=$(realpath "$(dirname "$0")/../..")

cat > show.sh <<'PROGRAM'
#!/bin/bash
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && echo "<$A><$B><$FEDRUN_THREADS><$FEDRUN_LOG_LEVEL><$FEDRUN_GPU_OF_RANK>"
exit 0
PROGRAM
chmod +x show.sh
cat > run.yaml <<'YAML'
np: 2
threads: 3
logging: {level: INFO}
env:
  A: "x;$(touch executed)"
  B: from the file
YAML
FEDRUN_THREADS=7 run --config run.yaml ./show.sh
expect_equal "a config file" 0 "$code"
expect_contains "it wins over the environment" '<x;$(touch executed)><from the file><3><info><>' "$out"
run --config run.yaml --threads 4 -x B=here ./show.sh
expect_contains "the command line wins" '<x;$(touch executed)><here><4><info><>' "$out"
[ ! -e executed ] || fail "something was executed"

echo 'thread: 3' >> run.yaml
run --config run.yaml ./show.sh
expect_equal "a key that is not there" 2 "$code"
expect_contains "a key that is not there" "fedrun: run.yaml:7: there is no flag 'thread': did you mean threads?" "$err"

run --dry-run --hostfile "$examples/hostfile.example" --gpu-mapping "$examples/gpu_mapping.example.yaml" ./show.sh
expect_equal "the examples" 0 "$code"
expect_contains "the examples" "FEDRUN_GPU_OF_RANK=0,0,1,1,0,1,2,3,1,1,0 " "$out"
expect_contains "the examples" "    8  192.0.2.7                   0  cuda:1" "$err"
expect_contains "the examples" "   10  node3.example.org           0  cuda:0" "$err"
run --dry-run -np 3 -H node1:4 --gpu-mapping "$examples/gpu_mapping.example.yaml" --gpu-mapping-key one_each ./show.sh
expect_equal "a mapping for other hosts" 2 "$code"
expect_contains "a mapping for other hosts" "one_each: no rank runs on node2; the run has node1" "$err"

echo 'mapping_default: {localhost: [0, 1, 1]}' > gpus.yaml
run -np 2 --gpu-mapping gpus.yaml ./show.sh
expect_contains "the mapping reaches the ranks" '<1,2>' "$out"
FEDRUN_GPU_OF_RANK=5 run -np 2 ./show.sh
expect_contains "a mapping of another run does not" '<>' "$out"
run -np 3 --gpu-mapping gpus.yaml ./show.sh
expect_equal "a mapping that does not fit" 2 "$code"
expect_contains "a mapping that does not fit" \
  "gpus.yaml:1: mapping_default: localhost has places for 2 ranks ([0, 1, 1]), but 3 run there" "$err"
finish
