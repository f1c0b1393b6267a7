"""Three servers of NATS and three caches on this machine, which can be killed, paused and cut off."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

#: Seconds that a server may take to start.
PATIENCE = 30.0

#: Where `make tools` puts NATS.
TOOLS = Path(__file__).resolve().parents[2] / "target/drivers/nats/bin"

#: How often a cut way looks whether it is healed, in seconds.
LOOK = 0.05


def find(name: str, hint: str, given: str | None = None) -> str:
    """The path of a program, or the end of this one with what to do."""
    folders = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", str(TOOLS)])
    found = shutil.which(given or name, path=folders)
    if not found:
        sys.exit(f"{given or name} is not installed: {hint}")
    return str(Path(found).resolve())


def free_port() -> int:
    """A port below those that the system gives to clients, so that nobody has it before the server."""
    while True:
        port = random.randint(12_000, 32_000)
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)):
                return port


class Machine:
    """A process that can be killed, paused and started again with the same words."""

    def __init__(self, name: str, port: int, *command: str) -> None:
        self.name, self.port, self._command = name, port, command
        self.state = "up"
        self._start()

    def _start(self) -> None:
        # In a session of its own: Ctrl-C is for the demo, which ends its servers.
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(self._command, start_new_session=True, **quiet)

    def wait(self) -> None:
        """Until it takes connections."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.05)
        sys.exit(f"{self._command[0]} does not start: {' '.join(self._command)}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.state = "killed"

    def pause(self) -> None:
        if self.state == "up":
            self.process.send_signal(signal.SIGSTOP)
            self.state = "paused"

    def heal(self) -> None:
        if self.state == "paused":
            self.process.send_signal(signal.SIGCONT)
        elif self.state == "killed":
            self._start()
            self.wait()
        self.state = "up"

    def end(self) -> None:
        # One that is paused does not hear that it is to end.
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait()


class Way:
    """Connections to a port go through here. While it is cut nothing goes on, and nothing is closed."""

    def __init__(self, port: int) -> None:
        self._target, self.is_cut = port, False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            try:
                far = socket.create_connection(("127.0.0.1", self._target), 1)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65_536):
                while self.is_cut:
                    time.sleep(LOOK)
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class CutOff(Machine):
    """A cache, and its own ways to the bus."""

    def __init__(self, name: str, port: int, http: int, ways: list[Way], *command: str) -> None:
        self.http, self.ways = http, ways
        super().__init__(name, port, *command)

    def cut(self) -> None:
        for way in self.ways:
            way.is_cut = True
        if self.state == "up":
            self.state = "cut off"

    def heal(self) -> None:
        for way in self.ways:
            way.is_cut = False
        super().heal()


def nats(program: str, folder: str) -> list[Machine]:
    """Three that keep each message together."""
    routes = [free_port() for _ in range(3)]
    together = ",".join(f"nats://127.0.0.1:{route}" for route in routes)
    machines = []
    for number, route in enumerate(routes, 1):
        port = free_port()
        own = ["-a", "127.0.0.1", "-p", str(port), "-n", f"nats-{number}", "-js", "-sd", f"{folder}/nats-{number}"]
        own += ["--cluster_name", "demo", "--cluster", f"nats://127.0.0.1:{route}", "--routes", together, "--no_advertise"]
        machines.append(Machine(f"nats-{number}", port, program, *own))
    for machine in machines:
        machine.wait()
    return machines


def caches(program: str, folder: str, bus: list[Machine]) -> list[CutOff]:
    machines = []
    for number in range(1, 4):
        port, http = free_port(), free_port()
        own = ["-s", "none", "--arena", f"{folder}/cache-{number}", "-m", "64", "--sql-port", "0", "--http-port", str(http)]
        ways = [Way(server.port) for server in bus]
        machines.append(CutOff(f"cache-{number}", port, http, ways, program, "-p", str(port), *own))
    for machine in machines:
        machine.wait()
    return machines
