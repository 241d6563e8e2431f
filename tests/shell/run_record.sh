#!/bin/sh
# What txfs list, show and log say about the runs of txfs run, as root and as an
# ordinary user.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs bwrap fusermount3 python3 setpriv unshare
needs_root
alone
mknod -m 666 "$TMPDIR/fuse" c 10 229 || skip "no device nodes here"
mount --bind "$TMPDIR/fuse" /dev/fuse
cp "$TXFS" txfs-program
chmod 755 txfs-program "$TMPDIR"
TXFS=$PWD/txfs-program
err=$PWD/err

act() { setpriv --reuid="$uid" --regid="$uid" --clear-groups "$TXFS" -C ws "$@"; }

# run CODE OPTION...
run() {
  code=$1
  shift
  status=0
  act run "$@" >/dev/null 2>"$err" || status=$?
  equal "$code" "$status" "exit code of: txfs run $* ($(cat "$err"))"
}

# last EXPRESSION: of the last transaction in the list, as `t`, and its last run, as `r`.
last() {
  act list --json | python3 -c 'import json, sys
t = json.load(sys.stdin)[-1]
r = t["runs"][-1] if t["runs"] else None
print(eval(sys.argv[1]))' "$1"
}

# all_runs: of all transactions, one a line.
all_runs() {
  act list --json | python3 -c 'import json, sys
for t in json.load(sys.stdin):
    for r in t["runs"]:
        print(t["state"], r["outcome"], r["exit_code"], r["why"])'
}

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

