#!/bin/sh
# txfs run: what a command in the sandbox cannot do, each row of the table in
# docs/run.md tried for real.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap python3 unshare setpriv
needs_fuse
alone
# Outside of everything that is private in the sandbox, if that is possible.
outside=$(mktemp -d /var/lib/txfs-test.XXXXXX 2>/dev/null || mktemp -d "$TMPDIR/outside.XXXXXX")
agents=$(mktemp -d /tmp/ssh-XXXXXX)
other='' service='' neighbour=''
tear_down() {
  cd "$TMPDIR/work"
  # shellcheck disable=SC2086
  kill $service $neighbour 2>/dev/null || :
  [ -z "$other" ] || as txfs umount "$other" >/dev/null 2>&1 || :
  rm -rf "$outside" "$agents"
}
trap tear_down EXIT
trap 'exit 143' TERM INT
if [ "$(id -u)" -eq 0 ]; then
  # What is made there is gone with this namespace.
  mount -t tmpfs none /var/spool
  mkdir -p /var/spool/cron
  mkdir -m 1777 /var/spool/cron/crontabs /var/spool/cron/atjobs
fi
sleep 500 &
neighbour=$!
echo outside >"$outside/file"
chmod 777 "$outside"
chmod 666 "$outside/file"
export outside neighbour

cat >connect.py <<'END'
"""connect.py PATH...: prints to which of the sockets it can connect."""
import socket, sys
for path in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
        except OSError:
            continue
        print(path)
END
cat >listen.py <<'END'
"""listen.py CONTROL PATH...: sockets of services; CONTROL tells which of PATH were connected to."""
import os, select, socket, sys
def listen(path):
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o777)
    listener.listen(100)
    return listener
control = listen(sys.argv[1])
others = {listen(path): path for path in sys.argv[2:]}
seen = set()
os.write(3, b"x")
os.close(3)
while True:
    ready = select.select([control, *others], [], [])[0]
    for listener in ready:
        if listener is not control:
            listener.accept()[0].close()
            seen.add(others[listener])
    if control in ready:
        with control.accept()[0] as client:
            if client.recv(1):
                client.sendall("".join(path + "\n" for path in sorted(seen)).encode())
                seen.clear()
END
# connected: which sockets were connected to since it was asked last.
connected() {
  python3 -c '
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.sendall(b"?")
print(client.makefile().read(), end="")' "$outside/service.sock"
}

cat >probe <<'END'
# must_fail WHAT COMMAND...
must_fail() {
  what=$1
  shift
  if "$@" >/dev/null 2>&1; then echo "POSSIBLE: $what"; fi
}
has() { command -v "$1" >/dev/null; }
write() { echo x >>"$1"; }
no_credential() { cat "$1" 2>/dev/null | grep -q credential-text; }
must_fail "write /etc" write /etc/txfs-test
must_fail "write /usr" write /usr/txfs-test
must_fail "write a file of others" write "$outside/file"
must_fail "make a file elsewhere" write "$outside/new"
for owner in root third; do
  must_fail "write a file of another user" write "$outside/$owner"
  must_fail "give a file of another user away" chown "$(id -u)" "$outside/$owner"
  must_fail "open a file of another user to all" chmod 666 "$outside/$owner"
  must_fail "remove a file of another user" rm "$outside/$owner"
  [ "$(id -u)" -eq 0 ] || must_fail "read a file of another user" grep -q . "$outside/$owner"
done
if [ "$(id -u)" -ne 0 ]; then
  must_fail "become another user" setpriv --reuid=12345 --clear-groups true
  must_fail "read as root by a set-user-ID program" "$outside/cat" "$outside/root"
