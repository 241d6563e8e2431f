#!/bin/sh
# txfs run in a mount: changes from before the run are neither committed nor
# validated with it, and during the run the transaction is its own.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs bwrap
alone

# fresh: the workspace and a mount of it, with a file that was changed there.
fresh() {
  if [ -d mnt ]; then
    txfs -C mnt discard >/dev/null
    txfs umount mnt >/dev/null
  fi
  rm -rf ws mnt
  mkdir -p ws/dir mnt
  for name in a b dir/f; do echo base >ws/$name; done
  ln ws/b ws/linked
  txfs mount ws mnt >/dev/null
  echo prev >>mnt/a
}
# run CODE COMMAND [OPTION...]: in the mount.
run() {
  code=$1 command=$2
  shift 2
  status=0
  txfs -C mnt run "$@" -- sh -c "$command" >"$TMPDIR/out" 2>"$TMPDIR/err" || status=$?
  equal "$code" $status "exit code of $command ($(cat "$TMPDIR/err"))"
}
# kept COMMAND: cannot be committed without the change from before.
kept() {
  before=$(manifest ws)
  run 3 "$1"
  contains "$(cat "$TMPDIR/err")" "before the run"
  equal "$before" "$(manifest ws)" "the base after $1"
}

for command in 'ln a new' 'ln a new; rm a' 'mv a new' 'ln a new; echo more >>new' \
  'mv -T a dir/f' 'mv b t; mv a b; mv t a' 'ln -f a b' 'echo more >>a' 'mv a dir/; mv dir new'; do
  fresh
  kept "$command"
done
fresh
echo prev >>mnt/b
kept 'echo more >>linked'
fresh
echo prev >>mnt/b
kept 'rm linked'
fresh
mkdir mnt/made
kept 'echo it >made/file'
fresh
mv mnt/dir mnt/moved
kept 'echo it >moved/file'
fresh
rm mnt/b
kept 'echo it >b'
fresh
ln mnt/a mnt/second
kept 'rm second'
# What is apart is committed alone.
fresh
run 0 'echo more >b; ln b third; mv dir/f new'
equal base "$(cat ws/a)" "a change from before the run"
equal more "$(cat ws/third)" "a change of the run"
equal "base
prev" "$(cat mnt/a)" "what was there before"

# Random commands before and in the run: of those before, nothing is in the base.
# commands WORD N: N of them, which write WORD.
commands() {
  awk -v seed="$seed$round$1" -v word="$1" -v count="$2" 'BEGIN {
    srand(seed)
    n = split("a b linked dir dir/f dir/n new dir/new two", t, " ")
    m = split("mv|mv -T|ln|ln -f|rm -r|echo|echo|chmod 700|mkdir", op, "|")
    for (i = 0; i < count; i++) {
      o = op[1 + int(rand() * m)]; x = t[1 + int(rand() * n)]; y = t[1 + int(rand() * n)]
      if (o == "echo") print o, word " >>" x
      else if (o ~ /^(rm|chmod|mkdir)/) print o, x
      else print o, x, y
    }
  }'
}
seed=${SEED:-$$}
for round in $(seq "${ROUNDS:-10}"); do
  fresh
  (cd mnt && sh -c "$(commands prev 3)" 2>/dev/null || :)
  of_run=$(commands run 4)
  status=0
  txfs -C mnt run -- sh -c "$of_run
    :" >"$TMPDIR/out" 2>"$TMPDIR/err" || status=$?
  case $status in
    0 | 3) ;;
    *) fail "exit code $status (SEED=$seed, round $round): $(cat "$TMPDIR/err")" ;;
  esac
  ! grep -r prev ws || fail "a change from before the run is in the base (SEED=$seed, round $round): $of_run"
done

# A validator does not see what would be committed.
fresh
echo lib >mnt/lib
before=$(manifest ws)
refuses_with_hint 125 "the validators would see changes from before the run" \
  txfs -C mnt run --validate 'test -e lib' -- sh -c 'echo x >main'
equal "$before" "$(manifest ws)" "the base"
[ ! -e mnt/main ] || fail "the command ran"
equal 0 "$(txfs -C mnt status --json | json 'len(d["savepoints"])')" "savepoints of a run that was refused"
run 0 'echo x >main' --validate 'test -e lib' --keep
run 1 'echo x >main; exit 1' --name other --validate true
txfs -C mnt commit >/dev/null
run 0 'echo x >main2' --validate 'test -e lib'
equal x "$(cat ws/main2)" "what was validated"
# A named transaction has changes from before, too.
txfs -C ws run --name other --keep -- touch lib2 2>/dev/null
refuses_with_hint 125 "the validators would see" txfs -C ws run --name other --validate true -- touch main
tries=0
while grep "^$PWD/ws [^ ]*/run-" /proc/mounts >/dev/null; do
  tries=$((tries + 1))
  [ $tries -lt 500 ] || fail "a mount is left"
  sleep 0.01
done
txfs -C ws -t other discard >/dev/null

# While a run works, its transaction is neither ended nor rewound by others.
fresh
txfs -C mnt savepoint first >/dev/null
mkfifo begun go
for way in commit 'commit b' discard 'discard b' 'rollback first' umount; do
  rm -f begun go
  mkfifo begun go
  txfs -C mnt run --rw "$PWD/begun" --rw "$PWD/go" -- sh -c \
    "echo half >half; echo >$PWD/begun; cat $PWD/go; exit 1" >"$TMPDIR/out.run" 2>"$TMPDIR/err.run" &
  supervisor=$!
  cat begun >/dev/null
  # shellcheck disable=SC2086 # words
  refuses_with_hint 6 "\`txfs run\` works in this mount (pid $supervisor): sh -c" txfs -C mnt $way
  contains "$(cat "$TMPDIR/err")" "wait until it ends, or end it with \`kill $supervisor\`"
  [ ! -e ws/half ] || fail "a part of a run was committed by $way"
  txfs -C mnt savepoint >/dev/null
  echo >go
  status=0
  wait $supervisor || status=$?
  equal 1 $status "exit code of a run during $way ($(cat "$TMPDIR/err.run"))"
  [ ! -e mnt/half ] || fail "a run was not rolled back after $way"
  equal "first" "$(txfs -C mnt status --json | json '" ".join(s["name"] for s in d["savepoints"] if not s["name"].startswith("run-"))')" "savepoints"
done
# A run beside it, which validates, is in a transaction of its own, without what
# that one has changed.
rm -f begun go
mkfifo begun go
txfs -C mnt run --rw "$PWD/begun" --rw "$PWD/go" -- sh -c \
  "echo half >half; echo >$PWD/begun; cat $PWD/go; exit 1" 2>/dev/null &
supervisor=$!
cat begun >/dev/null
txfs -C mnt run --validate '! test -e half' -- sh -c 'echo x >beside' 2>"$TMPDIR/err" ||
  fail "a run beside another one: $(cat "$TMPDIR/err")"
equal x "$(cat ws/beside)" "what a run beside another one has committed"
echo >go
wait $supervisor || :
txfs -C mnt commit >/dev/null
equal "base
prev" "$(cat ws/a)" "a commit after the runs"
txfs umount mnt >/dev/null
