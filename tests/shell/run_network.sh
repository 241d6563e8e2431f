#!/bin/sh
# txfs run --network=NAMES: the command reaches these hosts through a proxy, and
# nothing else; nothing of it outlives the run. As root and as another user.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap tinyproxy python3 setpriv unshare pgrep
needs_fuse
needs_root
alone
mknod -m 666 "$TMPDIR/fuse" c 10 229 2>/dev/null || skip "no device nodes here"
mount --bind "$TMPDIR/fuse" /dev/fuse
# A name for each case; all lead to the server here.
cat >hosts <<'END'
127.0.0.1 localhost api.example.test a.below.test b.a.below.test below.test
127.0.0.1 notbelow.test evil.test apixexample.test profile.test
END
mount --bind hosts /etc/hosts
mkdir -p served /run/systemd/resolve
echo served-text >served/text
head -c 5000000 /dev/urandom >served/large
touch /run/systemd/resolve/socket
python3 -u -m http.server --bind 127.0.0.1 --directory served 0 >server.out 2>&1 &
server=$!
python3 -c '
import os, socket
s = socket.socket(socket.AF_UNIX)
s.bind("\0txfs-test-network"); s.listen(); os.write(3, b"x"); s.accept()' 3>ready &
service=$!
upstream=''
trap 'kill $server $service $upstream 2>/dev/null || :' EXIT
until grep -q "port [0-9]" server.out 2>/dev/null; do :; done
PORT=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' server.out | head -n 1)
export PORT
# A proxy of the caller's own.
python3 -c '
import http.server, os
class Upstream(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"upstream " + self.path.encode())
server = http.server.HTTPServer(("127.0.0.1", 0), Upstream)
os.write(3, b"%d" % server.server_port)
server.serve_forever()' 2>/dev/null 3>upstream.port &
upstream=$!
until [ -s ready ] && [ -s upstream.port ]; do :; done

# get HOST [PATH]: prints what is there, or fails with the status.
cat >get.py <<'END'
import os, sys, urllib.error, urllib.request
host, path = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "text"
try:
    with urllib.request.urlopen(f"http://{host}:{os.environ['PORT']}/{path}", timeout=60) as reply:
        sys.stdout.buffer.write(reply.read())
except urllib.error.HTTPError as error:
    sys.exit(f"status {error.code}")
END
# The same through a tunnel, as for TLS.
cat >tunnel.py <<'END'
import http.client, os, sys, urllib.parse
host, path = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "text"
proxy = urllib.parse.urlsplit(os.environ["https_proxy"])
connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=60)
connection.set_tunnel(host, int(os.environ["PORT"]))
connection.request("GET", f"/{path}")
sys.stdout.buffer.write(connection.getresponse().read())
END
cat >direct.py <<'END'
import os, socket
port = int(os.environ["PORT"])
def reached(what, connect):
    try:
        connect()
        print("REACHED", what)
    except OSError:
        pass
reached("the server", lambda: socket.create_connection(("127.0.0.1", port), 5))
reached("another address", lambda: socket.create_connection(("192.0.2.1", 80), 5))
reached("a resolver", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 53)))
reached("an abstract socket", lambda: socket.socket(socket.AF_UNIX).connect("\0txfs-test-network"))
reached("a name without the proxy", lambda: socket.create_connection(("api.example.test", port), 5))
print([name for _, name in socket.if_nameindex()])
END
# await WHAT COMMAND...: until the command succeeds.
await() {
  what=$1
  shift
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 3000 ] || fail "$what did not happen"
    sleep 0.01
  done
}
# tree PID...: these processes and all below them.
tree() {
  for pid in "$@"; do
    echo "$pid"
    # shellcheck disable=SC2046
    tree $(pgrep -P "$pid" || :)
  done
}
all_gone() {
  for pid in $processes; do
    # A zombie whose parent is not interested is gone, too.
    case $(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) in
      '' | Z*) ;;
      *) return 1 ;;
    esac
  done
}
no_namespace_is_left() {
  ! find /proc -maxdepth 3 -path '/proc/[0-9]*/ns/net' -printf '%l\n' 2>/dev/null | grep -qxF "$namespace"
}
parent() { ps -o ppid= -p "$1" | tr -d ' '; }
# start: a run that has written `torn` and goes on.
start() {
  $as setsid "$PWD/program" -C "$ws" run --network=api.example.test -- \
    sh -c "echo torn >torn; exec sleep 600.$$" >out 2>err &
  job=$!
  await "$as: the start of the command" pgrep -f "^sleep 600.$$"
  command=$(pgrep -f "^sleep 600.$$")
  namespace=$(readlink "/proc/$command/ns/net")
  # Above pid 1 and bwrap.
  supervisor=$(parent "$(parent "$(parent "$command")")")
  processes=$(tree "$supervisor")
  [ "$(echo "$processes" | wc -l)" -gt 8 ] || fail "$as: processes of a run: $processes"
}
ended() {
  await "$as: the end of all after that of $1" all_gone
  await "$as: the end of the network namespace after that of $1" no_namespace_is_left
  [ ! -e "$ws/torn" ] || fail "$as: a change is left after the end of $1"
}
uid=64987
cp "$TXFS" program
chmod 755 program .
cp /etc/passwd passwd
echo "txfs-network:x:$uid:$uid::/:/bin/sh" >>passwd
mount --bind passwd /etc/passwd
mkdir roots user user/home user/state
trap 'kill $server $service $upstream 2>/dev/null || :; rm -rf "/tmp/txfs-$uid"' EXIT

