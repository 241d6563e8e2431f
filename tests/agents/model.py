#!/usr/bin/env python3
"""Answers agents in the place of a model: each line of STEPS is a shell command.

usage: model.py STEPS LOG DIRECTORY

A step "write NAME TEXT" is for the agent's own tool, which makes DIRECTORY/NAME.
Prints its port on loopback. The number of results in a conversation is the
number of the next step; after the last step the answer is a text. LOG gets each
conversation's last turn, and "step N" for each step that was given.
"""

import http.server
import json
import sys

with open(sys.argv[1]) as file:
    steps = file.read().splitlines()
log = open(sys.argv[2], "a", buffering=1)
DIRECTORY = sys.argv[3]
SHELLS = {"Bash", "bash", "exec_command", "shell_command", "run_shell_command"}
# Codex has no such tool, but knows apply_patch as a command.
WRITERS = {"Write": "file_path", "write_file": "file_path", "write": "filePath"}
PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {}\n+{}\n*** End Patch\nEOF"
RESULTS = {"tool_result", "function_call_output"}


def walk(value):
    """All objects in a JSON value."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(item)


def next_call(request, turns):
    """The tool to call and its arguments, or None."""
    names = {x["name"] for x in walk(request.get("tools")) if isinstance(x.get("name"), str)}
    shell = next(iter(names & SHELLS), None)
    done = sum(x.get("type") in RESULTS or x.get("role") == "tool" or "functionResponse" in x for x in walk(turns))
    log.write(json.dumps(turns[-1:])[:4000] + "\n")
    if shell is None or done >= len(steps):
        return None
    log.write(f"step {done + 1}\n")
    command = steps[done]
    if command.startswith("write "):
        _, name, text = command.split(" ", 2)
        command = PATCH.format(name, text)
        for tool in names & WRITERS.keys():
            return tool, {WRITERS[tool]: f"{DIRECTORY}/{name}", "content": text + "\n"}, f"call_{done}"
    key = "cmd" if shell == "exec_command" else "command"
    return shell, {key: command, "description": "a step"}, f"call_{done}"


def messages(request):
    call = next_call(request, request["messages"])
    block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}
    if call:
        block = {"type": "tool_use", "name": call[0], "input": {}, "id": call[2]}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    reason, usage = "tool_use" if call else "end_turn", {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    if not request.get("stream"):
        return [{**message, "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"}]
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    ]


def responses(request):
    call = next_call(request, request["input"])
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
    if call:
        item = {"type": "function_call", "call_id": call[2], "name": call[0], "arguments": json.dumps(call[1])}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    ]


def completions(request):
    call = next_call(request, request["messages"])
    delta = {"role": "assistant", "content": "done"}
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": call[2], "type": "function", "function": function}]}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}
    return [{**head, "choices": [{"index": 0, "delta": delta}]}, {**head, "choices": [end]}]


def generate(request):
    call = next_call(request, request["contents"])
    part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": "done"}
    content = {"role": "model", "parts": [part]}
    return [{"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}]


APIS = {"/messages": messages, "/responses": responses, "/completions": completions, "enerateContent": generate}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.reply("application/json", '{"data": []}')

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "{}")
        path = self.path.split("?")[0]
        answer = next((APIS[end] for end in APIS if path.endswith(end)), None)
        events = answer(request) if answer else [{}]
        if not request.get("stream") and "stream" not in path:
            return self.reply("application/json", json.dumps(events[0]))
        named = [(f"event: {e['type']}\n" if "type" in e else "") + f"data: {json.dumps(e)}\n\n" for e in events]
        self.reply("text/event-stream", "".join(named) + ("data: [DONE]\n\n" if answer is completions else ""))

    def reply(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
