/*
 * Node's objects over libsqlcached. What JavaScript itself does better is in index.js.
 *
 * Everything here runs on the thread of its JavaScript, but for work(): it runs on a thread of libuv's pool and touches
 * only its task and the client, which any thread may use.
 */
#include <node_api.h>
#include <sqlcached.h>

#include <stdlib.h>
#include <string.h>

/* What a task does. The numbers are index.js's too. */
enum operation { GET, GET_MANY, SET, ADD, CAS, INCREMENT, DELETE, SQL, CLAIM, TABLE_GET, TABLE_GET_MANY, TABLE_ROW, TABLE_WAIT };

/* A client and the tables that were opened of it. Freed when nobody refers to it: the JavaScript object until it is
   closed or collected, and each task that is under way. */
typedef struct {
    sqlcached *client;
    sqlcached_table *table; /* NULL for the client itself */
    sqlcached_value *value; /* for peeks */
    size_t users;
} handle;

/* One call that may wait. */
typedef struct {
    enum operation operation;
    handle *handle;
    napi_async_work work;
    napi_deferred deferred;
    /* Copies of the arguments. */
    char *bytes[2];
    size_t lengths[2];
    sqlcached_bytes *keys;
    sqlcached_parameter *parameters;
    size_t count; /* of keys or parameters */
    int64_t numbers[2];
    uint64_t cas;
    /* The answer. */
    int status;
    char message[512];
    char sqlstate[6];
    uint64_t number;
    sqlcached_value **values;
    int *statuses;
    sqlcached_row *row;
    sqlcached_result *result;
} task;

/* Integers beyond this, Number.MAX_SAFE_INTEGER, a double does not tell from their neighbours. */
#define EXACT 9007199254740991

/* Ends a function of ours with JavaScript's exception when one of Node's failed. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((call) != napi_ok)                                                                                         \
            return failed(env);                                                                                        \
    } while (0)

static napi_value failed(napi_env env)
{
    const napi_extended_error_info *info;
    bool pending = false;

    napi_get_last_error_info(env, &info);
    napi_is_exception_pending(env, &pending);
    if (!pending)
        napi_throw_error(env, NULL, info->error_message ? info->error_message : "out of memory");
    return NULL;
}

static napi_value undefined(napi_env env)
{
    napi_value value = NULL;

    napi_get_undefined(env, &value);
    return value;
}

/* An Error with status and sqlstate. */
static napi_value error_of(napi_env env, int status, const char *message, const char *sqlstate)
{
    napi_value text, error, number;

    TRY(napi_create_string_utf8(env, message, NAPI_AUTO_LENGTH, &text));
    TRY(napi_create_error(env, NULL, text, &error));
    TRY(napi_create_int32(env, status, &number));
    TRY(napi_set_named_property(env, error, "status", number));
    TRY(napi_create_string_utf8(env, sqlstate, NAPI_AUTO_LENGTH, &text));
    TRY(napi_set_named_property(env, error, "sqlstate", text));
    return error;
}

static napi_value throw_last(napi_env env, int status)
{
    napi_value error = error_of(env, status, sqlcached_message(), sqlcached_sqlstate());

    if (error)
        napi_throw(env, error);
    return NULL;
}

static void release(handle *handle)
{
    if (--handle->users != 0)
        return;
    sqlcached_table_free(handle->table);
    sqlcached_close(handle->client);
    sqlcached_value_free(handle->value);
    free(handle);
}

static void finalize(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    release(data);
}

/* An external that holds a new handle; index.js keeps it where nobody else reaches it. */
static napi_value hold(napi_env env, sqlcached *client, sqlcached_table *table)
{
    handle *made = calloc(1, sizeof *made);
    napi_value external;

    if (!made || !(made->value = sqlcached_value_new())) {
        sqlcached_table_free(table);
        sqlcached_close(client);
        free(made);
        napi_throw_error(env, NULL, "out of memory");
        return NULL;
    }
    made->client = client;
    made->table = table;
    made->users = 1;
    if (napi_create_external(env, made, finalize, NULL, &external) != napi_ok) {
        release(made);
        return failed(env);
    }
    return external;
}

