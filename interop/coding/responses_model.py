"""A model over OpenAI's Responses API that calls one tool, and then says what came of it.

    python3 responses_model.py --tool mcp__rialto.desk_greet --arguments '{"name": "Ann"}' --port 0    prints READY and its address
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import wire_openai
from turns import Call, Say, Turn


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tool = ""
    arguments: dict[str, Any] = {}

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, kind, said = wire_openai.answer(self._step, self.path.split("?")[0], body) or (404, "application/json", b"{}")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST

    def _step(self, turn: Turn) -> Call | Say:
        if turn.results:
            return Say(f"{turn.results[-1].tool} returned: {turn.results[-1].text}")
        if self.tool in turn.tools:
            return Call(self.tool, self.arguments)
        return Say(f"{self.tool} is not among the tools: {', '.join(sorted(turn.tools))}")

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--arguments", type=json.loads, default={})
    parser.add_argument("--port", type=int, default=0)
    chosen = parser.parse_args()
    Handler.tool, Handler.arguments = chosen.tool, chosen.arguments
    server = ThreadingHTTPServer(("127.0.0.1", chosen.port), Handler)
    server.daemon_threads = True
    print(f"READY http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
