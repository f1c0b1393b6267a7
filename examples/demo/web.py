"""The demo's pages, on loopback, without any file or request from elsewhere."""

from __future__ import annotations

import json
import threading
import time
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Callable

from caches import Memcached
from halves import Half
from load import Load
from shop import CATEGORIES, PRODUCTS, SEARCHES, USERS, Shop

#: The largest body of a request, in bytes: a few words as JSON.
BODY_MAX = 4096

#: Seconds between two edits while the demo edits by itself, and how many edits the page lists.
EDIT_EVERY, EDITS_SHOWN = 2.0, 8

FILES = {"/": "page.html", "/page.js": "page.js", "/page.css": "page.css", "/shop.css": "shop.css"}
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; frame-ancestors 'self'"

#: How many pages there are of each kind.
PAGES = {"product": PRODUCTS, "category": CATEGORIES, "search": SEARCHES, "best": 1}


class Demo:
    """Both halves and what the buttons do."""

    def __init__(self, shop: Shop, halves: dict[str, Half], rate: float, seed: int) -> None:
        self.shop, self.halves, self.rate, self.seed = shop, halves, rate, seed
        self.edits: list[dict] = []
        self._count = 0
        self._lock = threading.Lock()
        self._loads: list[Load] = []
        self._editing = threading.Event()
        threading.Thread(target=self._edit_for_ever, daemon=True).start()

    def edit(self, product: int) -> dict:
        """Changes a price, commits, and tells both caches."""
        with self._lock:
            price, edits = self.shop.edit(product)
            removed = {name: half.edited(product, edits) for name, half in self.halves.items()}
            self._count += 1
            edit = {"number": self._count, "product": product, "price": price, "showing": len(self.shop.showing(product)), "removed": removed}
            self.edits = [edit, *self.edits][:EDITS_SHOWN]
        return edit

    def _edit_for_ever(self) -> None:
        number = 0
        while True:
            self._editing.wait()
            number += 1
            self.edit(1 + (number * 37) % PRODUCTS)
            time.sleep(EDIT_EVERY)

    def set_load(self, on: bool) -> None:
        with self._lock:
            for load in self._loads if not on else []:
                load.stop()
            if on and not self._loads:
                self._loads = [Load(half, self.rate, self.seed) for half in self.halves.values()]
            elif not on:
                self._loads = []

    def set_editing(self, on: bool) -> None:
        (self._editing.set if on else self._editing.clear)()

    def set_way(self, way: str) -> None:
        """Another way to use memcached begins with an empty memcached, and so does the other half."""
        cache = self.halves["memcached"].cache
        if not isinstance(cache, Memcached) or way not in Memcached.WAYS:
            raise ValueError(way)
        with self._lock:
            cache.way = way
            for half in self.halves.values():
                half.cache.connection.ask(b"flush_all\r\n")
                half.cache.connection.line()
                half.forget()

    def warm(self) -> None:
        """Every page once, in both halves. This is not counted."""
        pages = [(kind, number) for kind, count in PAGES.items() for number in range(1, count + 1)]
        visits = [(kind, number if kind == "product" else number - 1, 1 + at % USERS) for at, (kind, number) in enumerate(pages)]
        threads = [
            threading.Thread(target=lambda half=half, part=part: [half.visit(*visit) for visit in visits[part::6]])
            for half in self.halves.values()
            for part in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for half in self.halves.values():
            half.begin()

    def state(self) -> dict:
        memcached = self.halves["memcached"].cache
        return {
            "halves": {name: half.figures() for name, half in self.halves.items()},
            "edits": self.edits,
            "load": bool(self._loads),
            "editing": self._editing.is_set(),
            "way": memcached.way,
            "ways": Memcached.WAYS,
            "names": self.shop.names,
            "products": PRODUCTS,
            "rate": self.rate,
            "make_ms": self.shop.wait * 1000,
        }

    def page(self, name: str, kind: str, number: int, user: int) -> str:
        """A page of the shop, in which each fragment says where it came from."""
        pieces = self.halves[name].visit(kind, number, user)
        made = sum(piece.made for piece in pieces)
        parts = [f'<p id=sum data-made={made} data-pieces={len(pieces)}>{made} of {len(pieces)} fragments made for this visit</p>']
        for piece in pieces:
            kept = "from the cache" if not piece.made else f"made now, queries: {piece.queries}"
            mark = "made" if piece.made else "kept"
            parts.append(f'<section class={mark}><i>{escape(piece.name)}: {kept}</i>{piece.html}</section>')
        head = "<!doctype html><meta charset=utf-8><title>Shop</title><link rel=stylesheet href=/shop.css>"
        return head + "".join(parts)


def handler(demo: Demo, port: Callable[[], int]) -> type[BaseHTTPRequestHandler]:
    """What answers requests. Other web pages cannot post here, nor read the answers under another name."""

    actions: dict[str, Callable[[dict], object]] = {
        "/edit": lambda body: demo.edit(_within(int(body["product"]), 1, PRODUCTS)),
        "/load": lambda body: demo.set_load(bool(body["on"])),
        "/editing": lambda body: demo.set_editing(bool(body["on"])),
        "/way": lambda body: demo.set_way(str(body["way"])),
        "/warm": lambda body: demo.warm(),
    }

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
            path = self.path.partition("?")[0]
            if not self._ours():
                return self._answer(403, "text/plain", "another host's name")
            if path in FILES:
                file = Path(__file__).with_name(FILES[path])
                return self._answer(200, TYPES[file.suffix], file.read_text())
            if path == "/state":
                return self._answer(200, "application/json", json.dumps(demo.state()))
            try:
                _, shop, name, kind, number, user = path.split("/")
                page = demo.page(name, *_page(kind, int(number), int(user)))
            except (ValueError, KeyError):
                return self._answer(404, "text/plain", "no such page")
            return self._answer(200, "text/html", page)

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


def _within(number: int, least: int, most: int) -> int:
    if not least <= number <= most:
        raise ValueError(number)
    return number


def _page(kind: str, number: int, user: int) -> tuple[str, int, int]:
    first = 1 if kind == "product" else 0
    return kind, _within(number, first, first + PAGES[kind] - 1), _within(user, 1, USERS)


class Server(ThreadingHTTPServer):
    """On loopback only."""

    daemon_threads = True

    def __init__(self, port: int, demo: Demo) -> None:
        super().__init__(("127.0.0.1", port), handler(demo, lambda: self.server_port))
