#!/bin/sh
# txfs run: what a command in the sandbox cannot do, each row of the table in
# docs/run.md tried for real.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap python3 unshare setpriv
needs_fuse
alone
mkdir -p ws other "$HOME/.ssh" "$HOME/.aws" "$HOME/.config/gcloud" "$HOME/.docker"
echo old >ws/file
echo theirs >other/file
for credential in .ssh/id .aws/credentials .config/gcloud/token .docker/config.json; do
  echo credential-text >"$HOME/$credential"
done
ln -s "$HOME/.ssh/id" ws/link
txfs mount other >/dev/null
# Outside of everything that is private in the sandbox.
outside=$(mktemp -d /var/lib/txfs-test.XXXXXX 2>/dev/null || mktemp -d "$HOME/outside.XXXXXX")
tear_down() {
  # shellcheck disable=SC2086
  kill $service $neighbour 2>/dev/null || :
  txfs umount other >/dev/null 2>&1 || :
  rm -rf "$outside"
}
service='' neighbour=''
trap tear_down EXIT
echo outside >"$outside/file"
chmod 777 "$outside"
chmod 666 "$outside/file"
sleep 500 &
neighbour=$!
export outside neighbour
# A socket of a service, as docker's.
python3 -c '
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1]); s.listen(); os.write(3, b"x"); s.accept()' "$outside/service.sock" 3>ready &
service=$!
until [ -s ready ]; do :; done

cat >ws/probe <<'END'
# must_fail WHAT COMMAND...
must_fail() {
  what=$1
  shift
  if "$@" >/dev/null 2>&1; then echo "POSSIBLE: $what"; fi
}
write() { echo x >>"$1"; }
no_credential() { cat "$1" 2>/dev/null | grep -q credential-text; }
must_fail "write /etc" write /etc/txfs-test
must_fail "write /usr" write /usr/txfs-test
must_fail "write a file of others" write "$outside/file"
must_fail "make a file elsewhere" write "$outside/new"
for credential in .ssh/id .aws/credentials .config/gcloud/token .docker/config.json; do
  for root in "" /proc/1/root /proc/self/root /proc/self/cwd/../../.. /proc/2/root; do
    must_fail "read $root ~/$credential" no_credential "$root$HOME/$credential"
  done
done
cat "$HOME/.docker/config.json" || echo "a hidden file cannot be read as an empty one"
must_fail "write a hidden file" write "$HOME/.docker/config.json"
must_fail "remove a hidden file" rm -f "$HOME/.docker/config.json"
must_fail "read a credential through a link" no_credential link
must_fail "link a credential" ln "$HOME/.ssh/id" stolen
must_fail "read a descriptor of the caller" sh -c 'grep -q . <&9'
must_fail "see the state of txfs" sh -c '[ -n "$(ls -A "$XDG_STATE_HOME/txfs")" ]'
must_fail "reach a daemon" sh -c 'ls /run/txfs/*.sock /run/user/*/txfs/* /tmp/txfs-"$(id -u)"/* "$XDG_STATE_HOME"/txfs/run/* 2>/dev/null | grep .'
must_fail "make a user namespace" unshare --user true
must_fail "make a mount namespace" unshare --mount true
must_fail "trace process 1" python3 -c 'import ctypes; exit(ctypes.CDLL(None).ptrace(0x4206, 1, 0, 0) != 0)'
must_fail "mount" mount -t tmpfs none /mnt
must_fail "uncover what is hidden" umount "$HOME/.ssh"
must_fail "uncover the base" umount "$PWD"
must_fail "move the mount of the workspace" mv "$PWD" "$PWD.moved"
must_fail "signal a process outside" kill -0 "$neighbour"
must_fail "see a process outside" grep -q . "/proc/$neighbour/comm"
must_fail "see docker" test -e /run/docker.sock
must_fail "see D-Bus" test -e /run/dbus/system_bus_socket
must_fail "see systemd" test -e /run/systemd/private
must_fail "gain privileges" grep -q 'NoNewPrivs:.*0' /proc/self/status
must_fail "use the kernel's keyrings" python3 -c '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
exit(libc.syscall(250, 0, -3, 0) < 0)'
must_fail "write to the cgroups" sh -c 'for f in $(find /sys/fs/cgroup -name cgroup.procs 2>/dev/null | head -3); do echo $$ >"$f" && exit 0; done; exit 1'
must_fail "write to the kernel" sh -c 'echo 1 >/proc/sys/kernel/panic'
must_fail "see block devices" sh -c 'ls /dev/vd* /dev/sd* /dev/nvme* /dev/fuse 2>/dev/null | grep .'
must_fail "use cron" sh -c 'for d in /var/spool/cron/crontabs /etc/cron.d; do touch "$d/txfs-test" && exit 0; done; exit 1'
must_fail "reach another session of txfs" sh -c 'echo x >>"$OTHER/file"'
echo done >probed
END

