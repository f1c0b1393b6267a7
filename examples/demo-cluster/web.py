"""A demo's page, on loopback, without any file or request from elsewhere."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Callable, Dict

#: The largest body of a request, in bytes: a few words as JSON.
BODY_MAX = 4096

FILES = {"/": "page.html", "/page.js": "page.js", "/page.css": "page.css"}
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'"

#: What buttons want: paths, and what is done with the body of a request. A ValueError is the answer 400.
Actions = Dict[str, Callable[[dict], object]]


def handler(folder: Path, state: Callable[[], dict], actions: Actions, port: Callable[[], int]) -> type[BaseHTTPRequestHandler]:
    """What answers requests. Other web pages cannot post here, nor read the answers under another name."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Nothing: the terminal is for people."""

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def _ours(self) -> bool:
            return self.headers.get("Host") in (f"127.0.0.1:{port()}", f"localhost:{port()}")

        def do_GET(self) -> None:
            if not self._ours():
                return self._answer(403, "text/plain", "another host's name")
            if self.path in FILES:
                file = folder / FILES[self.path]
                return self._answer(200, TYPES[file.suffix], file.read_text())
            if self.path == "/state":
                return self._answer(200, "application/json", json.dumps(state()))
            return self._answer(404, "text/plain", "no such page")

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if not self._ours() or self.headers.get("Content-Type") != "application/json" or length > BODY_MAX:
                self.close_connection = True
                return self._answer(403, "text/plain", "not from this page")
            try:
                done = actions[self.path](json.loads(self.rfile.read(length) or b"{}"))
            except (KeyError, ValueError, TypeError) as why:
                return self._answer(400, "text/plain", f"not understood: {why!r}")
            return self._answer(200, "application/json", json.dumps(done))

    return Handler


class Server(ThreadingHTTPServer):
    """On loopback only, with the page of this folder."""

    daemon_threads = True

    def __init__(self, port: int, folder: Path, state: Callable[[], dict], actions: Actions) -> None:
        super().__init__(("127.0.0.1", port), handler(folder, state, actions, lambda: self.server_port))
