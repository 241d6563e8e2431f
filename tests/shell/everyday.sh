#!/bin/bash
# Ordinary work under the default policy: not one operation is refused, and no
# change is held that a reviewer would find silly.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 git cmake make g++

export GIT_CONFIG_GLOBAL=$HOME/.gitconfig
git config --global init.defaultBranch main
git config --global protocol.file.allow always
git config --global gc.auto 0

# The base: a repository with a submodule, hooks, settings and secrets.
git init -q --bare library.git
git clone -q library.git library 2>/dev/null
(cd library && echo 'int answer();' >answer.h && git add . && git commit -qm one && git push -q)
git init -q --bare origin.git
git init -q ws
(
  cd ws
  mkdir -p src .vscode .github/workflows service
  echo '{}' >.vscode/settings.json
  echo 'on: push' >.github/workflows/ci.yml
  echo 'A=1' >.env
  echo 'A=' >.env.example
  echo 'A=1' >service/.env
  echo 'key' >service/tls.key
  echo 'A=1' >.env.test
  printf '.env\n*.key\n' >.gitignore
  printf 'int main() { return 0; }\n' >src/main.cc
  cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(everyday CXX)
enable_testing()
add_executable(everyday src/main.cc)
add_test(NAME runs COMMAND everyday)
END
  git submodule --quiet add "$PWD/../library.git" library
  git submodule --quiet add "$PWD/../library.git" packages/hooks
  git add .
  git commit -qm one
  git remote add origin ../origin.git
  git push -q -u origin main
  git checkout -q -b other
  echo '{"a": 1}' >.vscode/settings.json
  echo 'on: pull_request' >.github/workflows/ci.yml
  git commit -qam other
  git checkout -q main
  printf '#!/bin/sh\nexit 0\n' >.git/hooks/pre-commit
  chmod +x .git/hooks/pre-commit
)
mkdir mnt
txfs mount ws mnt
cd mnt

# quietly COMMAND...: its output is shown only when it fails.
quietly() {
  "$@" >"$TMPDIR/quiet" 2>&1 || fail "$*: $(cat "$TMPDIR/quiet")"
}

# has PROGRAM: whether it is installed. What is left out is said.
has() {
  command -v "$1" >/dev/null || { echo "LEFT OUT: $1 is not installed" && false; }
}

# git, on the repository of the base.
quietly git status
echo '// more' >>src/main.cc
sed -i 's/more/most/' src/main.cc
quietly git commit -am "two"
quietly git checkout -b topic
echo topic >topic.txt
quietly git add topic.txt
quietly git commit -m topic
quietly git branch -u origin/main
quietly git checkout other
quietly git rebase main
quietly git checkout main
quietly git merge --no-edit other
quietly git merge --no-edit topic
echo dirty >>src/main.cc
quietly git stash
quietly git stash pop
quietly git checkout src/main.cc
quietly git remote add second ../library.git
quietly git fetch second
quietly git remote remove second
quietly git config user.name Somebody
quietly git config --unset user.name
quietly git tag v1
quietly git push origin main v1
quietly git worktree add tree topic
quietly git -C tree commit --allow-empty -m "in a worktree"
quietly git worktree remove tree
quietly git submodule update --init
quietly git submodule add "$PWD/../library.git" again
quietly git commit -m again
quietly git submodule deinit -f again
quietly git branch -D topic
quietly git reset --hard HEAD~1
quietly git -C library checkout -b hooks/pre-x
quietly git -C library commit --allow-empty -m "on a branch called hooks"
quietly git -C library checkout main
quietly git -C library branch -D hooks/pre-x
quietly git -C packages/hooks commit --allow-empty -m "in a submodule called hooks"
quietly git -C packages/hooks gc --prune=now
quietly git clean -ffdx -e .env -e service
quietly git gc --prune=now
quietly git fsck

# git, on repositories that are made here, moved, copied and removed.
quietly git init fresh
(cd fresh && echo x >x && quietly git add x && quietly git commit -m x)
quietly git clone fresh clone
(cd clone && quietly git pull --rebase && quietly git config core.ignoreCase false)
mv clone moved
cp -r moved copied
tar -C moved -cf moved.tar .
mkdir unpacked
tar -C unpacked -xf moved.tar
sed -i 's/ignorecase/IgnoreCase/' copied/.git/config
rm -rf fresh moved copied unpacked moved.tar