OTHER=$(realpath other) txfs -C ws run --env XDG_STATE_HOME --env OTHER -- sh probe \
  >found 2>err 9<"$HOME/.ssh/id" || fail "the probe failed: $(cat err)"
equal "" "$(cat found)" "what was possible"
equal "done" "$(cat ws/probed)" "the end of the probe"
equal theirs "$(cat other/file)" "a file of another session"
equal outside "$(cat "$outside/file")" "a file outside"
kill $service $neighbour

# Without a network there is no loopback service of the machine, and no abstract socket.
python3 -c '
import os, socket
s = socket.socket(socket.AF_UNIX)
s.bind("\0txfs-test-abstract"); s.listen(); os.write(3, b"x"); s.accept()' 3>ready2 &
service=$!
until [ -s ready2 ]; do :; done
connect='import socket; socket.socket(socket.AF_UNIX).connect("\0txfs-test-abstract")'
if txfs -C ws run --network none -- python3 -c "$connect" 2>/dev/null; then
  fail "an abstract socket was reached without a network"
fi
kill $service 2>/dev/null || :

# The terminal: what is injected would be typed into the caller's shell.
txfs -C ws run -- true 2>/dev/null
python3 - "$TXFS" <<'END' >tty.out || fail "in a terminal: $(cat tty.out)"
import os, pty, sys
code = "import fcntl, termios\ntry:\n fcntl.ioctl(0, termios.TIOCSTI, b'x')\n print('injected')\nexcept OSError as e:\n print('refused', e.errno)"
def read(fd):
    data = os.read(fd, 4096)
    read.all += data
    return data
read.all = b""
status = pty.spawn([sys.argv[1], "-C", "ws", "run", "--", "python3", "-c", code], read)
sys.exit(0 if b"refused 1" in read.all and status == 0 else 1)
END

# A command that handles an interrupt goes on; one that does not ends by it.
python3 - "$TXFS" <<'END' >tty.out 2>&1 || fail "in a terminal: $(cat tty.out)"
import os, pty, sys, signal
def session(script, key, own_input=True, ignores=False):
    pid, fd = pty.fork()
    if pid == 0:
        if not own_input:
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        if ignores:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.execv(sys.argv[1], [sys.argv[1], "-C", "ws", "run", "--", "sh", "-c", script])
    data = b""
    sent = False
    while True:
        try:
            piece = os.read(fd, 4096)
        except OSError:
            break
        if not piece:
            break
        data += piece
        if b"ready" in data and not sent:
            os.write(fd, key)
            sent = True
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), data
code, data = session("trap 'echo GOT' INT; echo ready; while ! sleep 1; do :; done; echo survived", b"\x03")
print(code, data)
assert code == 0 and b"GOT" in data and b"survived" in data
# Also if the terminal is not its input.
code, data = session("trap '' INT; echo ready; sleep 1; echo survived", b"\x03", own_input=False)
print(code, data)
assert code == 0 and b"survived" in data
code, data = session("echo torn >file; echo ready; exec sleep 100", b"\x03", own_input=False)
print(code, data)
assert code == 130 and b"rolled back" in data
code, data = session("echo ready; sleep 1; echo survived", b"\x03", own_input=False, ignores=True)
print(code, data)
assert code == 0 and b"survived" in data
code, data = session("echo torn >file; echo ready; exec sleep 100", b"\x03")
print(code, data)
assert code == 130 and b"rolled back" in data
END
equal old "$(cat ws/file)" "content after an interrupt"