check_record() {
  uid=$1
  rm -rf ws
  mkdir ws
  echo old >ws/file
  chown -R "$uid:$uid" ws "$HOME"

  # Transactions of their own: what became of them is in the history.
  run 0 -- sh -c 'echo new >file'
  equal "committed committed None 0 ['sh', '-c', 'echo new >file'] False None" \
    "$(last '" ".join(map(str, (t["state"], r["outcome"], r["why"], r["exit_code"],
      r["command"], r["truncated"], r["profile"])))')" "a run that was committed"
  equal True "$(last 'r["milliseconds"] > 0 and r["began"] <= t["ended"]')" "times"
  id=$(last 't["id"]')
  contains "$(act list | tail -n 1)" "txfs run: sh -c 'echo new >file'  (committed)"
  contains "$(act show "$id")" "  sh -c 'echo new >file'"
  equal "committed" "$(act show --json "$id" | json 'd["runs"][0]["outcome"]')" "show"

  run 3 -m message -- sh -c 'echo no >file; exit 3'
  equal "discarded rolled back exit 3 3" \
    "$(last '" ".join(map(str, (t["state"], r["outcome"], r["why"], r["exit_code"])))')" \
    "a run that failed"
  contains "$(act list | tail -n 1)" "txfs run: sh -c 'echo no >file; exit 3'  (rolled back: exit 3)"
  run 124 --timeout 300ms -- sleep 600
  equal "rolled back timeout" "$(last 'r["outcome"] + " " + r["why"]')" "a timeout"
  run 5 --validate 'exit 9' -- touch valid
  equal 'rolled back `exit 9` failed (exit 9) 5' \
    "$(last '" ".join((r["outcome"], r["why"], str(r["exit_code"])))')" "a validator"
  run 123 --pids 3 -- sh -c 'for i in $(seq 30); do sleep 600 & done; wait'
  equal "rolled back limit of 3 processes exceeded" \
    "$(last 'r["outcome"] + " " + r["why"]')" "a limit"

  # Hostile words do not reach the terminal.
  run 0 --validate "$(printf ': "\033]0;bad\007"')" -- \
    touch "$(printf 'a\033[2Jb\nc')" "$(printf 'not-\377-utf8')"
  # shellcheck disable=SC1003 # a backslash
  contains "$(act list | tail -n 1)" 'touch '\''a\033[2Jb\nc'\'' '
  id=$(last 't["id"]')
  act show "$id" >shown
  act list >>shown
  LC_ALL=C awk '/[\001-\010\013-\037\177]/ { exit 1 }' shown || fail "raw bytes: $(cat shown)"
  run 7 -- sh -c "exit 7" "$(head -c 100000 /dev/zero | tr '\0' w)"
  equal "True 1000 exit 7" "$(last '" ".join((str(r["truncated"]), str(
    len(r["command"][-1]) // 100 * 100), r["why"]))')" "a long command"
  contains "$(act show "$(last 't["id"]')")" "www ..."

  # A profile is recorded by its name.
  mkdir -p "$HOME/.config/txfs/profiles"
  echo 'programs = ["true"]' >"$HOME/.config/txfs/profiles/mine.toml"
  chown -R "$uid:$uid" "$HOME/.config"
  run 0 -- true
  equal "mine unchanged 0" "$(last '" ".join((r["profile"], r["outcome"], str(r["exit_code"])))')" \
    "a profile"
  rm -r "$HOME/.config/txfs"

  # Runs in a mount that stays.
  act mount >/dev/null
  act run --keep -- sh -c 'echo one >one' 2>/dev/null
  run 4 -- sh -c 'echo two >two; exit 4'
  setpriv --reuid="$uid" --regid="$uid" --clear-groups sh -c 'echo outside >ws/outside'
  equal "active ['kept', 'rolled back']" \
    "$(last 't["state"] + " " + str([run["outcome"] for run in t["runs"]])')" "runs in a mount"
  contains "$(act list | tail -n 1)" "txfs run: sh -c 'echo two >two; exit 4'  (2 runs, the last rolled back: exit 4)"
  # The log names the run of each operation.
  act log --json >logged
  python3 - "$(act list --json | json 'd[-1]["runs"][0]["id"] + " " + d[-1]["runs"][1]["id"]')" <<'END'
import json, sys
first, second = sys.argv[1].split()
run = {}
for line in open("logged"):
    entry = json.loads(line)
    if entry["op"] == "create":
        run[entry["path"]] = entry["run"]
expected = {"one": first, "two": second, "outside": None}
assert run == expected, (run, expected)
END
  act log >logged
  equal 1 "$(grep -c ' create  one .* run-[a-z0-9]*$' logged)" "a line of a run"
  equal 1 "$(grep -c ' create  outside .* ok$' logged)" "a line of no run"
  # A commit of its paths has the run that made it, and the whole commit all.
  run 0 -- sh -c 'echo three >three'
  equal "['committed']" "$(act list --json |
    json '[[r["outcome"] for r in t["runs"]] for t in d if t["kind"] == "partial"][-1]')" \
    "a commit of a part"
  act commit -m all >/dev/null
  equal "['kept', 'rolled back', 'committed']" "$(act list --json |
    json '[[r["outcome"] for r in t["runs"]] for t in d if t["message"] == "all"][-1]')" \
    "a whole commit"
  equal "[]" "$(last 't["runs"]')" "runs of the next transaction"
  # A conflict keeps the run.
  act umount >/dev/null
  mkfifo gate
  run 3 --name clash -- sh -c 'echo mine >file; read -r _ || :' <gate &
  running=$!
  exec 3>gate
  # shellcheck disable=SC2317
  is_written() { act -t clash diff | grep -q mine; }
  await "the write" is_written
  equal "running None None" "$(last '" ".join(map(str, (r["outcome"], r["exit_code"],
    r["milliseconds"])))')" "a run that works"
  echo theirs >ws/file
  exec 3>&-
  wait "$running"
  rm gate
  equal "active kept conflict 3" \
    "$(last '" ".join((t["state"], r["outcome"], r["why"], str(r["exit_code"])))')" "a conflict"
  act -t clash discard >/dev/null

  # The record survives a kill of the supervisor, and of supervisor and daemon.
  act mount >/dev/null
  mkfifo -m 666 pipe
  setpriv --reuid="$uid" --regid="$uid" --clear-groups "$TXFS" -C ws run -- \
    sh -c 'echo torn >file; echo ready; exec sleep 600' >pipe 2>"$err" &
  supervisor=$!
  read -r _ <pipe
  kill -9 "$supervisor"
  wait "$supervisor" || true
  # shellcheck disable=SC2317
  is_rolled_back() { all_runs | grep -q "^discarded rolled back 125 the process of txfs run died$"; }
  await "the record of the killed supervisor" is_rolled_back
  setpriv --reuid="$uid" --regid="$uid" --clear-groups "$TXFS" -C ws run -- \
    sh -c 'echo torn >file; echo ready; exec sleep 600' >pipe 2>"$err" &
  supervisor=$!
  read -r _ <pipe
  daemon=$(act status --json | json 'd["pid"]')
  kill -9 "$daemon" "$supervisor"
  wait "$supervisor" || true
  rm pipe
  act list >/dev/null 2>&1 || true
  equal "interrupted None" "$(last 'r["outcome"] + " " + str(r["exit_code"])')" \
    "a killed supervisor and daemon"
  act discard >/dev/null
  equal 1 "$(all_runs | grep -c "^discarded interrupted None None$")" "a discarded run"
  act fsck >/dev/null || fail "fsck: $(act fsck)"
}

for user in $(some 0 65534); do check_record "$user"; done
