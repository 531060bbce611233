"""A model for coding agents that are driven over ACP: Google's API, and it does what the words of the last message say.

    python3 acp_model.py --port 0        prints READY and its address
"""

import argparse
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import wire_gemini
from turns import Call, Say, Turn


def step(asked: dict[str, Any]) -> Call | Say:
    contents = asked.get("contents", [])
    said = [part["text"] for one in contents if one.get("role") == "user" for part in one.get("parts", []) if part.get("text")]
    last = contents[-1].get("parts", []) if contents else []
    responses = [part["functionResponse"] for part in last if "functionResponse" in part]
    if responses:
        return Say("told: " + json.dumps(responses[-1].get("response"))[:300])
    words = "\n".join(part.get("text", "") for part in last)
    if "please touch" in words:
        return Call("run_shell_command", {"command": "touch made.txt", "description": "makes a file"})
    if "please count" in words:
        return Say(f"counted {sum(text.count('please count') for text in said)}")
    if "please look" in words:
        return Say("seen" if "hello from the file" in words and "notes.txt" in words else "nothing seen")
    if "please wait" in words:
        time.sleep(8)
        return Say("waited")
    return Say("what?")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))

        def next(turn: Turn) -> Call | Say:
            return step(json.loads(body)) if turn.tools else Say('{"title": "a conversation"}')

        status, kind, said = wire_gemini.answer(next, self.path.split("?")[0], body) or (404, "application/json", b"{}")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    print(f"READY http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
