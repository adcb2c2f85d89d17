#!/bin/bash
# Several hosts, played by this machine: a stand-in for ssh runs the command here, with a bare environment.
. "$(dirname "$0")/launched.sh"

cat > ssh_stand_in.sh <<'PROGRAM'
#!/bin/bash
host=$1
shift
export TMPDIR=$PWD/tmp.$host  # daemons of different hosts do not share /tmp
mkdir -p "$TMPDIR"
# sshd, too, gives the words to a shell.
exec env -i HOME="$HOME" TMPDIR="$TMPDIR" PATH=/usr/bin:/bin bash -c "$*"
PROGRAM
cat > show.sh <<'PROGRAM'
#!/bin/bash
settings="<$A><$FEDRUN_THREADS><$FEDRUN_TERMINAL_COLUMNS><${PATH##*:}>"
echo "rank $OMPI_COMM_WORLD_RANK local $OMPI_COMM_WORLD_LOCAL_RANK $settings $*"
PROGRAM
chmod +x ./*.sh
export OMPI_MCA_plm_rsh_agent=$work/ssh_stand_in.sh
export PATH=$PATH:/the/users/own

run -H first.example.org:2,second:1 --threads 2 -x 'A=x;$(touch executed)' ./show.sh --mca a '$(touch executed)' : b
expect_equal "exit code" 0 "$code"
for rank in "0 local 0" "1 local 1" "2 local 0"; do
  expect_contains "rank $rank" \
    "rank $rank <x;\$(touch executed)><2><0></the/users/own> --mca a \$(touch executed) : b" "$out"
done
[ ! -e executed ] || fail "something was executed"

run -H first:1,second:2 ./rank.sh exit 2 5
expect_equal "exit code of a failing rank on another host" 5 "$code"
expect_contains "a failing rank on another host" "fedrun: rank 2 on $(hostname) exited with code 5 after " "$err"
expect_equal "lines about it" 1 "$(wc -l < err.txt)"
expect_no_rank_left "failing rank" 5

run -H first:1,second:1 ./nowhere
expect_equal "exit code of a program that other hosts do not have" 1 "$code"
expect_contains "a program that other hosts do not have" "./nowhere does not exist" "$err"

printf 'first slots=1\nsecond:2\n' > hosts.txt
run --hostfile hosts.txt ./show.sh
expect_equal "ranks of a host file" 3 "$(grep -c '^\[[0-2]\] rank ' out.txt)"
finish
