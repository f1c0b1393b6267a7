"""Draws the journal's figures: python3 bench/pictures.py [--check] docs/pictures

Each picture is drawn from a table of the journal, so no figure is written twice. With --check nothing is written: the
pictures that lie there must be those that would be drawn.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Iterator, List, Tuple

JOURNAL = Path(__file__).parent / "journal" / "2026-11-22-figures.md"
DATE = "Measured on 2026-11-22, two cores, Debian 12's servers."

#: Pixels: the picture, the names on the left, a bar with its room, what stands above the bars and below them.
WIDTH, NAMES, BAR, TOP, BOTTOM = 760, 280, 30, 50, 50

#: A bar's longest part of the width; its figure stands behind it.
REACH = WIDTH - NAMES - 110

STYLE = """text { font: 14px system-ui, sans-serif; fill: #1c2330 } .title { font-size: 17px; font-weight: 600 }
.note { font-size: 12px; fill: #5b6472 } .other { fill: #98a2b3 } .ours { fill: #1450b4 }
@media (prefers-color-scheme: dark) { text { fill: #e6e9ef } .note { fill: #a2abb9 } .other { fill: #667085 } .ours { fill: #7fb0ff } }"""


@dataclass(frozen=True)
class Bar:
    name: str
    figure: float
    text: str
    ours: bool


@dataclass(frozen=True)
class Picture:
    file: str
    title: str
    note: str
    bars: List[Bar]
    logarithmic: bool = False


def table(heading: str) -> Iterator[List[str]]:
    """The rows of the journal's table whose first heading begins so."""
    lines = JOURNAL.read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(f"| {heading}"))
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return
        yield [cell.strip().replace("**", "") for cell in line.strip("|").split("|")]


def number(cell: str) -> float:
    """The first number of a cell."""
    found = re.search(r"\d[\d,]*(?:\.\d+)?", cell)
    if not found:
        raise ValueError(f"no number in {cell!r}")
    return float(found.group().replace(",", ""))


def bar(name: str, figure: float, unit: str = "") -> Bar:
    text = f"{figure:,.0f}" if figure >= 10 else f"{figure:g}"
    return Bar(name, figure, f"{text} {unit}".strip(), name.startswith("sqlcached"))


def site() -> Picture:
    bars = [bar(row[0], number(row[1])) for row in table("3: a site under edits")]
    note = "Fragments made again while editors change pages; shorter is better."
    return Picture("site.svg", "A site under edits: what is made again", note, bars)


def user() -> Picture:
    names = {
        "sqlcached": "sqlcached, one DELETE",
        "memcached: flush and refill; one batch of known keys": "memcached, all keys known",
        "memcached, key by key": "memcached, key by key",
    }
    bars = [bar(names.get(row[0], row[0]), number(row[4]), "\u00b5s") for row in table("2: server CPU") if row[4]]
    note = "100 rows of 100,000, while 8 clients read; wall time, logarithmic; shorter is better."
    return Picture("user.svg", "Removing all that belongs to one user", note, bars, logarithmic=True)


def near() -> Picture:
    row = next(row for row in table("line | sqlcached | LMDB") if row[0].startswith("the same in wall time"))
    far = number(row[4].split("takes")[1])
    bars = [bar("sqlcached, shared memory", number(row[1]), "ns"), bar("memcached, get over a Unix socket", far, "ns")]
    return Picture("near.svg", "Reading a row on the same machine", "One row of 1,000 B, wall time; shorter is better.", bars)


def requests() -> Picture:
    rows = list(table("1: server CPU by memcached's"))
    sizes = ["64 B", "256 B", "1 KiB", "4 KiB", "16 KiB"]
    bars = []
    for row in rows:
        if row[0] in ("reads: sqlcached", "writes: sqlcached"):
            bars += [bar(f"sqlcached, {row[0].split(':')[0]} of {size}", number(cell)) for size, cell in zip(sizes, row[1:])]
    bars.append(Bar("memcached", 1.0, "1", False))
    note = "Server CPU by memcached's, mean size of values; shorter is better."
    return Picture("requests.svg", "memcached's own requests", note, bars)


def place(figure: float, picture: Picture) -> float:
    """How long a bar is, in pixels."""
    most = max(each.figure for each in picture.bars)
    if not picture.logarithmic:
        return REACH * figure / most
    least = min(each.figure for each in picture.bars) / 2
    return REACH * math.log(figure / least) / math.log(most / least)


def draw(picture: Picture) -> str:
    height = TOP + BAR * len(picture.bars) + BOTTOM
    spoken = "; ".join(f"{each.name}: {each.text}" for each in picture.bars)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">',
        f"<title>{escape(picture.title)}. {escape(spoken)}</title><style>{STYLE}</style>",
        f'<text class="title" x="12" y="28">{escape(picture.title)}</text>',
    ]
    for at, each in enumerate(picture.bars):
        y, length, kind = TOP + BAR * at, place(each.figure, picture), "ours" if each.ours else "other"
        parts += [
            f'<text x="{NAMES - 10}" y="{y + 16}" text-anchor="end">{escape(each.name)}</text>',
            f'<rect class="{kind}" x="{NAMES}" y="{y}" width="{length:.1f}" height="{BAR - 8}" rx="2"/>',
            f'<text x="{NAMES + length + 8:.1f}" y="{y + 16}">{escape(each.text)}</text>',
        ]
    parts.append(f'<text class="note" x="12" y="{height - 28}">{escape(picture.note)}</text>')
    parts.append(f'<text class="note" x="12" y="{height - 12}">{escape(DATE)}</text></svg>')
    return "\n".join(parts) + "\n"


def drawn() -> List[Tuple[str, str]]:
    return [(picture.file, draw(picture)) for picture in (site(), user(), near(), requests())]


def main() -> None:
    folder = Path(sys.argv[-1])
    for file, text in drawn():
        path = folder / file
        if "--check" not in sys.argv:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path} is not what the journal says; make pictures draws it")
    print(f"{len(drawn())} pictures")


if __name__ == "__main__":
    main()
