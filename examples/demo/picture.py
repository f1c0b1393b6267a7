"""Takes the picture of the demo under load: python3 examples/demo/picture.py PROGRAM FOLDER

It needs Chromium, and the packages that `make tools` fetches.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    program, folder = sys.argv[1:]
    command = [sys.executable, "-B", str(Path(__file__).with_name("demo.py")), "--program", program, "--port", "0"]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        page = next(line.split()[-1] for line in demo.stdout if line.startswith("the shop:"))
        picture = str(Path(folder).resolve() / "demo.png")
        given = {"DEMO_URL": page, "DEMO_PICTURE": picture, "DEMO_SECONDS": "30"}
        modules = {"NODE_PATH": str(ROOT / "target/drivers/console/node_modules")}
        subprocess.run(["node", str(ROOT / "tests/drivers/demo/demo.js")], check=True, env={**os.environ, **given, **modules})
    finally:
        demo.terminate()
        demo.wait()


if __name__ == "__main__":
    main()
