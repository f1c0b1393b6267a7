#!/bin/sh
# SQL from a shell: the statement's length, the statement, and nc.
sql() {
    printf 'sql %d\r\n%s\r\nquit\r\n' "${#1}" "$1" | nc 127.0.0.1 "$port"
}

port=$1
sql "CREATE TABLE sh (id INT PRIMARY KEY, name TEXT)"
sql "INSERT INTO sh VALUES (1, 'one'), (2, 'two')"
sql "SELECT name FROM sh WHERE id = 2"
sql "SELECT absent FROM sh"
