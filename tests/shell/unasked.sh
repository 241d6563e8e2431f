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
mkdir src build evil evil/claude evil/.claude links sub bare bare/objects bare/refs halfbare common gen
printf 'one\ntwo\n' >a
cp a b
printf 'int main() {\n}\n' >src/main.c
echo '{}' >package.json
echo KEY=1 >.env
echo x >build/x
echo y >build/y.o
echo '{}' >evil/claude/settings.json
echo '{}' >evil/.claude/settings.json
echo '{}' >.mcp.json
ln .mcp.json hard
echo g >"$HOME/outside/g"
echo x >"$HOME/outside/x"
ln -s "$HOME/outside" link
ln -s "$HOME/outside" links/l
ln -s "$HOME/outside/missing" dangling
echo 'ref: refs/heads/main' >bare/HEAD
cp bare/HEAD halfbare/HEAD
echo ../bare >halfbare/commondir
echo ../bare >common/commondir
git add a b src package.json
git commit -qm one
echo two >>a
git commit -qam two
git branch evil
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
import json, os, shutil, subprocess, sys
# The program itself is in a temporary directory, where an agent could put others.
txfs = shutil.which("txfs")
environment = dict(os.environ, PATH=os.environ.get("ASK_PATH", "/usr/sbin:/usr/bin:/sbin:/bin"))
failed = 0
for line in open(sys.argv[1]):
    row = json.loads(line)
    for where in ["mnt", "plain"]:
        unasked = row["unasked"] and (row["in"] == "both" or where == "mnt")
        directory = sys.argv[2] + "/" + where
        call = {"session_id": "s", "cwd": directory, "permission_mode": "default", "hook_event_name": "PreToolUse",
                "tool_name": "Bash", "tool_input": {"command": row["command"]}, "tool_use_id": "toolu_1"}
        answer = subprocess.run([txfs, "hook", "claude-code"], input=json.dumps(call), env=environment,
                                capture_output=True, text=True)
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
rm mnt/.git/hooks/pre-commit

# So does its configuration, whatever names it, and that of repositories below it.
cat >plain.jsonl <<'E'
{"in": "both", "unasked": true, "command": "git log -1"}
{"in": "both", "unasked": true, "command": "git status"}
{"in": "both", "unasked": true, "command": "git diff"}
{"in": "mount", "unasked": true, "command": "git add a && git commit -m x"}
E
sed 's/"unasked": true/"unasked": false/' plain.jsonl >asked.jsonl
as_plain() { python3 ask.py plain.jsonl "$PWD" || fail "$1"; }
none() { python3 ask.py asked.jsonl "$PWD" || fail "$1"; }
as_plain "before"
for setting in $(some "diff.submodule=diff submodule.recurse=true status.submoduleSummary=true" \
    "core.fsmonitor=./x diff.external=./x log.showSignature=true" \
    "gpg.program=./x core.worktree=.. include.path=../x extensions.partialClone=origin"); do
    for where in mnt plain; do git -C $where config "${setting%%=*}" "${setting#*=}"; done
    none "$setting"
    for where in mnt plain; do git config -f $where/.git/config --unset "${setting%%=*}"; done
done
as_plain "without the settings"
for name in $(some "commondir config.worktree" "sharedindex.0123 gitdir"); do
    for where in mnt plain; do echo ../bare >$where/.git/$name; done
    none "$name"
    rm mnt/.git/$name plain/.git/$name
done
for link in $(some "COMMIT_EDITMSG refs/heads/other" "logs/other objects/info/alternates"); do
    for where in mnt plain; do
        [ ! -e $where/.git/$link ] || mv $where/.git/$link kept.$where
        ln -s "$HOME/outside/g" $where/.git/$link
    done
    none "the link $link"
    for where in mnt plain; do
        rm $where/.git/$link
        [ ! -e kept.$where ] || mv kept.$where $where/.git/$link
    done
done
for name in config index; do
    for where in mnt plain; do
        mv $where/.git/$name kept.$where
        mkfifo $where/.git/$name
    done
    none "a FIFO as $name"
    for where in mnt plain; do
        rm $where/.git/$name
        mv kept.$where $where/.git/$name
    done
done
for where in mnt plain; do mkdir $where/.git/modules; done
none "modules"
for where in mnt plain; do rmdir $where/.git/modules; done
as_plain "without links and modules"

# git goes by the names in its index.
cat >index.py <<'E'
import struct
for number, name in enumerate(["../out", "/out", "src/../../out", ".git/hooks/x", "src/.GIT/config", "a//b"]):
    data = name.encode()
    entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 0) + bytes(20) + struct.pack(">H", len(data)) + data
    entry += bytes(8 - len(entry) % 8)
    open(f"{number}.index", "wb").write(b"DIRC" + struct.pack(">II", 2, 1) + entry + bytes(20))
