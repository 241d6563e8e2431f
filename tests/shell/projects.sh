#!/bin/bash
# Projects of each kind, begun from nothing by an agent, with CI and editor files:
# nothing is refused, and exactly these files are held.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 git

export GIT_CONFIG_GLOBAL=$HOME/.gitconfig
git config --global init.defaultBranch main

quietly() {
  "$@" >"$TMPDIR/quiet" 2>&1 || fail "$*: $(cat "$TMPDIR/quiet")"
}

# What each of them has, in the current directory.
around() {
  quietly git init
  mkdir -p .github/workflows .vscode .devcontainer
  printf 'on: push\njobs: {}\n' >.github/workflows/ci.yml
  echo '{"tasks": []}' >.vscode/tasks.json
  echo '{"recommendations": []}' >.vscode/extensions.json
  echo '{"image": "debian"}' >.devcontainer/devcontainer.json
  echo 'Read this.' >AGENTS.md
  echo 'A=1' >.env
  echo 'A=' >.env.example
}

cmake_project() {
  mkdir -p src
  echo 'int main() { return 0; }' >src/main.cc
  printf 'cmake_minimum_required(VERSION 3.20)\nproject(p CXX)\nadd_executable(p src/main.cc)\n' >CMakeLists.txt
  printf '/build\n.env\n' >.gitignore
  if command -v cmake >/dev/null && command -v g++ >/dev/null; then
    quietly cmake -S . -B build
    quietly cmake --build build
  fi
}

npm_project() {
  mkdir -p node_modules/dep/.github/workflows node_modules/dep/.vscode node_modules/.bin src
  echo '{"name": "p", "scripts": {"test": "node src/test.js"}}' >package.json
  echo '{"name": "dep"}' >node_modules/dep/package.json
  echo 'on: push' >node_modules/dep/.github/workflows/ci.yml
  echo '{}' >node_modules/dep/.vscode/settings.json
  ln -s ../dep/cli.js node_modules/.bin/dep
  echo 'process.exit(0)' >src/test.js
  printf 'node_modules\n.env\n' >.gitignore
  printf 'registry=https://registry.npmjs.org/\n' >.npmrc
}

cargo_project() {
  mkdir -p src target/debug .cargo
  echo 'fn main() {}' >src/main.rs
  printf '[package]\nname = "p"\nversion = "0.1.0"\n' >Cargo.toml
  printf '[build]\ntarget-dir = "target"\n' >.cargo/config.toml
  echo binary >target/debug/p
  printf 'target\n.env\n' >.gitignore
}

python_project() {
  local pip=
  python3 -c 'import ensurepip' 2>/dev/null || pip=--without-pip
  quietly python3 -m venv $pip .venv
  # As setuptools and editable installs do.
  local site
  site=$(echo .venv/lib/python3*/site-packages)
  echo "import os; var = 'SETUPTOOLS'" >"$site/distutils-precedence.pth"
  echo "$PWD/src" >"$site/__editable__.p.pth"
  mkdir -p src/p tests
  echo 'x = 1' >src/p/__init__.py
  printf '[project]\nname = "p"\n' >pyproject.toml
  printf '.venv\n.env\n' >.gitignore
  quietly .venv/bin/python -m compileall -q src
}

go_project() {
  mkdir -p cmd/p vendor/example.org/dep
  echo 'package main' >cmd/p/main.go
  printf 'module example.org/p\n\ngo 1.21\n' >go.mod
  echo 'package dep' >vendor/example.org/dep/dep.go
  printf '/p\n.env\n' >.gitignore
}

for kind in cmake npm cargo python go; do
  mkdir "$kind" mnt
  txfs mount "$kind" mnt
  (
    cd mnt
    around
    "${kind}_project"
    quietly git add -A
    quietly git commit -m begun
    quietly git remote add origin https://example.org/p.git
    quietly git checkout -b topic
    quietly git branch -u main
  )
  equal "" "$(txfs -C mnt log --denied)" "what was refused in $kind"
  equal "txfs-ci:.github/workflows/ci.yml txfs-editor-tasks:.devcontainer/devcontainer.json\
 txfs-editor-tasks:.vscode/tasks.json" "$(txfs -C mnt commit --dry-run --json 2>/dev/null |
    json '" ".join(sorted(x["rule"] + ":" + x["path"] for x in d["held"]))')" "what is held in $kind"
  refuses 4 "3 changes are held for review" txfs -C mnt commit
  txfs -C mnt commit --accept .github/workflows/ci.yml --accept .vscode/tasks.json \
    --accept .devcontainer/devcontainer.json >"$TMPDIR/out" 2>&1 || fail "$kind: $(cat "$TMPDIR/out")"
  equal "" "$(txfs -C mnt diff --name-status)" "what is left of $kind"
  # A path that Python runs in an environment that was there before.
  if [ "$kind" = python ]; then
    site=$(cd mnt && echo .venv/lib/python3*/site-packages)
    echo "import evil" >"mnt/$site/zzz.pth"
    refuses 4 "1 change is held for review" txfs -C mnt commit
    contains "$(cat "$TMPDIR/err")" "    import evil"
  fi
  txfs umount mnt
  rmdir mnt
  quietly git -C "$kind" fsck
done
