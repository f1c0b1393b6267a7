/* libpq, unchanged: what C programs do with a server. See tests/drivers/README.md. */

#define _POSIX_C_SOURCE 200809L

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ENDLESS "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) " \
                "SELECT count(*) FROM n"

enum { BOOL = 16, BYTEA = 17, INT8 = 20, INT4 = 23, TEXT = 25, FLOAT8 = 701 };

static jmp_buf next_check;
static char why[512];

/* Ends the check that runs. */
static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    for (char *letter = why; *letter; letter++)
        if (*letter == '\n')
            *letter = ' ';
    longjmp(next_check, 1);
}

static void same(const char *found, const char *expected)
{
    if (found == NULL || strcmp(found, expected) != 0)
        fail("found %s, expected %s", found ? found : "nothing", expected);
}

static void same_number(long found, long expected)
{
    if (found != expected)
        fail("found %ld, expected %ld", found, expected);
}

static PGconn *usable(PGconn *connection)
{
    if (PQstatus(connection) != CONNECTION_OK)
        fail("%s", PQerrorMessage(connection));
    return connection;
}

/* PGHOST, PGPORT, PGUSER and PGDATABASE are libpq's own variables. */
static PGconn *connect_tcp(void)
{
    return usable(PQconnectdb(""));
}

static PGresult *expect(PGconn *connection, PGresult *result, ExecStatusType status)
{
    if (PQresultStatus(result) != status)
        fail("%s: %s", PQresStatus(PQresultStatus(result)), PQerrorMessage(connection));
    return result;
}

static void run(PGconn *connection, const char *statement)
{
    PGresult *result = PQexec(connection, statement);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail("%s: %s", statement, PQerrorMessage(connection));
    PQclear(result);
}

/* The first field of the first row. */
static void asks(PGconn *connection, const char *statement, const char *expected)
{
    PGresult *result = expect(connection, PQexec(connection, statement), PGRES_TUPLES_OK);
    same_number(PQntuples(result), 1);
    same(PQgetvalue(result, 0, 0), expected);
    PQclear(result);
}

static void fails_with(PGconn *connection, const char *statement, const char *state)
{
    PGresult *result = expect(connection, PQexec(connection, statement), PGRES_FATAL_ERROR);
    same(PQresultErrorField(result, PG_DIAG_SQLSTATE), state);
    PQclear(result);
}

static void tcp_and_unix(void)
{
    const char *names[] = {"host", "application_name", NULL};
    const char *settings[] = {getenv("SOCKET_DIR"), "suite", NULL};
    PGconn *local = usable(PQconnectdbParams(names, settings, 0));
    asks(local, "SELECT 'unix'", "unix");
    asks(local, "SHOW application_name", "suite");
    PGconn *remote = connect_tcp();
    asks(remote, "SELECT 'tcp'", "tcp");
    same(PQparameterStatus(remote, "server_encoding"), "UTF8");
    same(PQparameterStatus(remote, "integer_datetimes"), "on");
    same(PQparameterStatus(remote, "standard_conforming_strings"), "on");
    same_number(PQprotocolVersion(remote), 3);
    same_number(PQserverVersion(remote) >= 150000, 1);
    same_number(PQbackendPID(remote) != 0, 1);
    same_number(PQping("") == PQPING_OK, 1);
    PQfinish(local);
    PQfinish(remote);
}

static void wrong_start(void)
{
    /* A client that asks for a version of the protocol of its own, and one that sends a length that lies. */
    PGconn *connection = usable(PQconnectdb("sslmode=prefer gssencmode=disable"));
    same_number(PQsslInUse(connection), 0);
    PQfinish(connection);
    connection = PQconnectdb("sslmode=require");
    same_number(PQstatus(connection) == CONNECTION_BAD || PQsslInUse(connection), 1);
    PQfinish(connection);
}

