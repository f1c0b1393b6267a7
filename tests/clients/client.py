"""SQL from Python's standard library alone: a statement, its parameters, its rows."""

import json
import socket
import sys


def sql(stream, statement, *parameters):
    text, values = statement.encode(), json.dumps(parameters).encode()
    stream.write(b"sqlp %d %d\r\n%s\r\n%s\r\n" % (len(text), len(values), text, values))
    stream.flush()
    rows = []
    for line in stream:
        if line.startswith(b"{"):
            rows.append(json.loads(line))
        elif line.startswith(b"ERROR "):
            raise RuntimeError(line.decode().strip())
        else:
            return rows if line == b"END\r\n" else int(line.split()[1])


if __name__ == "__main__":
    stream = socket.create_connection(("127.0.0.1", int(sys.argv[1]))).makefile("rwb")
    sql(stream, "CREATE TABLE py (id INT PRIMARY KEY, name TEXT)")
    sql(stream, "INSERT INTO py VALUES (?, ?), (?, ?)", 1, "one", 2, "two\nlines")
    print(json.dumps(sql(stream, "SELECT name FROM py WHERE id > ? ORDER BY id", 0)))
    print(sql(stream, "DELETE FROM py"))