# Files, as people and their editors write them.
python3 - <<'END'
import os
text = open("src/main.cc").read()
with open("src/main.cc.new", "w") as f:
    f.write(text + "// saved\n")
    f.flush()
    os.fsync(f.fileno())
os.replace("src/main.cc.new", "src/main.cc")
END
perl -i -pe 's/saved/kept/' src/main.cc
echo 'B=' >>.env.example
echo 'A=1' >new.env
printf 'Read this first.\n' >AGENTS.md
mkdir -p docs && mv AGENTS.md docs/ && ln -s docs/AGENTS.md AGENTS.md
chmod -R u+w src docs
touch .env .vscode/settings.json
mkdir -p web/.vscode && echo '{}' >web/.vscode/settings.json
mkdir -p web/.github/workflows && echo 'on: push' >web/.github/workflows/ci.yml
mkdir services && mv service services/ && mv services/service . && rmdir services
echo 'B=2' >>.env.test
cp .env web/.env && echo 'C=1' >>web/.env && rm -r web
if has vim; then
  quietly vim -u NONE -es -c '%s/int/int /' -c 'set backup' -c wq src/main.cc
  git checkout -q src/main.cc
fi

# C++: configured, built and tested, twice, and thrown away.
for _ in 1 2; do
  quietly cmake -S . -B build
  quietly cmake --build build
  (cd build && quietly ctest)
done
quietly make -C build clean
rm -rf build

# Python.
pip=
python3 -c 'import ensurepip' 2>/dev/null || pip=--without-pip
[ -z "$pip" ] || echo "LEFT OUT: pip, for python3-venv is not installed"
quietly python3 -m venv $pip venv
quietly venv/bin/python -c 'import sys; assert sys.prefix != sys.base_prefix'
quietly venv/bin/python -m compileall -q src
rm -rf venv

# JavaScript, with a package as others come.
if has npm; then
  mkdir -p package/.vscode package/.github/workflows app
  echo '{"name": "dependency", "version": "1.0.0"}' >package/package.json
  echo 'A=1' >package/.env
  echo '{}' >package/.vscode/settings.json
  echo 'on: push' >package/.github/workflows/ci.yml
  quietly npm pack ./package --offline
  (
    cd app
    echo '{"name": "app", "version": "1.0.0", "scripts": {"build": "node -e 1"}}' >package.json
    quietly npm install --offline --no-audit --no-fund ../dependency-1.0.0.tgz
    quietly npm run build
    quietly npm ci --offline --no-audit --no-fund
  )
  rm -rf app package dependency-1.0.0.tgz
fi
cd ..

# held: what a commit would hold, as RULE:PATH.
held() {
  txfs -C mnt commit --dry-run --json 2>/dev/null | json '" ".join(
    sorted(set(x["rule"] + ":" + x["path"] for x in d["held"])))'
}

equal "" "$(txfs -C mnt log --denied)" "what was refused"
# A merge brought them.
equal "txfs-ci:.github/workflows/ci.yml txfs-editor-tasks:.vscode/settings.json" "$(held)" "what is held"
contains "$(txfs -C mnt log --path .git/config)" "git"
[ "$(txfs -C mnt status --json | json 'd["operations"]')" -gt 500 ] ||
  fail "hardly anything was done"
txfs -C mnt commit --accept txfs-ci --accept txfs-editor-tasks >"$TMPDIR/out" 2>&1 ||
  fail "the commit: $(cat "$TMPDIR/out")"
txfs -C mnt undo >/dev/null

# What is not everyday is held.
cd mnt
while read -r rule path attempt; do
  sh -c "$attempt" 2>"$TMPDIR/err" || fail "refused: $attempt: $(cat "$TMPDIR/err")"
  cd ..
  contains " $(held) " " $rule:$path "
  txfs -C mnt discard >/dev/null
  cd mnt
