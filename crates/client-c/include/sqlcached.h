/*
 * sqlcached.h - a client of sqlcached for C and C++.
 *
 * Reads of a table WITH (shared_memory = on) use shared memory, without a system call. Everything else uses the
 * daemon's Unix socket, by the same functions. The manual page sqlcached(3) has an example.
 *
 * Rules that hold for every function:
 *
 * - It returns a status: 0 or more when the daemon's answer is known, below 0 when it is not. After a status below 0
 *   sqlcached_message() has the reason, and says what to do.
 * - Keys, values and statements are bytes with a length, not strings that end in 0; a length of 0 goes with any
 *   pointer. Names and paths are strings that end in 0, in UTF-8.
 * - What is passed in is read during the call and not kept. What is returned by pointer belongs to the object that it
 *   was asked of, and lives until that object is changed or freed.
 * - A client and its tables may be used by any number of threads at once. A value, a row and a result belong to one
 *   thread at a time.
 * - After fork() the child can use the parent's objects: it opens its own sockets.
 * - Freeing NULL does nothing. A NULL where an object is needed is SQLCACHED_ERROR_ARGUMENT.
 * - Nothing here ends the process: a bug in the library itself is SQLCACHED_ERROR_INTERNAL.
 */
#ifndef SQLCACHED_H
#define SQLCACHED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Statuses. Each function says which it returns besides errors. */
enum sqlcached_status {
    SQLCACHED_OK = 0,         /* done; of a read: the row exists */
    SQLCACHED_MISS = 1,       /* there is no such row */
    SQLCACHED_STALE = 2,      /* the row exists, but it was invalidated and is not refreshed yet */
    SQLCACHED_DUE = 3,        /* the row exists, but it expires soon: refresh it now */
    SQLCACHED_NOT_STORED = 4, /* the condition of the write did not hold */
    SQLCACHED_TIMEOUT = 5,    /* the awaited row did not come in time */
    SQLCACHED_ELSEWHERE = 6,  /* only the daemon knows, not shared memory */

    SQLCACHED_ERROR_ARGUMENT = -1,    /* a NULL, a key that is too long, a name that is not UTF-8 */
    SQLCACHED_ERROR_UNAVAILABLE = -2, /* no daemon answers there, or not in time */
    SQLCACHED_ERROR_REFUSED = -3,     /* the file of shared memory is not what it should be, or not ours to read */
    SQLCACHED_ERROR_NO_TABLE = -4,    /* no such table, or no such column */
    SQLCACHED_ERROR_STATEMENT = -5,   /* the statement failed: sqlcached_sqlstate() */
    SQLCACHED_ERROR_SERVER = -6,      /* the daemon refused the request */
    SQLCACHED_ERROR_INTERNAL = -7     /* a bug in this library */
};

/* The types of a column's value. */
enum sqlcached_type {
    SQLCACHED_NULL = 0,
    SQLCACHED_INTEGER = 1,
    SQLCACHED_REAL = 2,
    SQLCACHED_TEXT = 3,
    SQLCACHED_BLOB = 4
};

typedef struct sqlcached sqlcached;               /* a client: connections and the mapping */
typedef struct sqlcached_table sqlcached_table;   /* a table by name, found once */
typedef struct sqlcached_value sqlcached_value;   /* room for a value; filled again and again */
typedef struct sqlcached_row sqlcached_row;       /* room for the columns of a row */
typedef struct sqlcached_result sqlcached_result; /* room for what a statement answers */

/* Some bytes of the caller's. */
typedef struct sqlcached_bytes {
    const void *data;
    size_t length;
} sqlcached_bytes;

/* Where the daemon is. Begin with SQLCACHED_OPTIONS_INIT: what later versions add is then absent. */
typedef struct sqlcached_options {
    size_t size;         /* sizeof(sqlcached_options) */
    const char *socket;  /* the daemon's Unix socket; NULL: where a daemon of this user has it by default */
    const char *arena;   /* the file of shared memory; NULL: as the daemon says */
    uint32_t timeout_ms; /* how long an answer may take; 0: the default, 5 seconds */
} sqlcached_options;

#define SQLCACHED_OPTIONS_INIT { sizeof(sqlcached_options), NULL, NULL, 0 }

/* The version of the library, such as "0.1.0". */
const char *sqlcached_version(void);

/* What went wrong in this thread's last call that returned a status below 0; "" before. Lives until the next. */
const char *sqlcached_message(void);

/* The five characters of the SQLSTATE when that call was SQLCACHED_ERROR_STATEMENT; else "". */
const char *sqlcached_sqlstate(void);

/* Connects and maps the shared memory. `options` may be NULL. Stores the client in `*client`: sqlcached_close() it. */
int sqlcached_open(const sqlcached_options *options, sqlcached **client);

/* Frees a client. Its tables stay usable until they are freed. No call may be using it. */
void sqlcached_close(sqlcached *client);

/* Room for a value; NULL when there is no memory. */
sqlcached_value *sqlcached_value_new(void);
void sqlcached_value_free(sqlcached_value *value);

/* The bytes of the value that was read last, and how many in `*length` (which may be NULL). Never NULL. */
const void *sqlcached_value_data(const sqlcached_value *value, size_t *length);

/* The flags that the memcached client stored with it, and the number that changes whenever it does. */
uint32_t sqlcached_value_flags(const sqlcached_value *value);
uint64_t sqlcached_value_cas(const sqlcached_value *value);

/* The client that is asked to refresh a stale or due value: 2 this caller, 1 another client, 0 none. */
int sqlcached_value_renewal(const sqlcached_value *value);

/*
 * By memcached's keys: the table with the longest prefix answers. Keys are 1 to 250 bytes of any kind.
 */

