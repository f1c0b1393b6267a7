"""The shop: products in a database, and pages made of fragments. Both halves of the demo run this code."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from dataclasses import dataclass

PRODUCTS, CATEGORIES, SEARCHES, USERS = 120, 12, 30, 40

#: Bought together, found by a search, seen by a user, sold best: so many products each.
ALSO, FOUND, SEEN, BEST = 4, 6, 5, 8

ADJECTIVES = ["Acme", "Borea", "Cedar", "Delta", "Ember", "Fjord", "Grove", "Harbor", "Iris", "Juno"]
NOUNS = ["lamp", "chair", "desk", "shelf", "rug", "clock", "vase", "stool", "mirror", "bench", "basket", "screen"]

SCHEMA = """
CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT, category INT, price INT, edits INT DEFAULT 0);
CREATE TABLE review (product INT, reader TEXT, stars INT);
CREATE INDEX review_product ON review (product);
CREATE TABLE listing (name TEXT, position INT, product INT, PRIMARY KEY (name, position));
"""


@dataclass(frozen=True)
class Made:
    """A fragment as it was made: its text, and how many queries that took."""

    html: str
    queries: int


class Shop:
    """The shop's database, and what makes a fragment of it.

    ``wait`` is in seconds: it stands for the template and for a database on another machine.
    """

    def __init__(self, wait: float = 0.005, seed: int = 17) -> None:
        self.wait = wait
        self._lock = threading.Lock()
        self._db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._db.executescript(SCHEMA)
        self._fill(random.Random(seed))
        self.names = self._names()

    def _fill(self, chance: random.Random) -> None:
        products = range(1, PRODUCTS + 1)
        for product in products:
            name = f"{chance.choice(ADJECTIVES)} {NOUNS[product % CATEGORIES]}"
            price = chance.randrange(10, 200)
            self._db.execute("INSERT INTO product VALUES (?, ?, ?, ?, 0)", (product, name, product % CATEGORIES, price))
            for _ in range(3):
                row = (product, f"reader {chance.randrange(100)}", chance.randrange(3, 6))
                self._db.execute("INSERT INTO review VALUES (?, ?, ?)", row)
        self._list("best", chance.sample(products, BEST))
        for product in products:
            self._list(f"also:{product}", chance.sample([other for other in products if other != product], ALSO))
        for category in range(CATEGORIES):
            self._list(f"category:{category}", [each for each in products if each % CATEGORIES == category])
        for search in range(SEARCHES):
            self._list(f"search:{search}", chance.sample(products, FOUND))
        for user in range(1, USERS + 1):
            self._list(f"seen:{user}", chance.sample(products, SEEN))

    def _list(self, name: str, products: list[int]) -> None:
        rows = [(name, position, product) for position, product in enumerate(products)]
        self._db.executemany("INSERT INTO listing VALUES (?, ?, ?)", rows)

    def _names(self) -> list[str]:
        """All fragments there are, in the order of the map."""
        names = [f"{kind}:{product}" for product in range(1, PRODUCTS + 1) for kind in ("product", "reviews", "also")]
        names += [f"category:{category}" for category in range(CATEGORIES)]
        names += [f"search:{search}" for search in range(SEARCHES)]
        return [*names, *(f"seen:{user}" for user in range(1, USERS + 1)), "best"]

    def _query(self, statement: str, *values: object) -> list[tuple]:
        with self._lock:
            return self._db.execute(statement, values).fetchall()

    def fragments(self, kind: str, number: int, user: int) -> list[str]:
        """What a page consists of."""
        body = {
            "product": [f"product:{number}", f"reviews:{number}", f"also:{number}"],
            "category": [f"category:{number}"],
            "search": [f"search:{number}"],
        }.get(kind, ["best"])
        return [*body, f"seen:{user}"]

    def edit(self, product: int) -> tuple[int, int]:
        """Raises a price by one. Returns it, and how often the product was edited. The change is committed."""
        change = "UPDATE product SET price = price + 1, edits = edits + 1 WHERE id = ? RETURNING price, edits"
        return self._query(change, product)[0]

    def showing(self, product: int) -> set[str]:
        """The fragments that show a product's price, as the database knows: what an edit should remove."""
        rows = self._query("SELECT name FROM listing WHERE product = ?", product)
        return {f"product:{product}", *(name for (name,) in rows)}

    def make(self, fragment: str) -> Made:
        """Makes a fragment. A comment in it says which products it shows; the cache makes a column of that."""
        kind, _, number = fragment.partition(":")
        if kind == "reviews":
            rows = self._query("SELECT reader, stars FROM review WHERE product = ?", int(number))
            time.sleep(self.wait)
            items = "".join(f"<li>{reader}: {'*' * stars}</li>" for reader, stars in rows)
            return Made(f"<!--reviews:{number}--><h3>Reviews</h3><ul>{items}</ul>", 1)
        if kind == "product":
            found = self._query("SELECT id, name, price, edits FROM product WHERE id = ?", int(number))
            made = Made(f"<h2>{found[0][1]}</h2><p class=price>{_price(found[0])}</p>", 1)
        else:
            found, made = self._listed(fragment, kind, number)
        time.sleep(self.wait)
        shows = ",".join(str(row[0]) for row in found)
        return Made(f"<!--shows:{shows}-->{made.html}", made.queries)

    def _listed(self, fragment: str, kind: str, number: str) -> tuple[list[tuple], Made]:
        """A list takes a query for its products, and one for each of them, as an ORM does it."""
        listed = self._query("SELECT product FROM listing WHERE name = ? ORDER BY position", fragment)
        found = [self._query("SELECT id, name, price, edits FROM product WHERE id = ?", product)[0] for product, in listed]
        title = {"also": "Bought together", "seen": f"Seen by user {number}", "best": "Our best"}.get(kind, fragment)
        items = "".join(f'<li><a href="/#product/{row[0]}" target=_top>{row[1]}</a> {_price(row)}</li>' for row in found)
        return found, Made(f"<h3>{title}</h3><ul>{items}</ul>", 1 + len(found))


def _price(row: tuple) -> str:
    """A price, marked with the number of edits that it has seen: old ones are found by it."""
    return f'<b data-product="{row[0]}" data-edits="{row[3]}">{row[2]}.00</b>'