static void text_and_binary(void)
{
    PGconn *connection = connect_tcp();
    run(connection, "DROP TABLE IF EXISTS pq_types");
    run(connection, "CREATE TABLE pq_types (id INTEGER PRIMARY KEY, big BIGINT, real8 DOUBLE PRECISION, flag BOOLEAN,"
                    " name TEXT, raw BYTEA)");
    uint32_t id = htonl(7);
    unsigned char big[8] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0};
    unsigned char real8[8] = {0x3f, 0xf8, 0, 0, 0, 0, 0, 0};
    const char bytes[] = "\0\1\377\\x";
    const Oid types[] = {INT4, INT8, FLOAT8, BOOL, TEXT, BYTEA};
    const char *values[] = {(char *)&id, (char *)big, (char *)real8, "\1", "Gr\303\274\303\237e", bytes};
    const int lengths[] = {4, 8, 8, 1, 7, 5};
    const int binary[] = {1, 1, 1, 1, 1, 1};
    PGresult *result = PQexecParams(connection, "INSERT INTO pq_types VALUES ($1, $2, $3, $4, $5, $6)", 6, types,
                                    values, lengths, binary, 1);
    same(PQcmdTuples(expect(connection, result, PGRES_COMMAND_OK)), "1");
    same(PQcmdStatus(result), "INSERT 0 1");
    PQclear(result);
    const char *nulls[] = {"8", NULL, NULL, NULL, NULL, NULL};
    result = PQexecParams(connection, "INSERT INTO pq_types VALUES ($1, $2, $3, $4, $5, $6)", 6, NULL, nulls, NULL,
                          NULL, 0);
    PQclear(expect(connection, result, PGRES_COMMAND_OK));
    for (int format = 0; format <= 1; format++) {
        result = PQexecParams(connection, "SELECT * FROM pq_types ORDER BY id", 0, NULL, NULL, NULL, NULL, format);
        expect(connection, result, PGRES_TUPLES_OK);
        same_number(PQntuples(result), 2);
        for (int column = 0; column < 6; column++) {
            same_number(PQfformat(result, column), format);
            same_number(PQftype(result, column), types[column]);
            same_number(PQgetisnull(result, 1, column), column > 0);
        }
        if (format == 0) {
            same(PQgetvalue(result, 0, 1), "1311768467463790320");
            same(PQgetvalue(result, 0, 2), "1.5");
            same(PQgetvalue(result, 0, 3), "t");
            same(PQgetvalue(result, 0, 5), "\\x0001ff5c78");
        } else {
            for (int column = 0; column < 6; column++) {
                same_number(PQgetlength(result, 0, column), lengths[column]);
                same_number(memcmp(PQgetvalue(result, 0, column), values[column], lengths[column]), 0);
            }
        }
        same(PQfname(result, 4), "name");
        same(PQgetvalue(result, 0, 4), "Gr\303\274\303\237e");
        PQclear(result);
    }
    PQfinish(connection);
}

static void prepared(void)
{
    PGconn *connection = connect_tcp();
    run(connection, "DROP TABLE IF EXISTS pq_plain");
    run(connection, "CREATE TABLE pq_plain (id INTEGER PRIMARY KEY, name TEXT)");
    PQclear(expect(connection, PQprepare(connection, "put", "INSERT INTO pq_plain VALUES ($1, $2)", 0, NULL),
                   PGRES_COMMAND_OK));
    PGresult *result = expect(connection, PQdescribePrepared(connection, "put"), PGRES_COMMAND_OK);
    same_number(PQnparams(result), 2);
    same_number(PQparamtype(result, 0), INT4);
    same_number(PQparamtype(result, 1), TEXT);
    PQclear(result);
    for (int number = 0; number < 20; number++) {
        char id[12];
        snprintf(id, sizeof id, "%d", number);
        const char *values[] = {id, "it's"};
        result = PQexecPrepared(connection, "put", 2, values, NULL, NULL, 0);
        PQclear(expect(connection, result, PGRES_COMMAND_OK));
    }
    PQclear(expect(connection, PQprepare(connection, "get", "SELECT name, id FROM pq_plain WHERE id = $1", 0, NULL),
                   PGRES_COMMAND_OK));
    result = expect(connection, PQdescribePrepared(connection, "get"), PGRES_COMMAND_OK);
    same_number(PQnfields(result), 2);
    same_number(PQftype(result, 1), INT4);
    PQclear(result);
    const char *key[] = {"19"};
    result = expect(connection, PQexecPrepared(connection, "get", 1, key, NULL, NULL, 0), PGRES_TUPLES_OK);
    same(PQgetvalue(result, 0, 0), "it's");
    PQclear(result);
    result = expect(connection, PQprepare(connection, "get", "SELECT 1", 0, NULL), PGRES_FATAL_ERROR);
    same(PQresultErrorField(result, PG_DIAG_SQLSTATE), "42P05");
    PQclear(result);
    run(connection, "DEALLOCATE get");
    result = expect(connection, PQexecPrepared(connection, "get", 1, key, NULL, NULL, 0), PGRES_FATAL_ERROR);
    same(PQresultErrorField(result, PG_DIAG_SQLSTATE), "26000");
    PQclear(result);
    PQfinish(connection);
}

