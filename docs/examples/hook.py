#!/usr/bin/env python3
"""A hook of txfs: large deletions are asked about, lock files are npm's to change.

docs/policy.md says what the lines are."""

import base64
import json
import os
import sys


def path_of(value):
    """A path as bytes: JSON has those that are no UTF-8 in base64."""
    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return value.encode()


def decide(question):
    names = question["names"]
    if sum(name["effect"] == "remove" for name in names) > 3:
        return "ask", "it removes many files at once"
    program = os.path.basename(path_of(question["exe"]))
    for name in names:
        is_lock = path_of(name["path"]).endswith(b"package-lock.json")
        if is_lock and program not in (b"node", b"npm"):
            return "deny", "npm writes this file"
    return "allow", ""


for line in sys.stdin:
    question = json.loads(line)
    verdict, reason = decide(question)
    answer = {"id": question["id"], "verdict": verdict, "reason": reason}
    print(json.dumps(answer), flush=True)
