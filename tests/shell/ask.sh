#!/bin/sh
# Rules that have somebody asked: the operation waits, others go on.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 setsid

mkdir -p ws/src ws/both mnt
for n in 1 2 3 4 5 6 7 8 9; do
  mkdir ws/d$n
  echo old >ws/d$n/keep
done
mkdir ws/dir
for name in dir/asked secret free; do echo "$name" >ws/$name; done
echo old >ws/both/keep
cat >policy.toml <<'END'
schema = 1

[[fs]]
id = "asked"
path = ["asked", "d?/keep", "new*", "both/"]
action = "ask"
reason = "somebody has to know"
suggest = "leave it as it is"
match = ["unlink asked"]

[[fs]]
id = "asked-too"
path = "both/keep"
action = "ask"
reason = "somebody else has to know"
suggest = "leave it"

[[fs]]
id = "secret"
path = "secret"
reason = "it is to stay"
suggest = "leave it"
END
equal "policy.toml: 3 rules, and their examples hold" "$(txfs policy check policy.toml)" check
txfs mount ws mnt --no-default-policy --policy policy.toml

# waiting: how many questions there are. await N: until there are so many.
waiting() { txfs -C mnt pending --json | json 'len(d)'; }
await() { until [ "$(waiting)" = "$1" ]; do :; done; }
number_of_it() { txfs -C mnt pending --json | json 'd[0]["id"]'; }
in_log() { grep -qF -- "$1" "$XDG_STATE_HOME"/txfs/log/*.log || fail "not in the log: $1"; }
last_denial() { txfs -C mnt log --denied | tail -3; }

# apart COMMAND...: in a session of its own, as an agent's is; `asker` is its
# process.
apart() {
  setsid "$@" &
  asker=$!
}
# ends STATUS
ends() {
  status=0
  wait "$asker" || status=$?
  equal "$1" "$status" "exit code of what waited"
}
# python CODE: fails with the name of the errno.
attempt() {
  apart python3 -c "
import errno, os, sys
try:
    $1
except OSError as e:
    open('outcome', 'w').write(errno.errorcode[e.errno])
    sys.exit(7)
open('outcome', 'w').write('ok')"
}

# Nothing has happened while it waits, and elsewhere work goes on. (In the same
# directory the kernel lets nothing change, nor look for what it does not know.)
equal "no operation waits for an answer" "$(txfs -C mnt pending)" "nothing waits"
attempt "os.unlink('mnt/dir/asked')"
await 1
text=$(txfs -C mnt pending)
contains "$text" "unlink  dir/asked  by asked"
contains "$text" "reason: somebody has to know"
contains "$text" "process $asker, uid $(id -u)"
echo more >mnt/src/file
txfs -C mnt approve "$(number_of_it)"
ends 0
[ ! -e mnt/dir/asked ] || fail "what was approved was not done"
equal 0 "$(waiting)" "questions left"
contains "$(txfs -C mnt log --op unlink)" "dir/asked  ok by asked"
refuses_with_hint 1 "no question 1 waits" txfs -C mnt approve 1
refuses_with_hint 2 "is not the number of a question" txfs -C mnt deny x

# No is a denial like any other.
attempt "os.chmod('mnt/d1/keep', 0o600)"
await 1
txfs -C mnt deny "$(number_of_it)"
ends 7
equal EPERM "$(cat outcome)" "errno of a denial"
contains "$(last_denial)" "chmod  d1/keep  EPERM by asked"
contains "$(last_denial)" "reason: somebody has to know"
in_log "chmod d1/keep refused by asked: the answer was no"
contains "$(last_denial)" "instead: leave it as it is"
contains "$(txfs -C mnt why d1/keep)" "by asked"

# Every rule that matches is asked about; nobody is about what is refused anyway.
attempt "os.truncate('mnt/both/keep', 0)"
for rule in asked asked-too; do
  await 1
  equal "$rule" "$(txfs -C mnt pending --json | json 'd[0]["rule"]')" "rule"
  txfs -C mnt approve "$(number_of_it)"
done
ends 0
equal 0 "$(stat -c %s mnt/both/keep)" "size of what was truncated"
attempt "os.rename('mnt/d1/keep', 'mnt/secret')"
ends 7
contains "$(last_denial)" "rename  d1/keep -> secret  EPERM by secret"

# A process is asked once about the same; another one is asked again.
attempt "
    f = os.open('mnt/d2/keep', os.O_WRONLY)
    for i in range(3): os.write(f, b'a')"
await 1
txfs -C mnt approve "$(number_of_it)"
ends 0
equal aaa "$(head -c 3 mnt/d2/keep)" "content"
attempt "os.truncate('mnt/d2/keep', 1)"
await 1
txfs -C mnt deny "$(number_of_it)"
ends 7

# Who asks cannot answer, nor who works in the mount.
mkfifo go answered
# shellcheck disable=SC2016 # for the other shell
apart sh -c 'rm -f mnt/d1/keep 2>/dev/null &
  read -r id <go
  txfs -C mnt approve "$id" 2>said
  : >answered
  wait'
await 1
number=$(number_of_it)
echo "$number" >go
: <answered
contains "$(cat said)" "the session that asks cannot answer"
refuses_with_hint 1 "a process in the mount" sh -c "cd mnt && txfs approve $number; exit"
# shellcheck disable=SC2016
refuses_with_hint 1 "a process in the mount" \
  sh -c 'cd mnt && sh -c "cd / && txfs -C \"$0\" approve \"$1\"; exit"; exit' "$PWD/mnt" "$number"
equal 1 "$(waiting)" "questions after answers that do not count"
txfs -C mnt deny "$number"
ends 0
[ -e mnt/d1/keep ] || fail "it answered itself"

# A signal that ends the process ends the wait.
apart rm -f mnt/free mnt/d1/keep
await 1
kill -TERM "$asker"
ends 143
equal 0 "$(waiting)" "questions after a signal"
[ -e mnt/d1/keep ] || fail "what was interrupted was done"

# One that it lives on with does not, nor is a second one missed; and no program
# is told that it should try again.
txfs -C mnt savepoint before
signalled() {
  apart python3 -c "
import ctypes, errno, os, signal
for number in (signal.SIGALRM, signal.SIGINT):
    signal.signal(number, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
c = ctypes.CDLL(None, use_errno=True)
done = c.unlink(b'mnt/d1/keep')
signal.setitimer(signal.ITIMER_REAL, 0)
open('outcome', 'w').write('ok' if done == 0 else errno.errorcode[ctypes.get_errno()])"
}
signalled
await 1
number=$(number_of_it)
for _ in 1 2 3 4 5 6 7 8; do equal "$number" "$(number_of_it)" "question under a timer"; done
kill -INT "$asker"
ends 0
equal EPERM "$(cat outcome)" "errno after SIGINT"
in_log "unlink d1/keep refused by asked: a signal came before an answer"
signalled
await 1
number=$(number_of_it)
for _ in 1 2 3 4 5 6 7 8; do equal "$number" "$(number_of_it)" "question under a timer"; done
kill -KILL "$asker"
ends 137
equal 0 "$(waiting)" "questions after SIGKILL"
[ -e mnt/d1/keep ] || fail "what was interrupted was done"
signalled
await 1
txfs -C mnt approve "$(number_of_it)"
ends 0
equal ok "$(cat outcome)" "errno after a yes"
txfs -C mnt rollback before

# Names cannot pretend to be anything else.
attempt "os.mkdir('mnt/dir/new\\n1\\x1b[2J')"
await 1
contains "$(txfs -C mnt pending)" 'new\n1\033[2J'
txfs -C mnt approve "$(number_of_it)"
ends 0

# Only so many wait; the others go on, and a reload ends all waits.
all=
for n in 1 2 3 4 5 6 7 8; do
  attempt "os.unlink('mnt/d$n/keep')"
  all="$all $asker"
done
await 8
attempt "os.unlink('mnt/d9/keep')"
ends 7
in_log "too many operations wait for an answer already"
echo x >mnt/src/other
txfs -C mnt policy reload >/dev/null
for asker in $all; do ends 7; done
in_log "the wait ended before an answer"

# So does what tells the kernel to forget: it needs locks that it has there.
echo changed >mnt/d1/other
attempt "os.unlink('mnt/d1/keep')"
await 1
timeout 60 txfs -C mnt discard >/dev/null
ends 7

# What was stored through a mapping does not wait when it is written back.
equal EPERM "$(timeout 60 python3 -c "
import errno, mmap
with open('mnt/dir/asked', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
    m[:1] = b'x'
    try:
        m.flush()
        print('ok')
    except OSError as e:
        print(errno.errorcode[e.errno])")" "a mapping"
contains "$(last_denial)" "write  dir/asked  EPERM by asked"

# Nobody answers: no.
{
  cat policy.toml
  printf '[ask]\ntimeout = 0.01\n'
} >policy.new
mv policy.new policy.toml
txfs -C mnt policy reload >/dev/null
attempt "os.unlink('mnt/dir/asked')"
ends 7
in_log "there was no answer in time"
sed -i 's/^timeout = .*/timeout = "5m"/' policy.toml
refuses 1 'timeout of [ask] is not a valid time; expected a number of seconds' txfs policy check policy.toml
sed -i 's/^timeout = .*/timeout = 600/' policy.toml
txfs -C mnt policy reload >/dev/null

# The end of the mount ends waits, too.
attempt "os.unlink('mnt/dir/asked')"
await 1
refuses_with_hint 6 "1 operation in $PWD/mnt waits for an answer" txfs umount mnt
txfs umount --lazy mnt
ends 7
until ! txfs -C ws status --json | json 'd["mountpoint"] or ""' | grep -q mnt; do :; done
txfs mount ws mnt --no-default-policy --policy policy.toml
attempt "os.unlink('mnt/dir/asked')"
await 1
daemon=$(txfs -C mnt status --json | json 'd["pid"]')
kill -TERM "$daemon"
ended "$daemon" || fail "the daemon does not end"
status=0
wait "$asker" || status=$?
equal 7 "$status" "exit code of what waited for a daemon that ended"
[ -e ws/dir/asked ] || fail "it was done"
refuses_with_hint 1 "is not mounted" txfs -C ws pending
txfs -C ws fsck