path=$PATH
# run OPTION... -- COMMAND...: stdout in `out`, stderr in `err`, report in `json`.
run() {
  status=0
  $as env PATH="$path" "$PWD/program" -C "$ws" run --json "$ws.json" "$@" >out 2>err || status=$?
}
as_root() { "$@"; }
as_user() {
  setpriv --reuid=$uid --regid=$uid --clear-groups \
    env HOME="$PWD/user/home" XDG_STATE_HOME="$PWD/user/state" "$@"
}
# works EXPECTED OPTION... -- COMMAND...
works() {
  expected=$1
  shift
  run "$@"
  equal 0 $status "$as: exit code of $*: $(cat err)"
  equal "$expected" "$(cat out)" "$as: output of $*"
}
# fails EXPECTED OPTION... -- COMMAND...: EXPECTED is in what it says.
fails() {
  expected=$1
  shift
  run "$@"
  [ $status -ne 0 ] || fail "$as: $* succeeded: $(cat out)"
  contains "$(cat err)" "$expected"
}

for as in $(some as_root as_user); do
  ws=$PWD/$as
  mkdir "$ws"
  cp get.py tunnel.py direct.py program "$ws"
  [ $as = as_root ] || chown -R $uid:$uid "$ws" user
  touch "$ws.json"
  chmod 666 "$ws.json"

  # What is named is reached, also with capital letters and the dot of the root.
  works served-text --network=api.example.test -- python3 get.py api.example.test
  grep -q refused err && fail "refused: $(cat err)"
  equal "[]" "$(json 'd["network_refused"]' <"$ws.json")" "refused names"
  works served-text --network=other.test,API.Example.test. -- python3 get.py Api.EXAMPLE.test
  works served-text --network='*.below.test' -- python3 get.py b.a.below.test
  works served-text --network=api.example.test -- python3 tunnel.py api.example.test
  works served-text --network=localhost -- python3 get.py localhost
  for way in get tunnel; do
    run --network='*.below.test' -- python3 $way.py a.below.test large
    cmp -s out served/large || fail "$as: a large file by $way: $(cat err)"
  done

  # What is not, is refused, and said once.
  works "" --network='*.below.test,api.example.test' -- sh -c '
    for host in below.test notbelow.test evil.test Evil.test apixexample.test 127.0.0.1.; do
      python3 get.py $host 2>&1 | grep -vx "status 403"
      python3 tunnel.py $host 2>&1 | grep -v "403 Filtered" | grep -v "^  \|^Traceback"
    done
    true'
  equal 1 "$(grep -c refused err)" "lines about refused names: $(cat err)"
  contains "$(cat err)" "note: --network has refused "
  contains "$(cat err)" "evil.test (4 times)"
  equal "127.0.0.1:2 apixexample.test:2 below.test:2 evil.test:4 notbelow.test:2" \
    "$(json '" ".join(n["name"] + ":" + str(n["count"]) for n in d["network_refused"])' <"$ws.json")" \
    "refused names in the report"
  # Requests that are no such thing.
  works "400