done <<'END'
txfs-git-hooks .git/hooks/post-commit echo x >.git/hooks/post-commit
txfs-git-hooks-kept .git/hooks/pre-commit rm .git/hooks/pre-commit
txfs-git-hooks .git/hooks/pre-commit chmod 777 .git/hooks/pre-commit
txfs-git-hooks-kept .git/hooks/pre-commit mv .git/hooks hooks
txfs-git-hooks .git/modules/library/hooks/post-checkout mkdir -p .git/modules/library/hooks; echo x >.git/modules/library/hooks/post-checkout
txfs-git-config .git/config sed -i "s/bare = false/pager = evil/" .git/config
txfs-git-config .git/config git config core.fsmonitor evil
txfs-git-config .git/config git remote set-url origin https://evil.example/
txfs-git-file .git/commondir echo ../src >.git/commondir
txfs-git-file library/.git echo "gitdir: ../src" >library/.git
txfs-env-files .env echo B=2 >>.env
txfs-env-files .env sed -i s/A/B/ .env
txfs-keys service/tls.key echo more >>service/tls.key
txfs-editor-tasks .vscode/tasks.json echo {} >.vscode/tasks.json
txfs-settings-link .claude ln -s src .claude
txfs-settings-link .claude ln -s src x; mv x .claude
txfs-settings-link .claude/hooks ln -s src x; mkdir .claude; mv -T x .claude/hooks
txfs-agent-settings .claude/settings.json mkdir .claude; echo {} >.claude/settings.json
txfs-git-link e.git/hooks ln -s src x; mkdir e; mv x e/hooks; mv e e.git
txfs-git-hooks e.git/hooks/update mkdir -p e/hooks; echo x >e/hooks/update; mv e e.git
txfs-ci .github/workflows/ci.yml echo jobs >>.github/workflows/ci.yml
txfs-ci .github/workflows/ci.yml mv .github ci
txfs-ci .gitlab-ci.yml echo stages >.gitlab-ci.yml
txfs-ci-link .circleci ln -s src .circleci
END

# What no history brings back is refused.
for attempt in 'git clean -fdx' 'git clean -fdX service' 'mv .git git' 'rm .env' 'mv .env env' \
  'rm .git/HEAD' 'rm .git/config' 'rm .git/refs/heads/*' 'rm service/tls.key' 'mkdir node_modules; mv service node_modules/'; do
  sh -c "$attempt" >/dev/null 2>&1 && fail "not refused: $attempt"
done
cd ..
contains "$(txfs -C mnt log --denied)" "because of: service/"
contains "$(txfs why mnt/service/.env)$(txfs why mnt/service/tls.key)" "service -> node_modules/service"
rmdir mnt/node_modules
equal "" "$(txfs -C mnt diff --name-status)" "what was changed after all"
rm -rf mnt/.git 2>/dev/null && fail "not refused: rm -rf .git"
equal "txfs-git-hooks-kept:.git/hooks/pre-commit" "$(held)" "what rm -rf .git has removed"
quietly git -C mnt fsck
equal "$(git -C ws log --all --oneline)" "$(git -C mnt log --all --oneline)" "what is left of .git"
txfs -C mnt discard
txfs umount mnt

# Whoever mounts may do without.
refuses_with_hint 1 'no built-in rule has the id "txfs-nope"' txfs mount ws mnt --without-rule txfs-nope
txfs mount ws mnt --without-rule txfs-ci
echo 'jobs: {}' >>mnt/.github/workflows/ci.yml
txfs -C mnt policy reload >/dev/null
echo 'more: {}' >>mnt/.github/workflows/ci.yml
echo 'B=2' >>mnt/.env
equal "txfs-env-files:.env" "$(held)" "with another rule left out"
contains "$(txfs -C mnt policy show)" txfs-editor-tasks
! txfs -C mnt policy show | grep -q 'txfs-ci ' || fail "shown although it is left out"
txfs umount mnt
txfs -C ws discard
txfs mount ws mnt -o without_rule=txfs-ci
echo 'jobs: {}' >>mnt/.github/workflows/ci.yml
txfs umount mnt
txfs -C ws discard
txfs mount ws mnt --no-default-policy
echo 'B=2' >>mnt/.env
txfs umount mnt
txfs -C ws discard
txfs mount ws mnt -o no_default_policy
echo 'B=2' >>mnt/.env
txfs umount mnt