static void errors(void)
{
    PGconn *connection = connect_tcp();
    run(connection, "DROP TABLE IF EXISTS pq_plain; CREATE TABLE pq_plain (id INTEGER PRIMARY KEY, name TEXT)");
    run(connection, "INSERT INTO pq_plain VALUES (1, 'a')");
    fails_with(connection, "SELEC 1", "42601");
    fails_with(connection, "SELECT * FROM pq_none", "42P01");
    fails_with(connection, "INSERT INTO pq_plain VALUES (1, 'b')", "23505");
    fails_with(connection, "INSERT INTO pq_plain VALUES ('x', 'b')", "22P02");
    run(connection, "BEGIN");
    fails_with(connection, "SELECT * FROM pq_none", "42P01");
    same_number(PQtransactionStatus(connection), PQTRANS_INERROR);
    fails_with(connection, "SELECT 1", "25P02");
    PGresult *result = expect(connection, PQexec(connection, "COMMIT"), PGRES_COMMAND_OK);
    same(PQcmdStatus(result), "ROLLBACK");
    PQclear(result);
    result = PQexec(connection, "SELECT 1; SELECT * FROM pq_none; SELECT 2");
    same(PQresultErrorField(expect(connection, result, PGRES_FATAL_ERROR), PG_DIAG_STATEMENT_POSITION), "25");
    PQclear(result);
    result = PQexec(connection, "");
    PQclear(expect(connection, result, PGRES_EMPTY_QUERY));
    PQfinish(connection);
}

static void transactions(void)
{
    PGconn *one = connect_tcp();
    PGconn *two = connect_tcp();
    run(two, "DROP TABLE IF EXISTS pq_plain; CREATE TABLE pq_plain (id INTEGER PRIMARY KEY, n INTEGER)");
    run(one, "BEGIN; INSERT INTO pq_plain VALUES (1, 0); SAVEPOINT a; INSERT INTO pq_plain VALUES (2, 0)");
    same_number(PQtransactionStatus(one), PQTRANS_INTRANS);
    run(one, "ROLLBACK TO SAVEPOINT a; RELEASE SAVEPOINT a");
    asks(one, "SELECT count(*) FROM pq_plain", "1");
    asks(two, "SELECT count(*) FROM pq_plain", "0");
    run(one, "COMMIT");
    asks(two, "SELECT count(*) FROM pq_plain", "1");
    run(one, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    asks(one, "SELECT n FROM pq_plain", "0");
    const char *change = "UPDATE pq_plain SET n = n + 1";
    if (getenv("MEMCACHED_PORT") != NULL) {
        /* No write waits for another here; the one who commits late is refused. */
        run(one, change);
        run(two, "UPDATE pq_plain SET n = 10");
        fails_with(one, "COMMIT", "40001");
    } else {
        run(two, "UPDATE pq_plain SET n = 10");
        fails_with(one, change, "40001");
    }
    run(one, "ROLLBACK");
    asks(one, "SELECT n FROM pq_plain", "10");
    PQfinish(one);
    PQfinish(two);
}

static void pipelines(void)
{
    PGconn *connection = connect_tcp();
    run(connection, "DROP TABLE IF EXISTS pq_plain; CREATE TABLE pq_plain (id INTEGER PRIMARY KEY, name TEXT)");
    same_number(PQenterPipelineMode(connection), 1);
    for (int number = 0; number < 100; number++) {
        char id[12];
        snprintf(id, sizeof id, "%d", number % 50);
        const char *values[] = {id};
        /* From the 51st on the key is taken: the rest is skipped up to the Sync. */
        same_number(PQsendQueryParams(connection, "INSERT INTO pq_plain VALUES ($1, 'x')", 1, NULL, values, NULL, NULL, 0), 1);
    }
    same_number(PQpipelineSync(connection), 1);
    same_number(PQsendQueryParams(connection, "SELECT count(*) FROM pq_plain", 0, NULL, NULL, NULL, NULL, 0), 1);
    same_number(PQpipelineSync(connection), 1);
    for (int number = 0; number < 100; number++) {
        PGresult *result = PQgetResult(connection);
        expect(connection, result,
               number < 50 ? PGRES_COMMAND_OK : number == 50 ? PGRES_FATAL_ERROR : PGRES_PIPELINE_ABORTED);
        PQclear(result);
        same_number(PQgetResult(connection) == NULL, 1);
    }
    PQclear(expect(connection, PQgetResult(connection), PGRES_PIPELINE_SYNC));
    PGresult *result = expect(connection, PQgetResult(connection), PGRES_TUPLES_OK);
    /* All before a Sync is one transaction. */
    same(PQgetvalue(result, 0, 0), "0");
    PQclear(result);
    same_number(PQgetResult(connection) == NULL, 1);
    PQclear(expect(connection, PQgetResult(connection), PGRES_PIPELINE_SYNC));
    same_number(PQexitPipelineMode(connection), 1);
    PQfinish(connection);
}

static void single_rows(void)
{
    PGconn *connection = connect_tcp();
    same_number(PQsendQuery(connection, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) "
                                        "SELECT i FROM n"), 1);
    same_number(PQsetSingleRowMode(connection), 1);
    int rows = 0;
    PGresult *result;
    while ((result = PQgetResult(connection)) != NULL) {
        if (PQresultStatus(result) == PGRES_SINGLE_TUPLE)
            rows++;
        else
            expect(connection, result, PGRES_TUPLES_OK);
        PQclear(result);
    }
    same_number(rows, 300);
    PQfinish(connection);
}

