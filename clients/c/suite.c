/* The C library as its users call it. A line for each check; ends with 1 when one did not hold. */
#define _GNU_SOURCE
#include <sqlcached.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bytes of a text that is written here. */
#define TEXT(text) (text), (sizeof(text) - 1)

static sqlcached *cache;
static int failures;

static void check(bool held, const char *name)
{
    if (!held)
        failures++;
    printf("%sok - %s%s%s\n", held ? "" : "not ", name, held ? "" : ": ", held ? "" : sqlcached_message());
    fflush(stdout);
}

/* Whether the value has just these bytes. */
static bool is(const sqlcached_value *value, const void *bytes, size_t count)
{
    size_t length;
    const void *data = sqlcached_value_data(value, &length);

    return length == count && memcmp(data, bytes, count) == 0;
}

/* Runs a statement without parameters; the number of rows that it changed, or gave. */
static int64_t sql(const char *statement)
{
    sqlcached_result *result = sqlcached_result_new();
    int status = sqlcached_sql(cache, statement, strlen(statement), NULL, 0, result);
    int64_t changed = sqlcached_result_changed(result);
    int64_t count = changed >= 0 ? changed : (int64_t)sqlcached_result_count(result);

    sqlcached_result_free(result);
    return status < 0 ? status : count;
}

static void opening(void)
{
    sqlcached_options options = SQLCACHED_OPTIONS_INIT;
    sqlcached *none = NULL;

    check(strcmp(sqlcached_message(), "") == 0, "nothing has gone wrong yet");
    options.socket = "/nowhere/sqlcached.sock";
    check(sqlcached_open(&options, &none) == SQLCACHED_ERROR_UNAVAILABLE, "no daemon is an error");
    check(strlen(sqlcached_message()) > 0, "and the message says so");
    options.socket = "\xff";
    check(sqlcached_open(&options, &none) < 0, "a path that is no text is an error");
    options.size = 1;
    check(sqlcached_open(&options, &none) == SQLCACHED_ERROR_ARGUMENT, "options of no size are an error");
    check(sqlcached_open(NULL, NULL) == SQLCACHED_ERROR_ARGUMENT, "a NULL for the client is an error");
    check(none == NULL, "what failed stored nothing");

    options.size = sizeof options;
    options.socket = getenv("SQLCACHED_SOCKET");
    check(sqlcached_open(&options, &cache) == SQLCACHED_OK, "a daemon is found by its socket");
}

static void nulls(void)
{
    sqlcached_value *value = sqlcached_value_new();
    sqlcached_table *table;

    check(sqlcached_get(NULL, TEXT("a"), value) == SQLCACHED_ERROR_ARGUMENT, "a NULL client is an error");
    check(sqlcached_get(cache, TEXT("a"), NULL) == SQLCACHED_ERROR_ARGUMENT, "a NULL value is an error");
    check(sqlcached_get(cache, NULL, 3, value) == SQLCACHED_ERROR_ARGUMENT, "a NULL key with a length is an error");
    check(sqlcached_set(cache, TEXT(""), TEXT("x"), 0, 0) == SQLCACHED_ERROR_ARGUMENT, "an empty key is an error");
    check(sqlcached_set(cache, TEXT("a\r\nflush_all"), TEXT("x"), 0, 0) == SQLCACHED_OK &&
              sqlcached_get(cache, TEXT("a\r\nflush_all"), value) == SQLCACHED_OK && is(value, TEXT("x")),
          "a key of any bytes is a key, not a command");
    check(sqlcached_table_open(cache, NULL, &table) == SQLCACHED_ERROR_ARGUMENT, "a NULL name is an error");
    check(sqlcached_value_data(NULL, NULL) != NULL && sqlcached_value_cas(NULL) == 0, "a NULL value is empty");
    check(sqlcached_row_count(NULL) == 0 && sqlcached_row_name(NULL, 0) == NULL, "a NULL row has no columns");
    sqlcached_close(NULL);
    sqlcached_table_free(NULL);
    sqlcached_value_free(NULL);
    sqlcached_row_free(NULL);
    sqlcached_result_free(NULL);
    sqlcached_value_free(value);
}

