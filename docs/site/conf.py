"""How Sphinx makes the documents of this repository a site: `make site`.

The documents are written for a reader of the repository, and nothing in them is for the site. Its navigation is what
docs/README.md lists; a page that stands in no list is an error, as is a link that leads nowhere."""

import re
import shutil
import tomllib
from pathlib import Path
from posixpath import dirname, join, normpath

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]

project = "sqlcached"
version = release = PACKAGE["version"]
copyright = "the authors of sqlcached"

extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "examples/*/README.md", "clients/**/README.md", "bench/**.md"]
exclude_patterns = ["target", "fuzz", "crates", "**/node_modules", "**/vendor"]
myst_heading_anchors = 6
# What is shown of a shell has prompts and answers of programs, and SQL has words that no lexer knows.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"sqlcached {version}"
html_favicon = str(ROOT / "crates/server/src/http/console/icon.svg")
html_show_sphinx = False
html_theme_options = {"source_repository": PACKAGE["repository"], "source_branch": "main", "source_directory": ""}

# A link or a picture in Markdown, outside code.
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
# A line of a list of documents: a table's last cell, or an item.
LISTED = re.compile(r"\]\(([^)\s#]+\.md)")


def leads(pages, page, target):
    """Where a link of a page leads on the site: what is no page is in the repository."""
    path, _, heading = target.partition("#")
    if "://" in target or target.startswith("mailto:") or not path:
        return target
    found = normpath(join(dirname(page), path))
    if found.removesuffix(".md") in pages or not (ROOT / found).exists() or found.endswith((".png", ".svg")):
        return target
    kind = "tree" if (ROOT / found).is_dir() else "blob"
    return f"{PACKAGE['repository']}/{kind}/v{version}/{found}" + (f"#{heading}" if heading else "")


def outside_code(text, change):
    """A text with each line outside fenced code changed."""
    fenced = False
    lines = []
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        lines.append(line if fenced else change(line))
    return "\n".join(lines)


def toctree(caption, pages):
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""])


def navigation(pages):
    """What docs/README.md lists, under its headings, and then the pages that are no documents."""
    index = (ROOT / "docs/README.md").read_text()
    listed, text = [], ""
    for part in index.split("\n## ")[1:]:
        heading, _, body = part.partition("\n")
        found = [normpath(join("docs", page)).removesuffix(".md") for page in LISTED.findall(body)]
        new = [page for page in dict.fromkeys(found) if page in pages and page not in listed]
        listed += new
        text += toctree(heading, new)
    others = sorted(page for page in pages - {root_doc, "docs/README", *listed} if not page.startswith("docs/"))
    return text + toctree("The project", ["docs/README", *others])


def read(app, name, source):
    pages = app.env.found_docs
    text = outside_code(source[0], lambda line: LINK.sub(lambda link: leads(pages, name, link.group()), line))
    source[0] = text + navigation(pages) if name == root_doc else text


def name_first_page(app, error):
    if error is None:
        shutil.copyfile(app.outdir / f"{root_doc}.html", app.outdir / "index.html")


def setup(app):
    app.connect("source-read", read)
    app.connect("build-finished", name_first_page)