403
403" --network=api.example.test -- python3 -c '
import socket
for request in (b"CONNECT", b"GET / HTTP/1.1\r\nHost: evil.test", b"CONNECT @evil.test:80 HTTP/1.1"):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(request + b"\r\n\r\n")
    print(s.makefile().readline().split()[1])'

  # There is no other way out.
  works "['lo']" --network=api.example.test -- python3 direct.py
  works "" --network=api.example.test -- sh -c "ls /run/systemd 2>/dev/null || :"
  works "" --network=none -- sh -c "ls /run/systemd 2>/dev/null || :"
  works resolve --network=host -- sh -c "ls /run/systemd 2>/dev/null || :"
  works refused --network=api.example.test --nested -- sh -c '
    unshare --user --map-root-user python3 -c "
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack(\"16sH14x\", b\"lo\", 0))" 2>/dev/null || echo refused'

  # The variables, and the network of validators, profiles and limits.
  (
    http_proxy=http://127.0.0.1:$(cat upstream.port)
    export http_proxy no_proxy=.below.test
    works "upstream http://api.example.test:$PORT/text" --network='api.example.test,*.below.test' -- \
      python3 get.py api.example.test
    works served-text --network='api.example.test,*.below.test' -- python3 get.py a.below.test
    export http_proxy=socks5://127.0.0.1:1
    fails "cannot go through the proxy" --network=api.example.test -- touch made
  )
  (
    export http_proxy=http://elsewhere.test:1 all_proxy=socks5://elsewhere.test:1
    works "HTTPS_PROXY=http://127.0.0.1:3128
HTTP_PROXY=http://127.0.0.1:3128
NO_PROXY=localhost,127.0.0.1,::1
http_proxy=http://127.0.0.1:3128
https_proxy=http://127.0.0.1:3128
no_proxy=localhost,127.0.0.1,::1" --network=api.example.test -- sh -c 'env | grep -i _proxy= | LC_ALL=C sort'
  )
  works served-text --network=api.example.test --validate 'python3 get.py api.example.test >text' \
    --validate 'test "$(python3 get.py evil.test 2>&1)" = "status 403"' -- echo served-text
  contains "$(cat err)" "refused evil.test"
  works served-text --network=api.example.test --memory 1G --pids 50 -- python3 get.py api.example.test
  config=$($as sh -c 'echo "$HOME/.config/txfs/profiles"')
  $as mkdir -p "$config"
  echo 'network = ["profile.test"]' | $as tee "$config/mine.toml" >/dev/null
  works served-text --network=profile --profile mine -- python3 get.py profile.test
  works "served-text
served-text" --network=api.example.test --profile mine -- sh -c \
    'python3 get.py profile.test; python3 get.py api.example.test'
  fails "status 403" --network=profile --profile mine -- python3 get.py api.example.test
  fails "no profile names a host" --network=profile -- true
  # A run in the run has its network.
  works served-text --network=api.example.test -- ./program run -- python3 get.py api.example.test

  # A proxy or relay that dies takes the run along.
  for part in "-f bwrap.*tinyproxy" "-x txfs-relay"; do
    start
    # shellcheck disable=SC2086
    victim=$(pgrep -P "$supervisor" $part)
    kill -9 "$victim"
    status=0
    wait $job || status=$?
    equal 125 $status "$as: exit code after the end of $part: $(cat err)"
    contains "$(cat err)" "the proxy for --network has died"
    contains "$(cat err)" "rolled back"
    ended "$part"
  done
  # So does the supervisor.
  start
  kill -9 "$supervisor"
  ended "the supervisor"

  # What does not begin.
  for names in '' ',' 'a,,b' 'a b' 'a;b' -a a- 'a..b' .a '*' '*.' '*.*' '*a.test' 'a.*' '.*' 'a^' 'a\.b' \
    'a:80' http://a.test 1.2.3 1.2.3.4.5 256.1.1.1 0x7f000001 127.0.0.01 '*.1.2.3' '[::1]' ::1 \
    'bücher.test' 'host,a.test' 'a.test,none' "a
b" "$(printf '%064d' 0).test" "$(printf 'a.%.0s' $(seq 130))test"; do
    run --network="$names" -- touch made
    equal 125 $status "$as: exit code of --network=$names"
    grep -q "^error: " err && grep -q "^hint: " err || fail "$as: said for $names: $(cat err)"
    [ ! -e "$ws/made" ] || fail "$as: the command ran with --network=$names"
  done
  fails "does not go with --no-sandbox" --network=a.test --no-sandbox -- touch made
  mkdir -p "$as.bin"
  ln -sf "$(command -v bwrap)" "$(command -v fusermount3)" "$as.bin"
  path=$PWD/$as.bin
  fails "hint: install it: apt install tinyproxy-bin" --network=a.test -- touch made
  equal 125 $status "$as: exit code without tinyproxy"
  printf '#!/bin/sh\necho "it is broken" >&2\nexit 1\n' >"$as.bin/tinyproxy"
  chmod 755 "$as.bin/tinyproxy"
  fails "does not start: it is broken" --network=a.test -- touch made
  equal 125 $status "$as: exit code of a broken tinyproxy"
  path=$PATH
  [ ! -e "$ws/made" ] || fail "$as: the command ran without a proxy"
done
