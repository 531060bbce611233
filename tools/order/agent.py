#!/usr/bin/env python3
"""A small agent of A2A 0.3 that answers at once. It says where it is, and lives for as long as its standard input is open."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RESULT = {
    "kind": "task",
    "id": "task-1",
    "contextId": "context-1",
    "status": {"state": "completed"},
    "artifacts": [{"artifactId": "a", "parts": [{"kind": "data", "data": {"text": 'an answer with "words" in it ' * 30}}]}],
}


class Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        skill = {"id": "echo", "name": "echo", "description": "Says it again", "tags": ["order"]}
        self.say({
            "protocolVersion": "0.3.0",
            "name": "Order",
            "description": "An agent that answers at once",
            "url": f"http://127.0.0.1:{self.server.server_port}/",
            "version": "1",
            "capabilities": {},
            "defaultInputModes": ["application/json"],
            "defaultOutputModes": ["application/json"],
            "skills": [skill],
        })

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.say({"jsonrpc": "2.0", "id": asked["id"], "result": RESULT})


server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