static void writing(void)
{
    sqlcached_value *value = sqlcached_value_new();
    uint64_t number = 0, cas;

    check(sqlcached_set(cache, TEXT("frag:17:a"), TEXT("x\0y"), 7, 0) == SQLCACHED_OK, "set");
    check(sqlcached_get(cache, TEXT("frag:17:a"), value) == SQLCACHED_OK && is(value, TEXT("x\0y")), "get");
    check(sqlcached_peek(cache, TEXT("frag:17:a"), value) == SQLCACHED_OK && is(value, TEXT("x\0y")),
          "it is in shared memory at once");
    check(sqlcached_value_flags(value) == 7 && sqlcached_value_cas(value) > 0, "with flags and CAS");
    cas = sqlcached_value_cas(value);
    check(sqlcached_add(cache, TEXT("frag:17:a"), TEXT("z"), 0, 0) == SQLCACHED_NOT_STORED, "add where there is one");
    check(sqlcached_cas(cache, TEXT("frag:17:a"), TEXT("z"), 0, 0, cas) == SQLCACHED_OK, "cas");
    check(sqlcached_cas(cache, TEXT("frag:17:a"), TEXT("z"), 0, 0, cas) == SQLCACHED_NOT_STORED, "cas too late");
    check(sqlcached_cas(cache, TEXT("frag:none"), TEXT("z"), 0, 0, cas) == SQLCACHED_NOT_STORED, "cas of nothing");
    check(sqlcached_add(cache, TEXT("frag:17:n"), TEXT("41"), 0, 0) == SQLCACHED_OK, "add");
    check(sqlcached_increment(cache, TEXT("frag:17:n"), 1, &number) == SQLCACHED_OK && number == 42, "increment");
    check(sqlcached_increment(cache, TEXT("frag:17:n"), -50, &number) == SQLCACHED_OK && number == 0, "decrement");
    check(sqlcached_increment(cache, TEXT("frag:none"), 1, &number) == SQLCACHED_MISS, "increment of nothing");
    check(sqlcached_set(cache, TEXT("frag:17:e"), NULL, 0, 0, 0) == SQLCACHED_OK, "an empty value");
    check(sqlcached_get(cache, TEXT("frag:17:e"), value) == SQLCACHED_OK && is(value, "", 0), "is read as one");
    check(sqlcached_delete(cache, TEXT("frag:17:e")) == SQLCACHED_OK, "delete");
    check(sqlcached_delete(cache, TEXT("frag:17:e")) == SQLCACHED_MISS, "delete of nothing");
    check(sqlcached_get(cache, TEXT("frag:17:e"), value) == SQLCACHED_MISS && is(value, "", 0), "a miss is empty");
    sqlcached_value_free(value);
}

static void large(void)
{
    size_t length = 900000;
    char *bytes = malloc(length);
    sqlcached_value *value = sqlcached_value_new();

    memset(bytes, 'b', length);
    check(sqlcached_set(cache, TEXT("frag:large"), bytes, length, 0, 0) == SQLCACHED_OK, "900 KB");
    check(sqlcached_get(cache, TEXT("frag:large"), value) == SQLCACHED_OK && is(value, bytes, length), "and back");
    length = 2000000;
    bytes = realloc(bytes, length);
    memset(bytes, 'b', length);
    check(sqlcached_set(cache, TEXT("frag:large"), bytes, length, 0, 0) == SQLCACHED_ERROR_SERVER, "2 MB are refused");
    check(strstr(sqlcached_message(), "too large") != NULL, "in the daemon's words");
    free(bytes);
    sqlcached_value_free(value);
}

static void many(void)
{
    sqlcached_value *values[3] = {sqlcached_value_new(), sqlcached_value_new(), sqlcached_value_new()};
    sqlcached_bytes keys[3] = {{TEXT("frag:m:1")}, {TEXT("frag:m:none")}, {TEXT("frag:m:2")}};
    int statuses[3];
    size_t i;

    sqlcached_set(cache, TEXT("frag:m:1"), TEXT("one"), 0, 0);
    sqlcached_set(cache, TEXT("frag:m:2"), TEXT("two"), 0, 0);
    check(sqlcached_get_many(cache, keys, 3, values, statuses) == SQLCACHED_OK, "get_many");
    check(statuses[0] == SQLCACHED_OK && statuses[1] == SQLCACHED_MISS && statuses[2] == SQLCACHED_OK, "its statuses");
    check(is(values[0], TEXT("one")) && is(values[1], "", 0) && is(values[2], TEXT("two")), "its values");
    check(sqlcached_get_many(cache, NULL, 0, NULL, NULL) == SQLCACHED_OK, "get_many of none");
    check(sqlcached_get_many(cache, NULL, 2, NULL, NULL) == SQLCACHED_ERROR_ARGUMENT, "get_many of NULL");
    for (i = 0; i < 3; i++)
        sqlcached_value_free(values[i]);
}

