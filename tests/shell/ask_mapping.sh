#!/bin/sh
# An operation that waits for an answer has the kernel's lock of its file: what
# is stored through a mapping of that is not written back meanwhile. No command
# waits for it.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 setsid

mkdir ws mnt
for name in chmod truncate; do printf 'the base' >ws/$name; done
cat >policy.toml <<'END_OF_RULES'
schema = 1

[ask]
timeout = 3600

[[fs]]
id = "asked"
path = "*"
ops = ["chmod", "truncate"]
action = "ask"
reason = "somebody has to know"
suggest = "leave it as it is"
END_OF_RULES
txfs mount ws mnt --no-default-policy --policy policy.toml
waiting() { txfs -C mnt pending --json | json 'len(d)'; }
await() { until [ "$(waiting)" = "$1" ]; do :; done; }

mkfifo orders answers
python3 -c '
import contextlib, mmap
with contextlib.ExitStack() as stack, open("orders") as orders, open("answers", "w") as answers:
    enter = stack.enter_context
    files = {n: enter(open("mnt/" + n, "r+b")) for n in ("chmod", "truncate")}
    maps = {n: enter(mmap.mmap(f.fileno(), 0)) for n, f in files.items()}
    for order in orders:
        name, text = order.split()
        maps[name][: len(text)] = text.encode()
        print("done", file=answers, flush=True)
' &
holder=$!
exec 3>orders 4<answers
# store NAME TEXT
store() {
  echo "$1 $2" >&3
  read -r _ <&4
}

# wait_on NAME: an operation on it waits for an answer.
wait_on() {
  if [ "$1" = chmod ]; then
    setsid chmod 600 mnt/chmod 2>/dev/null &
  else
    setsid truncate -s 7 mnt/truncate 2>/dev/null &
  fi
  asker=$!
  await 1
}
refused() { wait "$asker" && fail "$1 was done" || :; }

for name in chmod truncate; do
  wait_on $name
  store $name one
  # Who looks does not decide.
  for command in "diff" "savepoint s-$name" "commit --dry-run"; do
    # shellcheck disable=SC2086
    timeout 60 txfs -C mnt $command >"$TMPDIR/out" 2>"$TMPDIR/err" ||
      fail "$command: $(cat "$TMPDIR/err")"
    contains "$(cat "$TMPDIR/err")" "note: an operation waits for an answer (\`txfs pending\`)"
    equal 1 "$(waiting)" "questions after $command"
  done
  # What is to end does: with all that was stored.
  timeout 60 txfs -C mnt commit -m $name >"$TMPDIR/out" 2>"$TMPDIR/err" ||
    fail "commit: $(cat "$TMPDIR/err")"
  contains "$(cat "$TMPDIR/err")" "note: the policy refused 1 operation by asked"
  refused $name
  equal "one base" "$(cat ws/$name)" "content of $name"
  txfs -C mnt savepoint "t-$name" >/dev/null
  for command in "rollback t-$name" "discard"; do
    wait_on $name
    store $name two
    # shellcheck disable=SC2086
    timeout 60 txfs -C mnt $command >"$TMPDIR/out" || fail "$command"
    refused $name
    equal one "$(head -c 3 mnt/$name)" "content of $name after $command"
  done
done
exec 3>&- 4<&-
wait $holder
txfs umount mnt
txfs -C ws fsck
