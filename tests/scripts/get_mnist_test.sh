#!/usr/bin/env bash
# scripts/get_mnist.sh against a web server on this machine: good, corrupt, stalling and dead mirrors.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=expect.sh
source "$here/expect.sh"
export no_proxy='*'

files=(train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz)
dead=http://127.0.0.1:1 # nobody listens on port 1

start_server() {
  mkdir -p "$sandbox/web/good" "$sandbox/web/corrupt" "$sandbox/web/empty"
  local name
  for name in "${files[@]}"; do
    echo "the bytes of $name" >"$sandbox/web/good/$name"
    echo "other bytes" >"$sandbox/web/corrupt/$name"
  done
  (cd "$sandbox/web/good" && md5sum "${files[@]}") >"$sandbox/md5s"
  # Below /stalling/, a file starts and never ends.
  python3 - "$sandbox/web" >"$sandbox/port" 2>"$sandbox/requests" <<'EOF' &
import functools, http.server, sys, time
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if not self.path.startswith("/stalling/"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.wfile.write(b"x" * 1000)
        time.sleep(600)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=sys.argv[1]))
print(server.server_port, flush=True)
server.serve_forever()
EOF
  background+=($!)
  eventually test -s "$sandbox/port"
  web=http://127.0.0.1:$(cat "$sandbox/port")
}

get_mnist() { MNIST_MIRRORS=$1 MNIST_MD5S=$sandbox/md5s run bash "$here/../../scripts/get_mnist.sh" "$2"; }
request_count() { grep -c GET "$sandbox/requests" || true; }
expect_all_files_right() {
  expect_equal "$(ls -A "$1")" "$(printf '%s\n' "${files[@]}" | sort)"
  diff -r "$1" "$sandbox/web/good" || complain "files in $1 differ from those of the server"
}

needs_one_directory() {
  local script=$here/../../scripts/get_mnist.sh
  run bash "$script"
  expect_status 2
  expect_output 'Usage: scripts/get_mnist.sh DIR'
  run bash "$script" one two
  expect_status 2
  run bash "$script" --help
  expect_status 0
}

downloads_once() {
  local requests
  get_mnist "$web/good" "$sandbox/new/dir"
  expect_status 0
  expect_all_files_right "$sandbox/new/dir"
  requests=$(request_count)
  expect_equal "$requests" 4
  get_mnist "$web/good" "$sandbox/new/dir"
  expect_status 0
  expect_equal "$(request_count)" "$requests"
}

replaces_a_wrong_file() {
  get_mnist "$web/good" "$sandbox/wrong"
  echo rubbish >"$sandbox/wrong/${files[2]}"
  get_mnist "$web/good" "$sandbox/wrong"
  expect_status 0
  expect_all_files_right "$sandbox/wrong"
}

goes_on_to_the_next_mirror() {
  get_mnist "$web/corrupt $web/empty $dead $web/good/" "$sandbox/fallback"
  expect_status 0
  expect_all_files_right "$sandbox/fallback"
}

says_what_each_mirror_said() {
  get_mnist "$dead $web/empty $web/corrupt" "$sandbox/none"
  expect_status 1
  expect_output "no mirror gave ${files[0]}"
  expect_output "$dead/${files[0]}: curl: (7)"
  expect_output "$web/empty/${files[0]}: curl: (22)"
  expect_output "$web/corrupt/${files[0]}: its MD5 is $(echo "other bytes" | md5sum | cut -c 1-32)"
  expect_equal "$(ls -A "$sandbox/none")" ''
}

interrupted_leaves_nothing() {
  local pid code=0
  MNIST_MIRRORS=$web/stalling MNIST_MD5S=$sandbox/md5s bash "$here/../../scripts/get_mnist.sh" "$sandbox/cut" \
    >/dev/null 2>&1 &
  pid=$!
  background+=("$pid")
  eventually grep -q stalling "$sandbox/requests"
  expect_equal "$(find "$sandbox/cut" -mindepth 1 -maxdepth 1 | wc -l)" 1
  kill -TERM "$pid"
  wait "$pid" || code=$?
  expect_equal "$code" 143
  expect_equal "$(ls -A "$sandbox/cut")" ''
}

refuses_what_it_cannot_write() {
  get_mnist "$web/good" /proc # read-only even for root
  expect_status 1
  expect_output 'cannot write in /proc'
  touch "$sandbox/file"
  get_mnist "$web/good" "$sandbox/file/below"
  expect_status 1
  expect_output "cannot make the directory $sandbox/file/below"
}

refuses_names_outside_the_directory() {
  echo "$(echo x | md5sum | cut -c 1-32)  ../escaped" >"$sandbox/bad_md5s"
  MNIST_MD5S=$sandbox/bad_md5s MNIST_MIRRORS=$web/good run bash "$here/../../scripts/get_mnist.sh" "$sandbox/names"
  expect_status 1
  expect_output "../escaped' is not an MD5 and a plain file name"
}

start_server
for check in needs_one_directory downloads_once replaces_a_wrong_file goes_on_to_the_next_mirror \
  says_what_each_mirror_said interrupted_leaves_nothing refuses_what_it_cannot_write \
  refuses_names_outside_the_directory; do
  echo "$check"
  "$check"
done