static void rows(void)
{
    sqlcached_table *table = NULL, *none = NULL;
    sqlcached_row *row = sqlcached_row_new();
    sqlcached_value *value = sqlcached_value_new();
    size_t length;

    check(sqlcached_table_open(cache, "no_such_table", &none) == SQLCACHED_ERROR_NO_TABLE && !none, "no such table");
    check(sqlcached_table_open(cache, "kinds", &table) == SQLCACHED_OK, "a table by name");
    check(sql("INSERT INTO kinds VALUES (1, 'k\303\251y', -5, 2.5, x'00ff', NULL)") == 1, "a row of all types");
    check(sqlcached_table_row(table, TEXT("1:k\303\251y"), row) == SQLCACHED_OK, "is read by its composite key");
    check(sqlcached_row_count(row) == 6 && strcmp(sqlcached_row_name(row, 3), "r") == 0, "columns have names");
    check(sqlcached_row_type(row, 2) == SQLCACHED_INTEGER && sqlcached_row_integer(row, 2) == -5, "an integer");
    check(sqlcached_row_type(row, 3) == SQLCACHED_REAL && sqlcached_row_real(row, 3) == 2.5, "a real");
    check(sqlcached_row_type(row, 1) == SQLCACHED_TEXT && memcmp(sqlcached_row_data(row, 1, &length), "k\303\251y", 4) == 0 &&
              length == 4, "a text");
    check(sqlcached_row_type(row, 4) == SQLCACHED_BLOB && memcmp(sqlcached_row_data(row, 4, &length), "\0\377", 2) == 0 &&
              length == 2, "a blob");
    check(sqlcached_row_type(row, 5) == SQLCACHED_NULL, "a null");
    check(sqlcached_row_name(row, 6) == NULL && sqlcached_row_type(row, 6) == SQLCACHED_NULL, "no seventh column");
    check(sqlcached_table_row(table, TEXT("2:x"), row) == SQLCACHED_MISS && sqlcached_row_count(row) == 0, "no such row");
    sqlcached_table_free(table);

    check(sqlcached_table_open(cache, "frag", &table) == SQLCACHED_OK, "a table with a prefix");
    check(sqlcached_table_get(table, TEXT("m:1"), value) == SQLCACHED_OK && is(value, TEXT("one")), "a value by table");
    check(sqlcached_table_peek(table, TEXT("m:1"), value) == SQLCACHED_OK && is(value, TEXT("one")), "and near");
    check(sqlcached_table_wait(table, TEXT("m:1"), 10, value) == SQLCACHED_OK, "nothing to wait for");
    check(sqlcached_table_wait(table, TEXT("m:never"), 10, value) == SQLCACHED_MISS, "nobody to wait for");
    check(sqlcached_claim(cache, TEXT("frag:m:made"), 60, value) == SQLCACHED_DUE && sqlcached_value_renewal(value) == 2,
          "a claim that wins");
    check(sqlcached_claim(cache, TEXT("frag:m:made"), 60, value) == SQLCACHED_DUE && sqlcached_value_renewal(value) == 1,
          "a claim that comes second");
    check(sqlcached_table_wait(table, TEXT("m:made"), 10, value) == SQLCACHED_TIMEOUT, "waited in vain");
    sqlcached_set(cache, TEXT("frag:m:made"), TEXT("made"), 0, 0);
    check(sqlcached_table_wait(table, TEXT("m:made"), 10000, value) == SQLCACHED_OK && is(value, TEXT("made")),
          "waited for what was made");
    sqlcached_table_free(table);
    sqlcached_value_free(value);
    sqlcached_row_free(row);
}

static void statements(void)
{
    sqlcached_parameter parameters[] = {
        {SQLCACHED_INTEGER, 17, 0, NULL, 0},
        {SQLCACHED_REAL, 0, 0.5, NULL, 0},
        {SQLCACHED_TEXT, 0, 0, TEXT("a'\"b")},
        {SQLCACHED_BLOB, 0, 0, TEXT("\0\377\n")},
        {SQLCACHED_NULL, 0, 0, NULL, 0},
    };
    sqlcached_result *result = sqlcached_result_new();
    const sqlcached_row *row;
    size_t length;

    check(sqlcached_sql(cache, TEXT("SELECT ?1, ?2, ?3, ?4, ?5"), parameters, 5, result) == SQLCACHED_OK,
          "a statement with parameters");
    row = sqlcached_result_row(result, 0);
    check(sqlcached_result_count(result) == 1 && sqlcached_result_changed(result) == -1, "gives a row");
    check(sqlcached_row_integer(row, 0) == 17 && sqlcached_row_real(row, 1) == 0.5, "with numbers");
    check(memcmp(sqlcached_row_data(row, 2, &length), "a'\"b", 4) == 0 && length == 4, "with text");
    check(memcmp(sqlcached_row_data(row, 3, &length), "\0\377\n", 3) == 0 && length == 3, "with bytes");
    check(sqlcached_row_type(row, 4) == SQLCACHED_NULL && sqlcached_row_count(row) == 5, "with NULL");
    check(sqlcached_result_row(result, 1) == NULL, "there is no second row");
    parameters[0].type = 99;
    check(sqlcached_sql(cache, TEXT("SELECT ?1"), parameters, 1, result) == SQLCACHED_ERROR_ARGUMENT, "no such type");
    check(sqlcached_sql(cache, TEXT("SELEKT"), NULL, 0, result) == SQLCACHED_ERROR_STATEMENT, "a statement that fails");
    check(strcmp(sqlcached_sqlstate(), "42601") == 0, "has an SQLSTATE");
    check(sqlcached_result_count(result) == 0, "and no rows");
    check(sql("DELETE FROM frag WHERE key LIKE 'm:%'") == 3, "a statement that changes rows counts them");
    sqlcached_result_free(result);
}

