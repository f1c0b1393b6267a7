"""Runs the checks of a Python suite and prints a line for each."""

import os
import socket
import sys
import traceback

TCP = f"host={os.environ['PGHOST']} port={os.environ['PGPORT']}"
UNIX = f"host={os.environ['SOCKET_DIR']} port={os.environ['PGPORT']}"
MEMCACHED_PORT = os.environ.get("MEMCACHED_PORT")

_checks = []


def check(function):
    """Registers a check; its docstring is its name."""
    _checks.append(function)
    return function


def ours(function):
    """Registers a check of what PostgreSQL has not."""
    return check(function) if MEMCACHED_PORT else function


def sqlstate(error):
    """The SQLSTATE that a driver's error brought, also where a layer above wrapped it; with a blank before it."""
    while error is not None:
        state = getattr(error, "sqlstate", None)
        if state:
            return f" {state}"
        error = getattr(error, "orig", None) or error.__cause__
    return ""


def run(after_failure=lambda: None):
    """Runs all checks in their order, and what makes the next one possible after one that failed; exits with their sum."""
    failed = 0
    for function in _checks:
        try:
            function()
            print(f"ok - {function.__doc__}", flush=True)
        except Exception as error:
            failed += 1
            said = " ".join(str(error).split())
            print(f"not ok - {function.__doc__}: {type(error).__name__}{sqlstate(error)} {said}", flush=True)
            traceback.print_exc()
            after_failure()
    sys.exit(1 if failed else 0)


def same(found, expected):
    """Two values must be equal."""
    assert found == expected, f"found {found!r}, expected {expected!r}"


def memcached(request):
    """Sends a request to memcached's door and returns all that it answers."""
    with socket.create_connection(("127.0.0.1", int(MEMCACHED_PORT)), timeout=10) as connection:
        connection.sendall(request + b"quit\r\n")
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return answer
