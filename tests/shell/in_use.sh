#!/bin/bash
# Open files, working directories and running programs live through commit and
# discard.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
mkdir mnt
txfs mount ws mnt

# A process that stands in a directory and holds files open, and does as told.
coproc WORKER {
  cd mnt/docs
  exec 5<>README 6>>../log 7<hard-link
  while read -r line; do eval "$line"; echo "done $?"; done
}
worker() {
  echo "$1" >&"${WORKER[1]}"
  local reply
  while read -r -t 60 reply <&"${WORKER[0]}"; do
    case $reply in
      'done 0') return ;;
      done*) fail "worker: $1: $reply" ;;
      *) echo "$reply" ;;
    esac
  done
  fail "worker: $1: no answer"
}

worker 'printf 12345 >&5; echo first >&6'
txfs -C mnt commit -m one
equal 12345me "$(tr -d '\n' <ws/docs/README)" "committed content"
equal first "$(cat ws/log)" "committed log"
worker 'printf 678 >&5; echo second >&6; echo here >here; cd .; pwd' >out
equal "12345678" "$(cat mnt/docs/README | head -c 8)" "content after commit"
equal "first second" "$(cat mnt/log | tr '\n' ' ' | sed 's/ $//')" "log after commit"
equal first "$(cat ws/log)" "the workspace between commits"
[ ! -e ws/docs/here ] || fail "written to the workspace before commit"
equal here "$(cat mnt/docs/here)" "file made from the old working directory"

txfs -C mnt discard
equal first "$(cat mnt/log)" "log after discard"
[ ! -e mnt/docs/here ] || fail "discard left a file"
worker 'ls >listing; echo third >&6; cat <&7 >/dev/null; cd ..; cd docs'
equal "first third" "$(cat mnt/log | tr '\n' ' ' | sed 's/ $//')" "log after discard and write"
contains "$(cat mnt/docs/listing)" README

# From inside, too, by the one who stands there.
worker '"$TXFS" commit -m "from inside" >/dev/null; test -e listing'
[ -e ws/docs/listing ] || fail "commit from inside did not reach the workspace"

# Whoever stands in a directory that moves back has a path at once.
txfs -C mnt savepoint >/dev/null
mkdir mnt/other
mv mnt/docs mnt/other/moved
worker 'python3 -c "import os; print(os.getcwd())"' >out
equal "$PWD/mnt/other/moved" "$(cat out)" "the working directory, moved"
txfs -C mnt rollback
worker 'python3 -c "import os; print(os.getcwd())"' >out
equal "$PWD/mnt/docs" "$(cat out)" "the working directory after the rollback"
mkdir mnt/other
mv mnt/docs mnt/other/moved
txfs -C mnt discard other
worker 'python3 -c "import os; print(os.getcwd())"' >out
equal "$PWD/mnt/docs" "$(cat out)" "the working directory after the discard of a part"
mkdir mnt/other
mv mnt/docs mnt/other/moved
txfs -C mnt discard
worker 'python3 -c "import os; print(os.getcwd())"' >out
equal "$PWD/mnt/docs" "$(cat out)" "the working directory after the discard"

# A busy mount is named, with who is in it, and stays.
refuses_with_hint 6 "$WORKER_PID" txfs umount mnt
contains "$(cat "$TMPDIR/err")" "$PWD/mnt"
mountpoint -q mnt || fail "the refused umount unmounted"
worker 'echo fourth >&6'
worker 'exec 5>&- 6>&- 7>&-; cd /'
txfs umount mnt
kill "$WORKER_PID"
txfs -C ws diff >patch
contains "$(cat patch)" +fourth

# What another mount namespace keeps is named while it is waited for.
if [ "$(id -u)" -eq 0 ]; then unshare=(unshare -m); else unshare=(unshare -Urm); fi
txfs mount ws mnt
mkfifo ready
"${unshare[@]}" --propagation private bash -c 'echo >ready; exec sleep 600' &
KEEPER=$!
read -r _ <ready
mkfifo said
txfs umount mnt 2>said &
UMOUNT=$!
exec 8<said
read -r line <&8
contains "$line" "waiting: $PWD/mnt is unmounted here"
contains "$line" "($KEEPER: mount namespace)"
mountpoint -q mnt && fail "the mount is still there"
kill "$KEEPER"
wait "$KEEPER" || true
wait "$UMOUNT" || fail "umount failed after the namespace was gone"

# A mount namespace of its own takes its copy along.
rm ready said
txfs mount ws mnt
"${unshare[@]}" --propagation private "$TXFS" umount mnt >err 2>&1
contains "$(cat err)" "unmounted $PWD/mnt"
[[ $(cat err) != *waiting* ]] || fail "umount waited for its own copy"
mountpoint -q mnt && fail "the mount is still there"

if [ "$(id -u)" -eq 0 ]; then
  # What it is bound to is named.
  txfs mount ws mnt
  mkdir bound
  mount --bind mnt bound
  mkfifo said
  txfs umount mnt 2>said &
  UMOUNT=$!
  exec 8<said
  read -r line <&8
  contains "$line" "waiting: $PWD/mnt is unmounted, but bound to $PWD/bound"
  umount bound
  wait "$UMOUNT" || fail "umount failed after its bind mount was gone"
fi