static void *other_thread(void *unused)
{
    sqlcached_value *value = sqlcached_value_new();
    bool quiet = strcmp(sqlcached_message(), "") == 0;
    int i;

    (void)unused;
    for (i = 0; i < 20000; i++) {
        size_t length;
        const char *data;

        if (sqlcached_get(cache, TEXT("frag:torn"), value) != SQLCACHED_OK)
            return "a miss";
        /* Every version is one letter, so many times as the letter says. */
        data = sqlcached_value_data(value, &length);
        if (length != (size_t)(data[0] - 'a' + 1) * 100 || data[length - 1] != data[0])
            return "a torn value";
    }
    sqlcached_value_free(value);
    return quiet ? NULL : "the message of another thread";
}

static void threads(void)
{
    pthread_t readers[3];
    char bytes[2600];
    const char *complaint = NULL;
    int i;

    memset(bytes, 'a', 100);
    sqlcached_set(cache, TEXT("frag:torn"), bytes, 100, 0, 0);
    sqlcached_get(NULL, TEXT("a"), NULL);
    for (i = 0; i < 3; i++)
        pthread_create(&readers[i], NULL, other_thread, NULL);
    for (i = 0; i < 2000; i++) {
        char letter = (char)('a' + i % 26);

        memset(bytes, letter, sizeof bytes);
        sqlcached_set(cache, TEXT("frag:torn"), bytes, (size_t)(letter - 'a' + 1) * 100, 0, 0);
    }
    for (i = 0; i < 3; i++) {
        void *said;

        pthread_join(readers[i], &said);
        complaint = said ? said : complaint;
    }
    check(complaint == NULL, "threads read whole values while another writes");
    if (complaint)
        printf("# %s\n", complaint);
}

static void processes(void)
{
    sqlcached_value *value = sqlcached_value_new();
    int ended = -1;
    pid_t child;

    sqlcached_set(cache, TEXT("frag:parent"), TEXT("p"), 0, 0);
    child = fork();
    if (child == 0) {
        bool good = sqlcached_get(cache, TEXT("frag:parent"), value) == SQLCACHED_OK && is(value, TEXT("p")) &&
                    sqlcached_set(cache, TEXT("frag:child"), TEXT("c"), 0, 0) == SQLCACHED_OK;
        _exit(good ? 0 : 1);
    }
    /* At the same time as the child: their requests must not meet on one connection. */
    check(sqlcached_set(cache, TEXT("frag:parent2"), TEXT("q"), 0, 0) == SQLCACHED_OK, "a parent writes");
    waitpid(child, &ended, 0);
    check(ended == 0, "a forked child reads and writes");
    check(sqlcached_get(cache, TEXT("frag:child"), value) == SQLCACHED_OK && is(value, TEXT("c")), "what it wrote is here");
    sqlcached_value_free(value);
}

int main(void)
{
    opening();
    if (!cache)
        return 1;
    check(sql("CREATE TABLE frag (key TEXT PRIMARY KEY, body TEXT) "
              "WITH (prefix = 'frag:', value = 'body', shared_memory = on)") == 0, "a table");
    check(sql("CREATE TABLE kinds (i INT, t TEXT, n INT, r REAL, b BLOB, z TEXT, PRIMARY KEY (i, t)) "
              "WITH (shared_memory = on)") == 0, "another");
    nulls();
    writing();
    large();
    many();
    rows();
    statements();
    threads();
    processes();
    sqlcached_close(cache);
    return failures ? 1 : 0;
}
