#!/usr/bin/env python3
"""Replays a recorded session of a host: replay.py HOST FILE DIRECTORY HOME

Calls `txfs hook HOST` with each input, in which @DIR@ is a mount, and compares
answer and exit code with the recorded ones. The words of reasons may differ.
"""

import json
import subprocess
import sys

host, path, directory, home = sys.argv[1:]


def shape(value):
    if not isinstance(value, dict):
        return value
    return {key: bool(v) if "eason" in key else shape(v) for key, v in value.items()}


with open(path) as file:
    lines = file.read().replace("@DIR@", directory).replace("@HOME@", home).splitlines()
for number, line in enumerate(lines, 1):
    call = json.loads(line)
    hook = subprocess.run(["txfs", "hook", host], input=json.dumps(call["in"]), capture_output=True, text=True, check=False)
    answer = json.loads(hook.stdout) if hook.stdout else None
    if shape(answer) != shape(call["out"]) or hook.returncode != call["code"] or hook.stderr:
        sys.exit(f"{path}:{number}: {hook.returncode} {hook.stdout}{hook.stderr}; recorded: {call['out']}")
print(len(lines))
