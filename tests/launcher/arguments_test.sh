#!/bin/bash
# The program gets its arguments, variables and input exactly as they were given, and no shell ever reads them.
. "$(dirname "$0")/launched.sh"

cat > show.sh <<'PROGRAM'
#!/bin/bash
[ "$OMPI_COMM_WORLD_RANK" = 0 ] && printf '<%s>' "$@"
exit 0
PROGRAM
chmod +x show.sh

expect_arguments() {
  run -np 2 ./show.sh "$@"
  expect_equal "exit code" 0 "$code"
  expect_equal "arguments" "$(printf '<%s>' "$@")" "$(unprefixed out.txt)"
  expect_equal "errors" "" "$err"
}
expect_arguments --lr 0.1 -np 7 -H nowhere --help --
expect_arguments 'two words' "it's" '"quoted"' ';' '&&' '|' '$(touch executed)' '`touch executed`' '*' '' '\' 'ä'
expect_arguments $'new\nline' $'tab\t'
expect_arguments a : ./show.sh b
expect_arguments --mca pml nonsense -gmca x '$(touch executed)' --tune '`touch executed`' -am "it's" '\' '' '$HOME' '#'
[ ! -e executed ] || fail "something was executed"

# A stand-in for ssh shows that no argument gets into the command for another host, where a shell would read it.
cat > ssh_stand_in.sh <<'PROGRAM'
#!/bin/bash
printf '%s\n' "$*" >> ssh.txt
exit 1
PROGRAM
chmod +x ssh_stand_in.sh
for arguments in '--mca x $(MARK)' '-am $(MARK)' '--tune $(MARK)' '-x $(MARK)' ': $(MARK)'; do
  OMPI_MCA_plm_rsh_agent=$work/ssh_stand_in.sh run -H nowhere.invalid:2 -x 'MARKED=$(MARK)' ./show.sh $arguments
  expect_contains "ssh is called" "nowhere.invalid" "$(cat ssh.txt)"
  ! grep -q 'MARK)' ssh.txt || fail "'$arguments' reached ssh: $(cat ssh.txt)"
  rm -f ssh.txt
done

cat > variables.sh <<'PROGRAM'
#!/bin/bash
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && echo "<$A><$B><$FEDRUN_THREADS><$FEDRUN_LOG_LEVEL><$FEDRUN_TERMINAL_COLUMNS>"
exit 0
PROGRAM
chmod +x variables.sh
export B=from_here FEDRUN_LOG_LEVEL=info FEDRUN_THREADS=1
run -np 2 -x 'A=1;2 "$(touch executed)",=' -x B --threads 3 ./variables.sh
expect_contains "variables" '<1;2 "$(touch executed)",=><from_here><3><info><0>' "$out"

echo 'a line for rank 0' > input.txt
cat > read.sh <<'PROGRAM'
#!/bin/bash
[ "$OMPI_COMM_WORLD_RANK" = 0 ] && read -r line && echo "got: $line"
exit 0
PROGRAM
chmod +x read.sh
expect_contains "standard input" "got: a line for rank 0" "$("$fedrun" -np 2 ./read.sh < input.txt)"

run --dry-run -np 2 -x 'A=1 2' ./show.sh "it's" '$(touch executed)'
expect_equal "dry run" 0 "$code"
expect_contains "dry run" "A='1 2' " "$out"
expect_contains "dry run" "./show.sh 'it'\\''s' '\$(touch executed)'" "$out"
expect_contains "the printed command does the same" "<it's><\$(touch executed)>" "$(bash -c "$out" < /dev/null)"
[ ! -e executed ] || fail "something was executed"
finish