fi
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
must_fail "trace a process outside" python3 -c 'import ctypes, sys; exit(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0) != 0)' "$neighbour"
must_fail "see a file of others in /dev/shm" ls "/dev/shm/$MARK"
must_fail "see a file of others in /var/tmp" ls "/var/tmp/$MARK"
must_fail "see a file of others in /tmp" ls "/tmp/$MARK"
must_fail "reach shared memory of others" python3 -c 'import ctypes, os; exit(ctypes.CDLL(None).shmget(int(os.environ["KEY"]), 0, 0) < 0)'
for place in /dev/shm /var/tmp /tmp; do : >"$place/inside-$MARK"; done
must_fail "see a process outside" grep -q . "/proc/$neighbour/comm"
must_fail "gain privileges" grep -q 'NoNewPrivs:.*0' /proc/self/status
must_fail "use the kernel's keyrings" python3 -c '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
exit(libc.syscall(250, 0, -3, 0) < 0)'
must_fail "write to the cgroups" sh -c 'for f in $(find /sys/fs/cgroup -name cgroup.procs 2>/dev/null | head -3); do echo $$ >"$f" && exit 0; done; exit 1'
must_fail "write to the kernel" sh -c 'echo 1 >/proc/sys/kernel/panic'
must_fail "see block devices" sh -c 'ls /dev/vd* /dev/sd* /dev/nvme* /dev/fuse 2>/dev/null | grep .'
must_fail "use cron or at" sh -c 'for d in /var/spool/cron/crontabs /var/spool/cron/atjobs /etc/cron.d; do touch "$d/txfs-test" && exit 0; done; exit 1'
if has at; then must_fail "use at" sh -c 'echo true | at now'; fi
if has crontab; then must_fail "use crontab" sh -c 'echo "* * * * * true" | crontab -'; fi
must_fail "reach another session of txfs" sh -c 'echo x >>"$OTHER/file"'

# Services: by their sockets and by the programs that ask them.
for name in SSH_AUTH_SOCK DBUS_SESSION_BUS_ADDRESS DOCKER_HOST XDG_RUNTIME_DIR; do
  must_fail "see $name" sh -c '[ -n "$(printenv "$1")" ]' sh "$name"
done
python3 connect.py $SOCKETS | sed 's/^/POSSIBLE: connect to /'
DOCKER_HOST=unix:///run/docker.sock SSH_AUTH_SOCK=$AGENTS/agent.1
DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$(id -u)/bus XDG_RUNTIME_DIR=/run/user/$(id -u)
export DOCKER_HOST SSH_AUTH_SOCK DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR
ask() { if has "$1"; then must_fail "use $*" timeout 20 "$@"; fi; }
ask systemd-run true
ask systemd-run --user true
ask busctl list
ask dbus-send --system --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.GetId
ask dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.GetId
ask docker ps
ask podman --url unix:///run/podman/podman.sock ps
ask ssh-add -l
ask sh -c 'gpg-connect-agent --no-autostart "GETINFO pid" /bye | grep OK'
# A socket elsewhere can be reached: the client above works here.
python3 connect.py "$outside/service.sock"
echo done >probed
END