/* Reads a value: OK, STALE, DUE, MISS. On MISS the value is empty. */
int sqlcached_get(sqlcached *client, const void *key, size_t key_length, sqlcached_value *value);

/* Reads a value from shared memory, and never asks the daemon, so that it never waits: OK, STALE, DUE, MISS, and
   ELSEWHERE, after which sqlcached_get() finds out. */
int sqlcached_peek(sqlcached *client, const void *key, size_t key_length, sqlcached_value *value);

/* Reads a value. It reserves a missing value for so many seconds, so that one client is asked to compute it. OK; STALE
   or DUE if it must be computed: sqlcached_value_renewal() says by which client. */
int sqlcached_claim(sqlcached *client, const void *key, size_t key_length, uint32_t seconds, sqlcached_value *value);

/* Reads `count` values at once: `statuses[i]` is as of sqlcached_get() for `keys[i]` and `values[i]`. */
int sqlcached_get_many(sqlcached *client, const sqlcached_bytes *keys, size_t count, sqlcached_value *const *values,
                       int *statuses);

/* Writes a value. `exptime` is memcached's: 0 never, up to 30 days in seconds, above that a Unix time. OK. */
int sqlcached_set(sqlcached *client, const void *key, size_t key_length, const void *value, size_t value_length,
                  uint32_t flags, int64_t exptime);

/* Writes a value where there is none: OK, NOT_STORED. */
int sqlcached_add(sqlcached *client, const void *key, size_t key_length, const void *value, size_t value_length,
                  uint32_t flags, int64_t exptime);

/* Writes a value if the one that is there has this CAS: OK, NOT_STORED. */
int sqlcached_cas(sqlcached *client, const void *key, size_t key_length, const void *value, size_t value_length,
                  uint32_t flags, int64_t exptime, uint64_t cas);

/* Adds to a decimal number; below 0 it takes away and stops at 0. The new number in `*number`: OK, MISS. */
int sqlcached_increment(sqlcached *client, const void *key, size_t key_length, int64_t delta, uint64_t *number);

/* Removes a value: OK, MISS. */
int sqlcached_delete(sqlcached *client, const void *key, size_t key_length);

/*
 * By table. A key is the primary key's text; the parts of a composite key are joined with ':'.
 */

/* Finds a table. Stores it in `*table`: sqlcached_table_free() it. It follows its name: a table that is dropped and
   made again is found again. */
int sqlcached_table_open(sqlcached *client, const char *name, sqlcached_table **table);
void sqlcached_table_free(sqlcached_table *table);

/* Reads the table's value column: OK, STALE, DUE, MISS. */
int sqlcached_table_get(sqlcached_table *table, const void *key, size_t key_length, sqlcached_value *value);

/* Reads it from shared memory, and never asks the daemon: OK, STALE, DUE, MISS, ELSEWHERE. */
int sqlcached_table_peek(sqlcached_table *table, const void *key, size_t key_length, sqlcached_value *value);

/* Reads `count` values at once, with the memory of all of them fetched at the same time. */
int sqlcached_table_get_many(sqlcached_table *table, const sqlcached_bytes *keys, size_t count,
                             sqlcached_value *const *values, int *statuses);

/* Reads all columns: OK, STALE, DUE, MISS. */
int sqlcached_table_row(sqlcached_table *table, const void *key, size_t key_length, sqlcached_row *row);

/* Reads as sqlcached_table_get(). If another client is asked to compute the row, it waits for the row, without a
   request: OK, STALE, DUE, MISS, and TIMEOUT if the row did not come. */
int sqlcached_table_wait(sqlcached_table *table, const void *key, size_t key_length, uint32_t timeout_ms,
                         sqlcached_value *value);

/* Room for a row; NULL when there is no memory. */
sqlcached_row *sqlcached_row_new(void);
void sqlcached_row_free(sqlcached_row *row);

/* How many columns the row that was read last has. */
size_t sqlcached_row_count(const sqlcached_row *row);

/* The name and the type of a column; NULL and SQLCACHED_NULL where there is no such column. */
const char *sqlcached_row_name(const sqlcached_row *row, size_t column);
int sqlcached_row_type(const sqlcached_row *row, size_t column);

/* The value of a column: as the function says, or 0, 0.0, and no bytes, where it has another type. */
int64_t sqlcached_row_integer(const sqlcached_row *row, size_t column);
double sqlcached_row_real(const sqlcached_row *row, size_t column);
const void *sqlcached_row_data(const sqlcached_row *row, size_t column, size_t *length);

/*
 * Statements.
 */

/* A value for ?1, ?2 and so on: the type says which of the other fields counts. */
typedef struct sqlcached_parameter {
    int type;         /* enum sqlcached_type */
    int64_t integer;  /* of SQLCACHED_INTEGER */
    double real;      /* of SQLCACHED_REAL */
    const void *data; /* of SQLCACHED_TEXT, in UTF-8, and of SQLCACHED_BLOB */
    size_t length;    /* bytes of data */
} sqlcached_parameter;

/* Runs one statement with `count` parameters: OK. */
int sqlcached_sql(sqlcached *client, const char *statement, size_t statement_length,
                  const sqlcached_parameter *parameters, size_t count, sqlcached_result *result);

/* Room for a result; NULL when there is no memory. */
sqlcached_result *sqlcached_result_new(void);
void sqlcached_result_free(sqlcached_result *result);

/* How many rows came, and each; NULL where there is no such row. A row belongs to its result: do not free it. */
size_t sqlcached_result_count(const sqlcached_result *result);
const sqlcached_row *sqlcached_result_row(const sqlcached_result *result, size_t row);

/* How many rows the statement changed; -1 when it was one that gives rows. */
int64_t sqlcached_result_changed(const sqlcached_result *result);

#ifdef __cplusplus
}
#endif

#endif
