#!/bin/sh
# txfs run without the machine's network: families of sockets that network
# namespaces do not isolate are refused, in each way to make a socket.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap python3
needs_fuse
alone
mkdir ws
cd ws
cat >families.py <<'END'
import ctypes, errno, mmap, os, platform, socket, sys

families = []
for family in range(1, 64):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind).close()
        except OSError:
            continue
        families.append(family)
        break
libc = ctypes.CDLL(None, use_errno=True)
print("families", *families)
print("pair", libc.socketpair(40, 1, 0, (ctypes.c_int * 2)()) < 0 and ctypes.get_errno() == errno.EAFNOSUPPORT)
libc.syscall.argtypes = [ctypes.c_long] * 4
# The kernel reads the lower half of the number.
print("high", libc.syscall({"x86_64": 41}.get(platform.machine(), 198), 40 | 1 << 32, 1, 0) < 0)
print("io_uring", libc.syscall(425, 1, 0, 0) < 0 and ctypes.get_errno() == errno.ENOSYS)
# Not every kernel has the calls of 32-bit programs: there they end a process.
if platform.machine() == "x86_64" and (sys.argv[1:] == ["probe"] or os.path.exists("has_32_bit")):
    # The calls of 32-bit programs: mov eax, ebx, ecx, edx from rdi, rsi, rdx, rcx; int 0x80.
    code = bytes.fromhex("53 89 f8 89 f3 89 c8 89 d1 89 c2 89 f8 cd 80 5b c3".replace(" ", ""))
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    call = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int] * 4)(address)
    print("socket32", call(359, 40, 1, 0) < 0, call(359, 1, 1, 0) >= 0)
    map32 = libc.mmap
    map32.restype = ctypes.c_void_p
    low = map32(None, ctypes.c_size_t(4096), 3, 0x62, -1, ctypes.c_size_t(0))
    ctypes.memmove(low, (ctypes.c_uint32 * 3)(40, 1, 0), 12)
    print("socketcall", call(102, 1, low, 0) < 0)
    print("x32", libc.syscall(0x40000000 + 41, 40, 1, 0) < 0)
END
# Outside of a sandbox.
if python3 families.py probe >/dev/null 2>&1; then : >has_32_bit; fi
for network in none example.org; do
  [ "$network" = none ] || command -v tinyproxy >/dev/null || continue
  txfs run --network="$network" -- python3 families.py >"$TMPDIR/out" 2>"$TMPDIR/err" ||
    fail "network $network: $(cat "$TMPDIR/out" "$TMPDIR/err")"
  equal "families 1 2 10 16" "$(head -n 1 "$TMPDIR/out")" "families with --network=$network"
  ! grep -q False "$TMPDIR/out" || fail "with --network=$network: $(cat "$TMPDIR/out")"
done
# With the machine's network it is as outside.
vsock='import socket; socket.socket(40, 1)'
if python3 -c "$vsock" 2>/dev/null; then
  txfs run -- python3 -c "$vsock" 2>"$TMPDIR/err" || fail "no AF_VSOCK with the machine's network: $(cat "$TMPDIR/err")"
fi

# Sockets of services in the home are hidden, also where the home is not copied.
mkdir -p "$HOME/.docker/run" "$HOME/.colima/default"
set -- "$HOME/.docker/run/docker.sock" "$HOME/.colima/default/docker.sock" "$HOME/.bitwarden-ssh-agent.sock"
python3 -c '
import os, socket, sys
all = [socket.socket(socket.AF_UNIX) for _ in sys.argv[1:]]
for one, path in zip(all, sys.argv[1:]):
    one.bind(path)
    one.listen()
os.write(3, b"x")
all[0].accept()' "$@" 3>ready &
service=$!
trap 'kill $service 2>/dev/null || :' EXIT
until [ -s ready ]; do sleep 0.05; done
for home in cow ro rw; do
  equal "" "$(txfs run --home="$home" -- sh -c 'for path; do [ ! -S "$path" ] || echo "$path"; done' sh "$@" 2>/dev/null)" \
    "sockets with --home=$home"
done

# /run is empty but for what is shown; a socket there can be reached.
place=/run/txfs-test.$$
mkdir "$place" 2>/dev/null || exit 0
trap 'kill $service $server 2>/dev/null || :; rm -rf "$place"' EXIT
mkdir "$place/dir"
echo text >"$place/dir/file"
python3 -c '
import os, socket, sys
one = socket.socket(socket.AF_UNIX)
one.bind(sys.argv[1])
one.listen()
os.write(3, b"x")
while True:
    one.accept()[0].sendall(b"answer")' "$place/dir/socket" 3>listens &
server=$!
until [ -s listens ]; do sleep 0.05; done
ask='import socket, sys
one = socket.socket(socket.AF_UNIX)
one.connect(sys.argv[1])
print(one.recv(100).decode())'
equal "" "$(txfs run -- ls "$place" 2>/dev/null)" "what is not shown"
equal answer "$(txfs run --show "$place/dir/socket" -- python3 -c "$ask" "$place/dir/socket" 2>"$TMPDIR/err")" \
  "answer of a socket ($(cat "$TMPDIR/err"))"
equal "socket" "$(txfs run --show "$place/dir/socket" --show /run/nonexist -- ls "$place/dir" 2>/dev/null)" "what is shown"
equal text "$(txfs run --show "$place/dir" -- sh -c 'cat "$1/file"; ! touch "$1/file" 2>/dev/null' sh "$place/dir" 2>/dev/null)" \
  "a directory that is shown"
txfs run --show "$place/dir" --rw "$place/dir" -- sh -c 'echo new >"$1/file"' sh "$place/dir" 2>/dev/null
equal new "$(cat "$place/dir/file")" "a directory that is shown, and written"
for path in /run /run/txfs /run/txfs/run "/run/user/$(id -u)"; do
  refuses_with_hint 125 "--show $path has sockets of txfs in it" txfs run --show "$path" -- true
done