static void cursors(void)
{
    PGconn *connection = connect_tcp();
    run(connection, "BEGIN");
    run(connection, "DECLARE c SCROLL CURSOR FOR VALUES (1), (2), (3), (4)");
    asks(connection, "FETCH NEXT FROM c", "1");
    asks(connection, "FETCH ABSOLUTE 4 FROM c", "4");
    asks(connection, "FETCH BACKWARD 1 FROM c", "3");
    PGresult *result = expect(connection, PQexec(connection, "FETCH ALL FROM c"), PGRES_TUPLES_OK);
    same(PQcmdStatus(result), "FETCH 1");
    PQclear(result);
    result = expect(connection, PQexec(connection, "MOVE FIRST FROM c"), PGRES_COMMAND_OK);
    same(PQcmdStatus(result), "MOVE 1");
    PQclear(result);
    run(connection, "CLOSE c");
    fails_with(connection, "FETCH c", "34000");
    run(connection, "ROLLBACK");
    PQfinish(connection);
}

static void *cancels(void *argument)
{
    char message[256];
    struct timespec pause = {0, 200 * 1000 * 1000};
    nanosleep(&pause, NULL);
    return (void *)(intptr_t)PQcancel(argument, message, sizeof message);
}

static void cancel(void)
{
    PGconn *connection = connect_tcp();
    PGcancel *handle = PQgetCancel(connection);
    pthread_t thread;
    pthread_create(&thread, NULL, cancels, handle);
    PGresult *result = PQexec(connection, ENDLESS);
    void *sent;
    pthread_join(thread, &sent);
    PQfreeCancel(handle);
    same_number((intptr_t)sent, 1);
    same(PQresultErrorField(expect(connection, result, PGRES_FATAL_ERROR), PG_DIAG_SQLSTATE), "57014");
    PQclear(result);
    run(connection, "SET statement_timeout = 100");
    fails_with(connection, ENDLESS, "57014");
    asks(connection, "SELECT 'alive'", "alive");
    PQfinish(connection);
}

static void copies(void)
{
    PGconn *connection = connect_tcp();
    run(connection, "DROP TABLE IF EXISTS pq_copy; CREATE TABLE pq_copy (id INTEGER PRIMARY KEY, name TEXT)");
    PQclear(expect(connection, PQexec(connection, "COPY pq_copy FROM STDIN"), PGRES_COPY_IN));
    /* Cut where no line ends. */
    const char *parts[] = {"1\ton", "e\n2\t\\N\n3\tta", "b\\tbed\n"};
    for (int part = 0; part < 3; part++)
        same_number(PQputCopyData(connection, parts[part], (int)strlen(parts[part])), 1);
    same_number(PQputCopyEnd(connection, NULL), 1);
    PGresult *result = expect(connection, PQgetResult(connection), PGRES_COMMAND_OK);
    same(PQcmdStatus(result), "COPY 3");
    PQclear(result);
    same_number(PQgetResult(connection) == NULL, 1);
    PQclear(expect(connection, PQexec(connection, "COPY (SELECT * FROM pq_copy ORDER BY id) TO STDOUT"), PGRES_COPY_OUT));
    const char *lines[] = {"1\tone\n", "2\t\\N\n", "3\ttab\\tbed\n"};
    char *line;
    for (int row = 0; row < 3; row++) {
        same_number(PQgetCopyData(connection, &line, 0), (long)strlen(lines[row]));
        same(line, lines[row]);
        PQfreemem(line);
    }
    same_number(PQgetCopyData(connection, &line, 0), -1);
    PQclear(expect(connection, PQgetResult(connection), PGRES_COMMAND_OK));
    same_number(PQgetResult(connection) == NULL, 1);
    /* A client that changes its mind. */
    PQclear(expect(connection, PQexec(connection, "COPY pq_copy FROM STDIN"), PGRES_COPY_IN));
    same_number(PQputCopyData(connection, "9\tnine\n", 7), 1);
    same_number(PQputCopyEnd(connection, "changed my mind"), 1);
    result = expect(connection, PQgetResult(connection), PGRES_FATAL_ERROR);
    same(PQresultErrorField(result, PG_DIAG_SQLSTATE), "57014");
    PQclear(result);
    same_number(PQgetResult(connection) == NULL, 1);
    asks(connection, "SELECT count(*) FROM pq_copy", "3");
    PQfinish(connection);
}