/* Reads a string's or a buffer's bytes: a copy of its own, ended by 0, in `*bytes`. */
static napi_status copy_bytes(napi_env env, napi_value from, char **bytes, size_t *length)
{
    bool is_buffer = false;
    napi_status status = napi_is_buffer(env, from, &is_buffer);
    void *data = NULL;

    if (status != napi_ok)
        return status;
    status = is_buffer ? napi_get_buffer_info(env, from, &data, length)
                       : napi_get_value_string_utf8(env, from, NULL, 0, length);
    if (status != napi_ok)
        return status;
    *bytes = malloc(*length + 1);
    if (!*bytes)
        return napi_generic_failure;
    if (!is_buffer)
        return napi_get_value_string_utf8(env, from, *bytes, *length + 1, length);
    if (*length)
        memcpy(*bytes, data, *length);
    (*bytes)[*length] = 0;
    return napi_ok;
}

/* A string or NULL for null and undefined. */
static napi_status optional_string(napi_env env, napi_value from, char **text)
{
    napi_valuetype type;
    size_t length;
    napi_status status = napi_typeof(env, from, &type);

    *text = NULL;
    if (status != napi_ok || type == napi_undefined || type == napi_null)
        return status;
    return copy_bytes(env, from, text, &length);
}

/* open(socket, arena, timeoutMs) */
static napi_value open_client(napi_env env, napi_callback_info info)
{
    size_t count = 3;
    napi_value arguments[3];
    char *socket = NULL, *arena = NULL;
    sqlcached_options options = SQLCACHED_OPTIONS_INIT;
    sqlcached *client;
    bool read;
    int status;

    TRY(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
    read = optional_string(env, arguments[0], &socket) == napi_ok &&
           optional_string(env, arguments[1], &arena) == napi_ok &&
           napi_get_value_uint32(env, arguments[2], &options.timeout_ms) == napi_ok;
    if (!read) {
        free(socket);
        free(arena);
        return failed(env);
    }
    options.socket = socket;
    options.arena = arena;
    status = sqlcached_open(&options, &client);
    free(socket);
    free(arena);
    return status < 0 ? throw_last(env, status) : hold(env, client, NULL);
}

/* openTable(client, name) */
static napi_value open_table(napi_env env, napi_callback_info info)
{
    size_t count = 2, length;
    napi_value arguments[2];
    handle *of;
    sqlcached_table *table;
    char *name = NULL;
    int status;

    TRY(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
    TRY(napi_get_value_external(env, arguments[0], (void **)&of));
    if (copy_bytes(env, arguments[1], &name, &length) != napi_ok) {
        free(name);
        return failed(env);
    }
    status = sqlcached_table_open(of->client, name, &table);
    free(name);
    return status < 0 ? throw_last(env, status) : hold(env, NULL, table);
}

/* What a value is in JavaScript: a Buffer, or null where there is none. */
static napi_value value_of(napi_env env, int status, const sqlcached_value *value)
{
    size_t length;
    const void *data = sqlcached_value_data(value, &length);
    napi_value made;

    if (status == SQLCACHED_MISS || status == SQLCACHED_TIMEOUT)
        TRY(napi_get_null(env, &made));
    else
        TRY(napi_create_buffer_copy(env, length, data, NULL, &made));
    return made;
}

/* Reads shared memory for the two below: the status, ELSEWHERE where it cannot tell. False: an exception is thrown. */
static bool look(napi_env env, napi_callback_info info, handle **of, int *status)
{
    /* Keys that are strings are short; a longer one is not in shared memory. */
    char short_key[256];
    size_t count = 2, length;
    napi_value arguments[2];
    void *key = short_key;
    bool is_buffer;

    if (napi_get_cb_info(env, info, &count, arguments, NULL, NULL) != napi_ok
        || napi_get_value_external(env, arguments[0], (void **)of) != napi_ok
        || napi_is_buffer(env, arguments[1], &is_buffer) != napi_ok
        || (is_buffer ? napi_get_buffer_info(env, arguments[1], &key, &length)
                      : napi_get_value_string_utf8(env, arguments[1], short_key, sizeof short_key, &length))
               != napi_ok) {
        failed(env);
        return false;
    }
    if (!is_buffer && length >= sizeof short_key - 4)
        *status = SQLCACHED_ELSEWHERE;
    else
        *status = (*of)->table ? sqlcached_table_peek((*of)->table, key, length, (*of)->value)
                               : sqlcached_peek((*of)->client, key, length, (*of)->value);
    if (*status < 0)
        throw_last(env, *status);
    return *status >= 0;
}

/* peek(handle, key): a Buffer, null for a miss, undefined where shared memory cannot tell. */
static napi_value peek(napi_env env, napi_callback_info info)
{
    handle *of;
    int status;

    if (!look(env, info, &of, &status))
        return NULL;
    return status == SQLCACHED_ELSEWHERE ? undefined(env) : value_of(env, status, of->value);
}

static void free_task(napi_env env, task *task)
{
    size_t i;

    for (i = 0; i < task->count; i++) {
        if (task->values)
            sqlcached_value_free(task->values[i]);
        if (task->keys)
            free((void *)(uintptr_t)task->keys[i].data);
        if (task->parameters)
            free((void *)(uintptr_t)task->parameters[i].data);
    }
    free(task->values);
    free(task->keys);
    free(task->parameters);
    free(task->statuses);
    free(task->bytes[0]);
    free(task->bytes[1]);
    sqlcached_row_free(task->row);
    sqlcached_result_free(task->result);
    if (task->work)
        napi_delete_async_work(env, task->work);
    release(task->handle);
    free(task);
}

/* Room for what the operation answers. False: no memory. */
static bool prepare(task *task)
{
    size_t i;

    if (task->operation == SQL)
        return (task->result = sqlcached_result_new()) != NULL;
    if (task->operation == TABLE_ROW)
        return (task->row = sqlcached_row_new()) != NULL;
    if (task->count == 0)
        task->count = 1;
    task->values = calloc(task->count, sizeof *task->values);
    task->statuses = calloc(task->count, sizeof *task->statuses);
    if (!task->values || !task->statuses)
        return false;
    for (i = 0; i < task->count; i++)
        if (!(task->values[i] = sqlcached_value_new()))
            return false;
    return true;
}

/* Calls the library: on a thread of the pool. */
static int call(task *task)
{
    handle *of = task->handle;
    const char *key = task->bytes[0], *value = task->bytes[1];
    size_t length = task->lengths[0], value_length = task->lengths[1];
    uint32_t flags = (uint32_t)task->numbers[0];
    int64_t exptime = task->numbers[1];

    switch (task->operation) {
    case GET: return sqlcached_get(of->client, key, length, task->values[0]);
    case GET_MANY: return sqlcached_get_many(of->client, task->keys, task->count, task->values, task->statuses);
    case SET: return sqlcached_set(of->client, key, length, value, value_length, flags, exptime);
    case ADD: return sqlcached_add(of->client, key, length, value, value_length, flags, exptime);
    case CAS: return sqlcached_cas(of->client, key, length, value, value_length, flags, exptime, task->cas);
    case INCREMENT: return sqlcached_increment(of->client, key, length, task->numbers[0], &task->number);
    case DELETE: return sqlcached_delete(of->client, key, length);
    case SQL: return sqlcached_sql(of->client, key, length, task->parameters, task->count, task->result);
    case CLAIM: return sqlcached_claim(of->client, key, length, (uint32_t)task->numbers[0], task->values[0]);
    case TABLE_GET: return sqlcached_table_get(of->table, key, length, task->values[0]);
    case TABLE_GET_MANY:
        return sqlcached_table_get_many(of->table, task->keys, task->count, task->values, task->statuses);
    case TABLE_ROW: return sqlcached_table_row(of->table, key, length, task->row);
    case TABLE_WAIT:
        return sqlcached_table_wait(of->table, key, length, (uint32_t)task->numbers[0], task->values[0]);
    }
    return SQLCACHED_ERROR_ARGUMENT;
}

static void work(napi_env env, void *data)
{
    task *task = data;

    (void)env;
    task->status = call(task);
    if (task->status < 0) {
        /* What went wrong is told to this thread only. */
        strncpy(task->message, sqlcached_message(), sizeof task->message - 1);
        strncpy(task->sqlstate, sqlcached_sqlstate(), sizeof task->sqlstate - 1);
    }
}

/* A column as JavaScript has it. Integers beyond 2^53 are BigInts. */
static napi_value column(napi_env env, const sqlcached_row *row, size_t at)
{
    size_t length;
    const void *data;
    int64_t integer;
    napi_value made;

    switch (sqlcached_row_type(row, at)) {
    case SQLCACHED_INTEGER:
        integer = sqlcached_row_integer(row, at);
        if (integer >= -EXACT && integer <= EXACT)
            TRY(napi_create_int64(env, integer, &made));
        else
            TRY(napi_create_bigint_int64(env, integer, &made));
        break;
    case SQLCACHED_REAL:
        TRY(napi_create_double(env, sqlcached_row_real(row, at), &made));
        break;
    case SQLCACHED_TEXT:
        data = sqlcached_row_data(row, at, &length);
        TRY(napi_create_string_utf8(env, data, length, &made));
        break;
    case SQLCACHED_BLOB:
        data = sqlcached_row_data(row, at, &length);
        TRY(napi_create_buffer_copy(env, length, data, NULL, &made));
        break;
    default:
        TRY(napi_get_null(env, &made));
    }
    return made;
}

/* An object of the columns. */
static napi_value row_of(napi_env env, const sqlcached_row *row)
{
    napi_value made;
    size_t i;

    TRY(napi_create_object(env, &made));
    for (i = 0; i < sqlcached_row_count(row); i++) {
        napi_value value = column(env, row, i);

        if (!value)
            return NULL;
        TRY(napi_set_named_property(env, made, sqlcached_row_name(row, i), value));
    }
    return made;
}

/* The number of changed rows, or an array of rows. */
static napi_value result_of(napi_env env, const sqlcached_result *result)
{
    int64_t changed = sqlcached_result_changed(result);
    size_t i, count = sqlcached_result_count(result);
    napi_value made;

    if (changed >= 0) {
        TRY(napi_create_int64(env, changed, &made));
        return made;
    }
    TRY(napi_create_array_with_length(env, count, &made));
    for (i = 0; i < count; i++) {
        napi_value row = row_of(env, sqlcached_result_row(result, i));

        if (!row)
            return NULL;
        TRY(napi_set_element(env, made, (uint32_t)i, row));
    }
    return made;
}

static napi_value many_of(napi_env env, const task *task)
{
    napi_value made;
    size_t i;

    TRY(napi_create_array_with_length(env, task->count, &made));
    for (i = 0; i < task->count; i++) {
        napi_value value = value_of(env, task->statuses[i], task->values[i]);

        if (!value)
            return NULL;
        TRY(napi_set_element(env, made, (uint32_t)i, value));
    }
    return made;
}

/* [state, value, flags, cas, renewal] of a read; index.js makes an object of it where it is asked for. */
static napi_value read_of(napi_env env, int status, const sqlcached_value *value)
{
    napi_value made, part;

    TRY(napi_create_array_with_length(env, 5, &made));
    TRY(napi_create_int32(env, status, &part));
    TRY(napi_set_element(env, made, 0, part));
    if (!(part = value_of(env, status, value)))
        return NULL;
    TRY(napi_set_element(env, made, 1, part));
    TRY(napi_create_uint32(env, sqlcached_value_flags(value), &part));
    TRY(napi_set_element(env, made, 2, part));
    TRY(napi_create_bigint_uint64(env, sqlcached_value_cas(value), &part));
    TRY(napi_set_element(env, made, 3, part));
    TRY(napi_create_int32(env, sqlcached_value_renewal(value), &part));
    TRY(napi_set_element(env, made, 4, part));
    return made;
}

/* glance(handle, key): the same from shared memory, undefined where it cannot tell. */
static napi_value glance(napi_env env, napi_callback_info info)
{
    handle *of;
    int status;

    if (!look(env, info, &of, &status))
        return NULL;
    return status == SQLCACHED_ELSEWHERE ? undefined(env) : read_of(env, status, of->value);
}

static napi_value answer_of(napi_env env, const task *task)
{
    napi_value made;

    switch (task->operation) {
    case GET:
    case CLAIM:
    case TABLE_GET:
    case TABLE_WAIT: return read_of(env, task->status, task->values[0]);
    case GET_MANY:
    case TABLE_GET_MANY: return many_of(env, task);
    case SQL: return result_of(env, task->result);
    case TABLE_ROW:
        if (task->status != SQLCACHED_MISS)
            return row_of(env, task->row);
        TRY(napi_get_null(env, &made));
        return made;
    case INCREMENT:
        if (task->status == SQLCACHED_MISS)
            TRY(napi_get_null(env, &made));
        else
            TRY(napi_create_bigint_uint64(env, task->number, &made));
        return made;
    default:
        TRY(napi_get_boolean(env, task->status == SQLCACHED_OK, &made));
        return made;
    }
}

/* Settles the promise: on JavaScript's thread. */
static void complete(napi_env env, napi_status ended, void *data)
{
    task *task = data;
    napi_value settled;

    if (ended != napi_ok)
        settled = error_of(env, SQLCACHED_ERROR_INTERNAL, "the call was cancelled", "");
    else if (task->status < 0)
        settled = error_of(env, task->status, task->message, task->sqlstate);
    else if ((settled = answer_of(env, task)) != NULL) {
        napi_resolve_deferred(env, task->deferred, settled);
        free_task(env, task);
        return;
    }
    /* An exception of Node's own, such as a string that is too long, is the reason. */
    if (!settled)
        napi_get_and_clear_last_exception(env, &settled);
    napi_reject_deferred(env, task->deferred, settled);
    free_task(env, task);
}

/* Copies an array of keys. */
static napi_status copy_keys(napi_env env, napi_value array, task *task)
{
    uint32_t count, i;
    napi_status status = napi_get_array_length(env, array, &count);

    if (status != napi_ok)
        return status;
    task->keys = calloc(count + 1, sizeof *task->keys);
    if (!task->keys)
        return napi_generic_failure;
    for (i = 0; i < count; i++) {
        napi_value key;
        char *bytes = NULL;

        status = napi_get_element(env, array, i, &key);
        if (status == napi_ok)
            status = copy_bytes(env, key, &bytes, &task->keys[i].length);
        task->keys[i].data = bytes;
        task->count = i + 1;
        if (status != napi_ok)
            return status;
    }
    return napi_ok;
}

/* Copies one value for a statement. */
static napi_status copy_parameter(napi_env env, napi_value from, sqlcached_parameter *parameter)
{
    napi_valuetype type;
    napi_status status = napi_typeof(env, from, &type);
    char *bytes = NULL;
    bool truth, lossless;

    if (status != napi_ok || type == napi_null || type == napi_undefined)
        return status;
    switch (type) {
    case napi_boolean:
        parameter->type = SQLCACHED_INTEGER;
        status = napi_get_value_bool(env, from, &truth);
        parameter->integer = status == napi_ok && truth;
        return status;
    case napi_bigint:
        parameter->type = SQLCACHED_INTEGER;
        status = napi_get_value_bigint_int64(env, from, &parameter->integer, &lossless);
        if (status == napi_ok && !lossless) {
            napi_throw_range_error(env, NULL, "a BigInt parameter has 64 bits");
            status = napi_pending_exception;
        }
        return status;
    case napi_number:
        status = napi_get_value_double(env, from, &parameter->real);
        parameter->type = SQLCACHED_REAL;
        if (status == napi_ok && parameter->real >= -EXACT && parameter->real <= EXACT) {
            parameter->integer = (int64_t)parameter->real;
            if ((double)parameter->integer == parameter->real)
                parameter->type = SQLCACHED_INTEGER;
        }
        return status;
    default:
        parameter->type = type == napi_string ? SQLCACHED_TEXT : SQLCACHED_BLOB;
        status = copy_bytes(env, from, &bytes, &parameter->length);
        parameter->data = bytes;
        return status;
    }
}

static napi_status copy_parameters(napi_env env, napi_value array, task *task)
{
    uint32_t count, i;
    napi_status status = napi_get_array_length(env, array, &count);

    if (status != napi_ok)
        return status;
    task->parameters = calloc(count + 1, sizeof *task->parameters);
    if (!task->parameters)
        return napi_generic_failure;
    for (i = 0; i < count && status == napi_ok; i++) {
        napi_value value;

        task->count = i + 1;
        status = napi_get_element(env, array, i, &value);
        if (status == napi_ok)
            status = copy_parameter(env, value, &task->parameters[i]);
    }
    return status;
}

/* Reads run()'s arguments behind the handle and the operation. */
static napi_status copy_arguments(napi_env env, const napi_value *arguments, task *task)
{
    bool is_array = false, lossless;
    napi_status status = napi_is_array(env, arguments[0], &is_array);

    if (status == napi_ok)
        status = is_array ? copy_keys(env, arguments[0], task)
                          : copy_bytes(env, arguments[0], &task->bytes[0], &task->lengths[0]);
    if (status == napi_ok)
        status = task->operation == SQL ? copy_parameters(env, arguments[1], task)
                                        : copy_bytes(env, arguments[1], &task->bytes[1], &task->lengths[1]);
    if (status == napi_ok)
        status = napi_get_value_int64(env, arguments[2], &task->numbers[0]);
    if (status == napi_ok)
        status = napi_get_value_int64(env, arguments[3], &task->numbers[1]);
    if (status == napi_ok)
        status = napi_get_value_bigint_uint64(env, arguments[4], &task->cas, &lossless);
    return status;
}

/* Begins the work of a task; its promise. */
static napi_status begin(napi_env env, task *task, napi_value *promise)
{
    napi_value name;
    napi_status status = napi_create_string_utf8(env, "sqlcached", NAPI_AUTO_LENGTH, &name);

    if (status == napi_ok)
        status = napi_create_async_work(env, NULL, name, work, complete, task, &task->work);
    if (status == napi_ok)
        status = napi_create_promise(env, &task->deferred, promise);
    return status == napi_ok ? napi_queue_async_work(env, task->work) : status;
}

/* run(handle, operation, key or keys or statement, value or parameters, number, number, cas): a promise. */
static napi_value run(napi_env env, napi_callback_info info)
{
    size_t count = 7;
    napi_value arguments[7], promise;
    handle *of;
    int32_t operation;
    task *made;

    TRY(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
    TRY(napi_get_value_external(env, arguments[0], (void **)&of));
    TRY(napi_get_value_int32(env, arguments[1], &operation));
    made = calloc(1, sizeof *made);
    if (!made)
        return failed(env);
    made->operation = (enum operation)operation;
    made->handle = of;
    of->users++;
    if (copy_arguments(env, arguments + 2, made) != napi_ok || !prepare(made) || begin(env, made, &promise) != napi_ok) {
        napi_value thrown = failed(env);

        free_task(env, made);
        return thrown;
    }
    return promise;
}

static napi_value initialize(napi_env env, napi_value exports)
{
    static const struct {
        const char *name;
        napi_callback function;
    } functions[] = {{"open", open_client}, {"openTable", open_table}, {"peek", peek}, {"glance", glance}, {"run", run}};
    size_t i;

    for (i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        napi_value function;

        TRY(napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].function, NULL, &function));
        TRY(napi_set_named_property(env, exports, functions[i].name, function));
    }
    return exports;
}

NAPI_MODULE(sqlcached, initialize)