# contained UID: what a command of that user can do.
contained() {
  uid=$1
  if [ "$uid" -eq "$(id -u)" ]; then
    as() { "$@"; }
  else
    as() { setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"; }
  fi
  mkdir "of-$uid"
  cd "of-$uid"
  HOME=$PWD/home XDG_STATE_HOME=$PWD/home/.local/state
  mkdir -p ws other "$XDG_STATE_HOME" "$HOME/.ssh" "$HOME/.aws" "$HOME/.config/gcloud" "$HOME/.docker"
  echo old >ws/file
  echo theirs >other/file
  for credential in .ssh/id .aws/credentials .config/gcloud/token .docker/config.json; do
    echo credential-text >"$HOME/$credential"
  done
  ln -s "$HOME/.ssh/id" ws/link
  cp ../probe ../connect.py ws
  [ "$uid" -eq "$(id -u)" ] || chown -R "$uid:$uid" .
  other=$(realpath other)
  as txfs mount other >/dev/null

  sockets="$agents/agent.1 $HOME/.ssh/agent/s.1 $HOME/.gnupg/S.gpg-agent $HOME/.gnupg/S.gpg-agent.ssh"
  if [ "$(id -u)" -eq 0 ]; then
    mkdir -p /run/user
    mkdir -m 700 "/run/user/$uid"
    chown "$uid:$uid" "/run/user/$uid"
    sockets="$sockets /run/docker.sock /run/podman/podman.sock /run/dbus/system_bus_socket /run/systemd/private
      /run/user/$uid/bus /run/user/$uid/systemd/private /run/user/$uid/podman/podman.sock
      /run/user/$uid/keyring/ssh /run/user/$uid/gnupg/S.gpg-agent /run/user/$uid/gnupg/S.gpg-agent.ssh"
  fi
  chmod 755 "$agents"
  # shellcheck disable=SC2086 # words
  python3 ../listen.py "$outside/service.sock" $sockets 3>ready &
  service=$!
  until [ -s ready ]; do kill -0 $service || fail "no services"; done
  # shellcheck disable=SC2086
  equal "$(printf '%s\n' $sockets)" "$(as python3 ws/connect.py $sockets)" "sockets that are reached outside"
  # shellcheck disable=SC2086
  equal "$(printf '%s\n' $sockets | LC_ALL=C sort)" "$(connected)" "sockets that were connected to"

  mark=txfs-mark-$$-$uid key=$((0x74000000 + $$))
  for place in /dev/shm /var/tmp /tmp; do as touch "$place/$mark"; done
  as python3 -c 'import ctypes, sys; exit(ctypes.CDLL(None).shmget(int(sys.argv[1]), 4096, 0o1600) < 0)' "$key" ||
    fail "no shared memory here"
  MARK=$mark KEY=$key SSH_AUTH_SOCK=$agents/agent.1 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$uid/bus \
    DOCKER_HOST=unix:///run/docker.sock OTHER=$other SOCKETS=$sockets AGENTS=$agents as txfs -C ws run \
    --env XDG_STATE_HOME --env MARK --env KEY --env OTHER --env SOCKETS --env AGENTS -- sh probe >"$TMPDIR/found" 2>"$TMPDIR/err" 9<"$HOME/.ssh/id" ||
    fail "the probe failed: $(cat "$TMPDIR/err")"
  case $outside in
    /var/lib/*) reached=$outside/service.sock ;;
    *) reached='' ;;
  esac
  equal "$reached" "$(cat "$TMPDIR/found")" "what was possible for user $uid"
  equal "done" "$(cat ws/probed)" "the end of the probe"
  for place in /dev/shm /var/tmp /tmp; do
    [ ! -e "$place/inside-$mark" ] || fail "a file of the sandbox is in $place"
    rm "$place/$mark"
  done
  as ipcrm -M "$key" || fail "the shared memory is gone"
  equal theirs "$(as cat other/file)" "a file of another session"
  equal outside "$(cat "$outside/file")" "a file outside"
  equal "" "$(connected)" "services that were asked"
  kill $service
  wait $service 2>/dev/null || :
  as txfs umount "$other" >/dev/null
  other=''
  rm -rf "$outside/service.sock" "${agents:?}"/*
  [ "$(id -u)" -ne 0 ] || find /run -type s ! -path '/run/txfs/*' -delete
  cd ..
}

for owner in root third; do
  echo "of $owner" >"$outside/$owner"
  chmod 600 "$outside/$owner"
done
home=$HOME state=$XDG_STATE_HOME
if [ "$(id -u)" -eq 0 ]; then
  chown 12345:12345 "$outside/third"
  contained 0
  if command -v fusermount3 >/dev/null && mknod -m 666 "$TMPDIR/fuse" c 10 229; then
    mount --bind "$TMPDIR/fuse" /dev/fuse
    install -m 755 "$TXFS" txfs
    PATH=$PWD:$PATH
    cp "$(command -v cat)" "$outside/cat"
    chmod 4755 "$outside/cat"
    equal "of root" "$(setpriv --reuid=65534 --regid=65534 --clear-groups "$outside/cat" "$outside/root")" \
      "what a set-user-ID program reads outside"
    contained 65534
  fi
else
  chmod 000 "$outside/root" "$outside/third"
  contained "$(id -u)"
fi
HOME=$home XDG_STATE_HOME=$state
mkdir ws
echo old >ws/file

# What stays possible: a hard link from before the run is the file outside.
echo outside >linked
ln linked ws/linked
txfs -C ws run -- sh -c 'cat linked; echo changed >linked' >out 2>err
equal "outside changed" "$(cat out linked | xargs)" "a hard link to a file outside"

# Without a network there is no loopback service of the machine, and no abstract socket.
abstract=txfs-test-abstract-$$
python3 -c '
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind("\0" + sys.argv[1]); s.listen(); os.write(3, b"x")
while True: s.accept()' $abstract 3>ready2 &
service=$!
until [ -s ready2 ]; do kill -0 $service || fail "no abstract socket"; done
connect="import socket; socket.socket(socket.AF_UNIX).connect('\0$abstract')"
txfs -C ws run -- python3 -c "$connect" 2>err || fail "no abstract socket with the machine's network: $(cat err)"
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
assert code == -signal.SIGINT and b"rolled back" in data
code, data = session("echo ready; sleep 1; echo survived", b"\x03", own_input=False, ignores=True)
print(code, data)
assert code == 0 and b"survived" in data
code, data = session("echo torn >file; echo ready; exec sleep 100", b"\x03")
print(code, data)
assert code == -signal.SIGINT and b"rolled back" in data
END
equal old "$(cat ws/file)" "content after an interrupt"