static void notifications(void)
{
    PGconn *one = connect_tcp();
    PGconn *two = connect_tcp();
    run(one, "LISTEN pq_channel");
    run(two, "BEGIN; NOTIFY pq_channel, 'later'; ROLLBACK");
    run(two, "NOTIFY pq_channel, 'now'");
    PGnotify *note = NULL;
    struct pollfd wire = {PQsocket(one), POLLIN, 0};
    while (note == NULL) {
        if (poll(&wire, 1, 10000) != 1)
            fail("no notification");
        PQconsumeInput(one);
        note = PQnotifies(one);
    }
    same(note->relname, "pq_channel");
    same(note->extra, "now");
    same_number(note->be_pid, PQbackendPID(two));
    PQfreemem(note);
    PQfinish(one);
    PQfinish(two);
}

static void keep_notice(void *kept, const PGresult *notice)
{
    snprintf(kept, 64, "%s", PQresultErrorField(notice, PG_DIAG_SQLSTATE));
}

static void notices(void)
{
    char state[64] = "none";
    PGconn *connection = connect_tcp();
    PQsetNoticeReceiver(connection, keep_notice, state);
    run(connection, "DROP TABLE IF EXISTS pq_nothing_of_this_name");
    same(state, "00000");
    run(connection, "ROLLBACK");
    same(state, "25P01");
    PQfinish(connection);
}

static void reset(void)
{
    PGconn *connection = connect_tcp();
    shutdown(PQsocket(connection), SHUT_RDWR);
    PGresult *result = PQexec(connection, "SELECT 1");
    PQclear(expect(connection, result, PGRES_FATAL_ERROR));
    same_number(PQstatus(connection) == CONNECTION_BAD, 1);
    PQreset(connection);
    asks(usable(connection), "SELECT 'again'", "again");
    PQfinish(connection);
}

static void escapes(void)
{
    PGconn *connection = connect_tcp();
    const char text[] = "it's \\ \"odd\"";
    char *literal = PQescapeLiteral(connection, text, strlen(text));
    char *name = PQescapeIdentifier(connection, text, strlen(text));
    char statement[256];
    snprintf(statement, sizeof statement, "SELECT %s AS %s", literal, name);
    PGresult *result = expect(connection, PQexec(connection, statement), PGRES_TUPLES_OK);
    same(PQgetvalue(result, 0, 0), text);
    same(PQfname(result, 0), text);
    PQclear(result);
    PQfreemem(literal);
    PQfreemem(name);
    PQfinish(connection);
}

static const struct {
    const char *name;
    void (*run)(void);
} checks[] = {
    {"connects over TCP and a Unix socket, and tells its parameters", tcp_and_unix},
    {"a client that asks for TLS hears no, and one that insists goes away", wrong_start},
    {"types go both ways as text and as binary, and NULLs", text_and_binary},
    {"prepared statements are described, run and deallocated", prepared},
    {"errors have a SQLSTATE and a position, and a failed block refuses", errors},
    {"transactions, savepoints, and a lost race", transactions},
    {"a pipeline recovers at the Sync, and is one transaction up to it", pipelines},
    {"single-row mode", single_rows},
    {"cursors, by DECLARE, FETCH, MOVE, CLOSE", cursors},
    {"a statement is cancelled, and statement_timeout ends one", cancel},
    {"COPY in, out, and given up", copies},
    {"NOTIFY reaches LISTEN at the commit only", notifications},
    {"notices reach the receiver", notices},
    {"PQreset makes a broken connection good", reset},
    {"escaped names and literals come back", escapes},
};

/* 0 when it held. */
static int make(const char *name, void (*run)(void))
{
    if (setjmp(next_check) != 0) {
        printf("not ok - %s: %s\n", name, why);
        return 1;
    }
    run();
    printf("ok - %s\n", name);
    return 0;
}

int main(void)
{
    int failed = 0;
    for (size_t number = 0; number < sizeof checks / sizeof *checks; number++) {
        failed |= make(checks[number].name, checks[number].run);
        fflush(stdout);
    }
    return failed;
}
