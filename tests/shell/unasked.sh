#!/bin/sh
# What a hook lets run unasked where no sandbox confines it, and what it does not.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 shfmt git
alone

mkdir -p ws mnt "$HOME/outside"
cd ws
git init -q
git config user.email a@example.org
git config user.name a
mkdir src build evil evil/claude evil/.claude links sub bare bare/objects bare/refs gen
printf 'one\ntwo\n' >a
cp a b
printf 'int main() {\n}\n' >src/main.c
echo '{}' >package.json
echo KEY=1 >.env
echo x >build/x
echo y >build/y.o
echo '{}' >evil/claude/settings.json
echo '{}' >evil/.claude/settings.json
echo g >"$HOME/outside/g"
echo x >"$HOME/outside/x"
ln -s "$HOME/outside" link
ln -s "$HOME/outside" links/l
ln -s "$HOME/outside/missing" dangling
echo 'ref: refs/heads/main' >bare/HEAD
git add a b src package.json
git commit -qm one
echo two >>a
git commit -qam two
cd ..
cp -r ws plain
cat >rules.toml <<'END'
schema = 1

[[fs]]
id = "generated"
path = "gen/**"
ops = ["make", "content", "remove"]
reason = "a program makes these files"
suggest = "change the program"
END
txfs mount ws mnt --policy rules.toml

cat >ask.py <<'END'
import json, subprocess, sys
failed = 0
for line in open(sys.argv[1]):
    row = json.loads(line)
    for where in ["mnt", "plain"]:
        unasked = row["unasked"] and (row["in"] == "both" or where == "mnt")
        directory = sys.argv[2] + "/" + where
        call = {"session_id": "s", "cwd": directory, "permission_mode": "default", "hook_event_name": "PreToolUse",
                "tool_name": "Bash", "tool_input": {"command": row["command"]}, "tool_use_id": "toolu_1"}
        answer = subprocess.run(["txfs", "hook", "claude-code"], input=json.dumps(call), capture_output=True, text=True)
        allowed = '"permissionDecision":"allow"' in answer.stdout
        if allowed != unasked or answer.returncode != 0:
            failed += 1
            print(f"{where}: {row['command']!r}: {answer.stdout or 'no answer'} {answer.stderr}")
sys.exit(failed > 0)
END
python3 ask.py "$TXFS_SOURCE_DIR/tests/cli/unasked.jsonl" "$PWD" || fail "unasked, or asked, unlike in the table"

# Hooks of the repository run programs.
echo 'exit 0' >mnt/.git/hooks/pre-commit
chmod +x mnt/.git/hooks/pre-commit
cat >hooked.jsonl <<'END'
{"in": "mount", "unasked": false, "command": "git commit -m x"}
{"in": "mount", "unasked": false, "command": "git checkout -f"}
{"in": "both", "unasked": true, "command": "git log"}
END
python3 ask.py hooked.jsonl "$PWD" || fail "hooks of the repository"
