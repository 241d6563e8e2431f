#!/bin/sh
# What each host's hook leaves in the transaction: the ids that the host sends, the
# end of the call where it reports one, and the call's changes, which go by its id or
# its number. The table in docs/agents.md says the same.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 shfmt
alone

mkdir ws mnt
echo a >ws/a
txfs mount ws mnt 2>/dev/null
cat >marks.py <<'EOF2'
"""The inputs of one call of a host: marks.py HOST FIXTURES PAGE DIRECTORY

Writes before.json, refused.json, after.json (if the host reports the end of a call),
and expected.json, which is what the transaction then has. The table "Marks" of PAGE
must agree.
"""

import json
import re
import sys

# Of session, turn, call, subagent and tool; and the event after a call.
NAMES = {
    "claude-code": ("session_id", "prompt_id", "tool_use_id", "agent_id", "tool_name", "PostToolUse"),
    "codex": ("session_id", "turn_id", "tool_use_id", "agent_id", "tool_name", "PostToolUse"),
    "gemini": ("session_id", None, None, None, "tool_name", "AfterTool"),
    "cursor": ("conversation_id", "generation_id", None, None, None, None),
    "copilot": ("sessionId", None, None, None, "toolName", "postToolUse"),
    "opencode": ("sessionID", None, "callID", None, "tool", "tool.execute.after"),
}
host, fixtures, page, directory = sys.argv[1:]
*names, end = NAMES[host]
# Of this one there is no recording.
is_recorded = host != "cursor"
command = "echo made > made.txt" if is_recorded else "ls"
path = f"{fixtures}/recorded/{host}.jsonl" if is_recorded else f"{fixtures}/{host}.jsonl"
with open(path) as file:
    lines = [line.replace("@DIR@", directory) for line in file]
calls = [json.loads(line).get("in", {}) for line in lines]
before = next(call for call in calls if command in json.dumps(call))
# Copilot's input names no event: after a call there is a result.
def is_end(call):
    return end in (call.get("hook_event_name"), call.get("event")) or "toolResult" in call


after = next(filter(is_end, calls), None) if end else None
# Nor of a subagent. And the recorded hosts have the same ids of calls.
for name, value in ((names[3], f"agent of {host}"), (names[2], f"call of {host}")):
    if name:
        before[name] = after[name] = value

with open("before.json", "w") as file:
    json.dump(before, file)
with open("refused.json", "w") as file:
    file.write(json.dumps(before).replace(command, "rm -rf /"))
if after:
    with open("after.json", "w") as file:
        json.dump(after, file)
ids = [name and before[name] for name in names]
expected = dict(zip(("session", "turn", "call", "agent", "tool"), ids))
expected.update(host=host, tool=expected["tool"] or "shell", command=command, ended=after is not None)
with open("expected.json", "w") as file:
    json.dump(expected, file)

with open(page) as file:
    table = re.search(r"^\| host \| session .*?\n\n", file.read(), re.MULTILINE | re.DOTALL).group()
row = re.search(rf"^\| {host} \|(.*)\|$", table, re.MULTILINE).group(1).split("|")
says = [cell.strip() != "no" for cell in row]
if says != [bool(i) for i in ids[:4]] + [bool(after)]:
    sys.exit(f"docs/agents.md says {row}, and the fixtures have {expected}")
EOF2

calls() { txfs -C mnt log --calls --json; }
# of_host EXPRESSION: over the host's only call, as `d`.
of_host() { calls | grep "\"host\":\"$host\"" | json "$1"; }

for host in claude-code codex gemini cursor copilot opencode; do
  rm -f after.json
  python3 marks.py $host "$TXFS_SOURCE_DIR/tests/cli/hooks" "$TXFS_SOURCE_DIR/docs/agents.md" "$PWD/mnt" || fail "$host: the fixtures"
  # Some hosts read a refusal, and some the exit code.
  txfs hook $host <refused.json >out 2>&1 || :
  contains "$(cat out)" "(rule txfs-cmd-remove-everything)"
  equal 0 "$(calls | grep -c "\"host\":\"$host\"")" "$host: a refused call is marked"
  txfs hook $host <before.json >out 2>err || fail "$host: $(cat out err)"
  equal "" "$(cat err)" "$host: on stderr"
  echo x >"mnt/of-$host"
  if [ -e after.json ]; then
    equal None "$(of_host 'd["ended"]')" "$host: before its end"
    txfs hook $host <after.json >out 2>err || fail "$host: $(cat out err)"
    echo x >"mnt/after-$host"
  fi
  found=$(of_host '{k: (v is not None) if k == "ended" else v for k, v in d.items()
    if k in ("host", "session", "turn", "call", "agent", "tool", "command", "ended")}' | python3 -c '
import ast, json, sys
found, expected = ast.literal_eval(sys.stdin.read()), json.load(open("expected.json"))
print("as expected" if found == expected else f"{found}, expected {expected}")')
  equal "as expected" "$found" "$host: the mark"
  equal 1 "$(of_host 'd["changes"]')" "$host: changes"

  # The host's id takes the call back; where there is none, its number does.
  id=$(of_host 'd["call"] or d["number"]')
  number=$(of_host 'd["number"]')
  contains "$(txfs -C mnt revert --call "$id")" "reverted call $number: 1 change"
  [ ! -e "mnt/of-$host" ] || fail "$host: the call was not taken back"
  [ ! -e after.json ] || [ -e "mnt/after-$host" ] || fail "$host: what came after the call is gone"
done
equal 6 "$(calls | grep -vc '"host":"txfs"')" "calls"

# What Cursor and Copilot are answered, in the mount and in a run.
mkdir mnt/build other
# A sandbox has its own /tmp.
cp "$TXFS" other/program
answer() {
  python3 -I -S -c 'import json, sys
text = sys.stdin.read()
d = json.loads(text) if text else {}
print(d.get("permission") or d.get("permissionDecision") or "none")'
}
for case in "cursor ls allow allow" "cursor rm_-rf_build allow allow" "cursor make ask allow" \
  "cursor git_push_--force ask ask" "cursor rm_-rf_/ deny" \
  "copilot ls allow allow" "copilot rm_-rf_build allow allow" "copilot make none allow" \
  "copilot git_push_--force deny deny" "copilot rm_-rf_/ deny"; do
  # shellcheck disable=SC2086 # words
  set -- $case
  command=$(echo "$2" | tr _ ' ')
  python3 marks.py "$1" "$TXFS_SOURCE_DIR/tests/cli/hooks" "$TXFS_SOURCE_DIR/docs/agents.md" "$PWD/mnt"
  sed "s|\bls\b|$command|; s|echo made > made.txt|$command|" before.json >call.json
  equal "$3" "$(txfs hook "$1" <call.json | answer)" "$1: $command"
  [ -n "${4-}" ] && command -v bwrap >/dev/null || continue
  sed "s|$PWD/mnt|$PWD/other|" call.json >other/call.json
  equal "$4" "$(txfs -C other run --on-success=discard -- sh -c "./program hook $1 <call.json" 2>/dev/null | answer)" \
    "$1: $command in a run"
done
txfs -C mnt fsck >/dev/null
