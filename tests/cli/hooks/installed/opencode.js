// Made by `txfs hook install opencode`; `txfs hook uninstall opencode` removes it.
import { spawnSync } from "node:child_process"

const judged = new Set(["bash", "edit", "multiedit", "write", "patch", "apply_patch"])

export const Txfs = async ({ directory }) => {
  const hook = (event, { tool, sessionID, callID }, args) =>
    spawnSync("txfs", ["hook", "opencode"], {
      input: JSON.stringify({ event, tool, sessionID, callID, args, cwd: directory }),
      encoding: "utf8", cwd: directory, timeout: 30000,
    })
  return {
    "tool.execute.before": async (input, output) => {
      if (!judged.has(input.tool)) return
      let answer = {}
      try {
        answer = JSON.parse(hook("tool.execute.before", input, output.args).stdout) ?? {}
      } catch {}
      if (answer.decision === "allow") return
      throw new Error(answer.reason ?? "txfs hook opencode gives no answer; run txfs doctor")
    },
    "tool.execute.after": async (input) => {
      if (judged.has(input.tool)) hook("tool.execute.after", input, input.args)
    },
  }
}