open("version4.index", "wb").write(b"DIRC" + struct.pack(">II", 4, 0) + bytes(20))
open("cut.index", "wb").write(b"DIRC" + struct.pack(">II", 2, 5) + bytes(20))
E
python3 index.py
for where in mnt plain; do cp $where/.git/index index.$where; done
for index in *.index; do
    for where in mnt plain; do cp "$index" $where/.git/index; done
    none "$index"
done
for where in mnt plain; do cp index.$where $where/.git/index; done
as_plain "the index as it was"

# A directory .git that is no repository does not hide the one above.
for where in mnt plain; do mkdir $where/src/.git; done
cat >hidden.jsonl <<'E'
{"in": "both", "unasked": false, "command": "git -C src status"}
{"in": "both", "unasked": false, "command": "cd src && git log"}
E
python3 ask.py hidden.jsonl "$PWD" || fail "an empty .git"
for where in mnt plain; do rmdir $where/src/.git; done

printf '[include]\n\tpath = more\n' >"$HOME/.gitconfig"
cat >included.jsonl <<'E'
{"in": "both", "unasked": false, "command": "git commit -m x"}
E
python3 ask.py included.jsonl "$PWD" || fail "a file that the user's configuration includes"
rm "$HOME/.gitconfig"
for where in mnt plain; do
    git init -q $where/below
    git -C $where/below -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m one
done
cat >below.jsonl <<'E'
{"in": "both", "unasked": true, "command": "git status"}
{"in": "mount", "unasked": true, "command": "git add a"}
{"in": "both", "unasked": false, "command": "git add -A && git status"}
{"in": "both", "unasked": false, "command": "git add a && git commit -m x"}
E
python3 ask.py below.jsonl "$PWD" || fail "a repository below"
for where in mnt plain; do git -C $where add below 2>/dev/null; done
none "a submodule"
for where in mnt plain; do
    git -C $where reset -q
    rm -rf $where/below
done
as_plain "without the submodule"

# The environment of the host leads programs elsewhere.
for variable in GIT_DIR=/tmp/x GIT_CONFIG_COUNT=1 GIT_EXTERNAL_DIFF=./x GIT_CONFIG_GLOBAL=x GIT_INDEX_FILE=x; do
    (
        export "${variable?}"
        none "$variable"
    )
done
(
    export GIT_EDITOR=true GIT_PAGER=cat GIT_TERMINAL_PROMPT=0
    as_plain "harmless variables"
)
cat >ls.jsonl <<'E'
{"in": "both", "unasked": false, "command": "ls"}
{"in": "mount", "unasked": false, "command": "rm -f b"}
{"in": "both", "unasked": true, "command": "echo x"}
E
for where in mnt plain ws; do
    mkdir -p $where/tools
    for program in ls rm; do
        echo 'exit 0' >$where/tools/$program
        chmod +x $where/tools/$program
    done
done
for first in "$PWD/mnt/tools:$PWD/plain/tools" "$PWD/ws/tools:$PWD/plain/tools" tools . ""; do
    (
        export ASK_PATH="$first:/usr/bin:/bin"
        python3 ask.py ls.jsonl "$PWD" || fail "PATH begins with '$first'"
    )
done
cat >cd.jsonl <<'E'
{"in": "both", "unasked": false, "command": "cd src && ls"}
{"in": "both", "unasked": true, "command": "cd ./src && ls"}
{"in": "both", "unasked": true, "command": "ls src"}
E
(
    export CDPATH=/etc
    python3 ask.py cd.jsonl "$PWD" || fail "CDPATH"
)
cat >rg.jsonl <<'E'
{"in": "both", "unasked": false, "command": "rg x"}
E
(
    export RIPGREP_CONFIG_PATH=ripgreprc
    python3 ask.py rg.jsonl "$PWD" || fail "RIPGREP_CONFIG_PATH"
)

# A character is not a byte to the shell.
for where in mnt plain; do echo x >$where/né; done
cat >bytes.jsonl <<'E'
{"in": "both", "unasked": false, "command": "cat n?"}
{"in": "both", "unasked": true, "command": "cat *.json"}
E
python3 ask.py bytes.jsonl "$PWD" || fail "characters and bytes"

# What a file tool may expand is no path.
cat >tool.py <<'E'
import json, subprocess, sys
for path in ["~/x", "~", "$HOME/x", "file:///etc/x", sys.argv[1] + "/mnt/~/../../x"]:
    call = {"session_id": "s", "cwd": sys.argv[1] + "/mnt", "permission_mode": "default", "tool_use_id": "toolu_1",
            "hook_event_name": "PreToolUse", "tool_name": "Write", "tool_input": {"file_path": path, "content": "x"}}
    answer = subprocess.run(["txfs", "hook", "claude-code"], input=json.dumps(call), capture_output=True, text=True)
    if '"allow"' in answer.stdout:
        sys.exit(f"{path}: {answer.stdout}")
E
python3 tool.py "$PWD" || fail "paths that a tool expands"
