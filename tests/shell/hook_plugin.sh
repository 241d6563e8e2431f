#!/bin/sh
# The plugin that `txfs hook install opencode` writes, as OpenCode runs it: a call that
# is not allowed throws, whatever becomes of the hook.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3 shfmt
alone
command -v node >/dev/null || { echo "LEFT OUT: node is not installed" && exit 0; }

mkdir ws mnt empty
mkdir ws/build
echo x >ws/a
txfs mount ws mnt 2>/dev/null
mkdir project
(cd project && txfs hook install opencode --project >/dev/null 2>&1)
# For node, a module has another ending. One does not wait 30 s.
cp project/.opencode/plugins/txfs.js plugin.mjs
sed 's/timeout: 30000/timeout: 1000/' plugin.mjs >impatient.mjs
! cmp -s plugin.mjs impatient.mjs || fail "the plugin has no timeout"
cat >call.mjs <<'EOF2'
// call.mjs DIRECTORY EVENT TOOL ARGUMENTS: prints "runs", or the error that it throws.
const { Txfs } = await import(process.env.PLUGIN ?? "./plugin.mjs")
const [directory, event, tool, text] = process.argv.slice(2)
const args = text === "none" ? undefined : JSON.parse(text)
const plugin = await Txfs({ directory })
const input = { tool, sessionID: "ses_1", callID: "call_of_plugin" }
try {
  if (event === "before") await plugin["tool.execute.before"](input, { args })
  else await plugin["tool.execute.after"]({ ...input, args }, {})
  console.log("runs")
} catch (error) {
  console.log(`${error}`)
}
EOF2
node=$(command -v node)
call() { "$node" call.mjs "$@"; }
before() { call "$PWD/mnt" before "$@"; }
command_of() { printf '{"command":"%s","description":"x"}' "$1"; }

# Answers of the hook.
equal runs "$(before bash "$(command_of 'rm -r build')")" "what the mount takes back"
rmdir mnt/build
equal runs "$(call "$PWD/mnt" after bash "$(command_of 'rm -r build')")" "its end"
equal "[('opencode', 'ses_1', 'call_of_plugin', 'bash', 'rm -r build', True, 1)]" "$(txfs -C mnt log --calls --json |
  json '[(d["host"], d["session"], d["call"], d["tool"], d["command"], d["ended"] is not None, d["changes"])]')" "the mark"
equal runs "$(before write "{\"filePath\":\"$PWD/mnt/a\",\"content\":\"x\"}")" "a file in the mount"
contains "$(before bash "$(command_of 'git push --force')")" "Error: txfs: it rewrites or deletes branches of a remote"
contains "$(before bash "$(command_of 'rm -rf /')")" "(rule txfs-cmd-remove-everything)"
contains "$(before write "{\"filePath\":\"$HOME/.bashrc\",\"content\":\"x\"}")" "Error: txfs: "
contains "$(before patch "{\"patchText\":\"*** Begin Patch\\n*** Add File: $HOME/.ssh/authorized_keys\\n+x\\n*** End Patch\"}")" "Error: txfs"
contains "$(before bash '{"script":"ls"}')" "Error: txfs refuses this call"
contains "$(before bash none)" "Error: txfs refuses this call"
for tool in edit multiedit write patch apply_patch; do
  contains "$(before $tool '{}')" "Error: txfs refuses this call"
done

# Without an answer. What is not judged needs none.
ls_call=$(command_of ls)
equal runs "$(before bash "$ls_call")" "ls"
failed="Error: txfs hook opencode gives no answer; run txfs doctor"
# no_answer PATH
no_answer() {
  contains "$(PATH=$1 before bash "$ls_call")" "$failed"
  equal runs "$(PATH=$1 before read '{"filePath":"/etc/passwd"}')" "a tool that is not judged"
  equal runs "$(PATH=$1 call "$PWD/mnt" after bash "$ls_call")" "the end of a call"
}
no_answer "$PWD/empty"
mkdir broken
touch broken/txfs
no_answer "$PWD/broken"
chmod 755 broken/txfs
for script in 'exit 0' 'exit 1' 'kill -KILL $$' 'echo allow' 'echo "[\"allow\"]"' \
  'echo "{\"decision\":\"allow\""' 'echo "{\"decision\":\"ask\"}"'; do
  printf '#!/bin/sh\n%s\n' "$script" >broken/txfs
  no_answer "$PWD/broken:/usr/bin:/bin"
done
printf '#!/bin/sh\nexec sleep 100\n' >broken/txfs
export PLUGIN=./impatient.mjs
no_answer "$PWD/broken:/usr/bin:/bin"
unset PLUGIN
printf '#!/bin/sh\necho null\n' >broken/txfs
no_answer "$PWD/broken"
contains "$(call "$PWD/gone" before bash "$ls_call")" "$failed"
