/* Perl's objects over libsqlcached. What Perl itself does better (options, JSON) is in lib/Sqlcached.pm. */

#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

#include <sqlcached.h>

#if IVSIZE < 8
#error "a perl with 64-bit integers is needed: a CAS does not fit into less"
#endif

/* A client or a table, with the room that its reads fill. Perl's threads do not share objects, so nobody else does. */
typedef struct {
    sqlcached *client;
    sqlcached_value *value;
} cache;

typedef struct {
    sqlcached_table *table;
    sqlcached_value *value;
} table;

/* The pointer in an object of this class. */
static void *object(pTHX_ SV *self, const char *class)
{
    if (!SvROK(self) || !sv_derived_from(self, class) || SvIV(SvRV(self)) == 0)
        croak("an open %s is needed here", class);
    return INT2PTR(void *, SvIV(SvRV(self)));
}

/* Dies with an object of Sqlcached::Error where the status is an error. */
static int checked(pTHX_ int status)
{
    HV *error;

    if (status >= 0)
        return status;
    error = newHV();
    (void)hv_stores(error, "status", newSViv(status));
    (void)hv_stores(error, "message", newSVpvn_utf8(sqlcached_message(), strlen(sqlcached_message()), 1));
    (void)hv_stores(error, "sqlstate", newSVpv(sqlcached_sqlstate(), 0));
    croak_sv(sv_2mortal(sv_bless(newRV_noinc((SV *)error), gv_stashpvs("Sqlcached::Error", GV_ADD))));
    return status;
}

static sqlcached_value *room(pTHX)
{
    sqlcached_value *value = sqlcached_value_new();

    if (!value)
        croak("out of memory");
    return value;
}

/* What Perl calls when a call ends, however it ends. */
static void free_value(void *value)
{
    sqlcached_value_free(value);
}

static void free_row(void *row)
{
    sqlcached_row_free(row);
}

static void free_result(void *result)
{
    sqlcached_result_free(result);
}

/* A copy of what was read, or undef. */
static SV *copied(pTHX_ int status, const sqlcached_value *value)
{
    size_t length;
    const void *data;

    if (status == SQLCACHED_MISS || status == SQLCACHED_TIMEOUT)
        return newSV(0);
    data = sqlcached_value_data(value, &length);
    return newSVpvn(data, length);
}

static const char *state_name(int status)
{
    switch (status) {
    case SQLCACHED_OK: return "hit";
    case SQLCACHED_STALE: return "stale";
    case SQLCACHED_DUE: return "due";
    default: return "miss";
    }
}

static const char *renewal_name(const sqlcached_value *value)
{
    switch (sqlcached_value_renewal(value)) {
    case 2: return "you";
    case 1: return "another";
    default: return "nobody";
    }
}

/* Reads many keys, by memcached's keys or by a table's: a reference to a hash of those that were found. The room for
   the values is Perl's to free when the call ends, for keys and copies may die. */
static SV *read_many(pTHX_ cache *cache, table *table, AV *names)
{
    SSize_t count = av_len(names) + 1, i;
    HV *found = newHV();
    SV *answer = sv_2mortal(newRV_noinc((SV *)found));
    sqlcached_bytes *keys;
    sqlcached_value **values;
    int *statuses, status;

    Newx(keys, count + 1, sqlcached_bytes);
    SAVEFREEPV(keys);
    Newx(values, count + 1, sqlcached_value *);
    SAVEFREEPV(values);
    Newx(statuses, count + 1, int);
    SAVEFREEPV(statuses);
    for (i = 0; i < count; i++) {
        SV **name = av_fetch(names, i, 0);
        STRLEN length;

        keys[i].data = SvPVbyte(name ? *name : &PL_sv_undef, length);
        keys[i].length = length;
    }
    for (i = 0; i < count; i++) {
        values[i] = room(aTHX);
        SAVEDESTRUCTOR(free_value, values[i]);
    }
    status = table ? sqlcached_table_get_many(table->table, keys, (size_t)count, values, statuses)
                   : sqlcached_get_many(cache->client, keys, (size_t)count, values, statuses);
    checked(aTHX_ status);
    for (i = 0; i < count; i++)
        if (statuses[i] != SQLCACHED_MISS)
            (void)hv_store(found, keys[i].data, (I32)keys[i].length, copied(aTHX_ statuses[i], values[i]), 0);
    return SvREFCNT_inc(answer);
}

/* A column as Perl has it: text is characters, a blob is bytes. */
static SV *column(pTHX_ const sqlcached_row *row, size_t at)
{
    size_t length;
    const void *data;

    switch (sqlcached_row_type(row, at)) {
    case SQLCACHED_INTEGER: return newSViv((IV)sqlcached_row_integer(row, at));
    case SQLCACHED_REAL: return newSVnv(sqlcached_row_real(row, at));
    case SQLCACHED_TEXT:
        data = sqlcached_row_data(row, at, &length);
        return newSVpvn_utf8(data, length, 1);
    case SQLCACHED_BLOB:
        data = sqlcached_row_data(row, at, &length);
        return newSVpvn(data, length);
    default: return newSV(0);
    }
}

/* A reference to a hash of the columns. */
static SV *columns(pTHX_ const sqlcached_row *row)
{
    HV *named = newHV();
    size_t i;

    for (i = 0; i < sqlcached_row_count(row); i++) {
        const char *name = sqlcached_row_name(row, i);

        /* A negative length says that the name is UTF-8. */
        (void)hv_store(named, name, -(I32)strlen(name), column(aTHX_ row, i), 0);
    }
    return newRV_noinc((SV *)named);
}

/* A parameter: numbers and text as Perl has them; a reference to a string is its bytes, a BLOB. */
static void set_parameter(pTHX_ sqlcached_parameter *parameter, SV *from)
{
    STRLEN length;

    SvGETMAGIC(from);
    if (!SvOK(from)) {
        parameter->type = SQLCACHED_NULL;
    } else if (SvROK(from) && !SvOBJECT(SvRV(from))) {
        parameter->type = SQLCACHED_BLOB;
        parameter->data = SvPVbyte(SvRV(from), length);
        parameter->length = length;
    } else if (SvPOK(from) || SvROK(from)) {
        parameter->type = SQLCACHED_TEXT;
        parameter->data = SvPVutf8(from, length);
        parameter->length = length;
    } else if (SvIOK(from)) {
        parameter->type = SQLCACHED_INTEGER;
        parameter->integer = SvIV(from);
    } else {
        parameter->type = SQLCACHED_REAL;
        parameter->real = SvNV(from);
    }
}

MODULE = Sqlcached    PACKAGE = Sqlcached

PROTOTYPES: DISABLE

const char *
library_version()
  CODE:
    RETVAL = sqlcached_version();
  OUTPUT:
    RETVAL

void
_open(class, socket, arena, timeout_ms)
    const char *class
    SV *socket
    SV *arena
    UV timeout_ms
  PREINIT:
    sqlcached_options options = SQLCACHED_OPTIONS_INIT;
    cache *inner;
    SV *self;
  PPCODE:
    options.socket = SvOK(socket) ? SvPV_nolen(socket) : NULL;
    options.arena = SvOK(arena) ? SvPV_nolen(arena) : NULL;
    options.timeout_ms = (uint32_t)timeout_ms;
    Newxz(inner, 1, cache);
    /* From here on DESTROY frees whatever there is. */
    self = sv_setref_pv(sv_newmortal(), class, inner);
    inner->value = room(aTHX);
    checked(aTHX_ sqlcached_open(&options, &inner->client));
    XPUSHs(self);

void
DESTROY(self)
    SV *self
  PREINIT:
    cache *inner;
  CODE:
    inner = SvROK(self) ? INT2PTR(cache *, SvIV(SvRV(self))) : NULL;
    if (inner) {
        sqlcached_close(inner->client);
        sqlcached_value_free(inner->value);
        Safefree(inner);
        sv_setiv(SvRV(self), 0);
    }

SV *
get(self, key)
    cache *self
    SV *key
  PREINIT:
    STRLEN length;
    const char *bytes;
  CODE:
    bytes = SvPVbyte(key, length);
    RETVAL = copied(aTHX_ checked(aTHX_ sqlcached_get(self->client, bytes, length, self->value)), self->value);
  OUTPUT:
    RETVAL

void
lookup(self, key, claim_seconds = 0)
    cache *self
    SV *key
    UV claim_seconds
  ALIAS:
    claim = 1
  PREINIT:
    STRLEN length;
    const char *bytes;
    int status;
  PPCODE:
    bytes = SvPVbyte(key, length);
    status = ix == 1 ? sqlcached_claim(self->client, bytes, length, (uint32_t)claim_seconds, self->value)
                     : sqlcached_get(self->client, bytes, length, self->value);
    checked(aTHX_ status);
    mXPUSHp(state_name(status), strlen(state_name(status)));
    if (status != SQLCACHED_MISS) {
        mXPUSHs(copied(aTHX_ status, self->value));
        mXPUSHu(sqlcached_value_flags(self->value));
        mXPUSHu(sqlcached_value_cas(self->value));
        mXPUSHp(renewal_name(self->value), strlen(renewal_name(self->value)));
    }

SV *
_get_many(self, names)
    cache *self
    AV *names
  CODE:
    RETVAL = read_many(aTHX_ self, NULL, names);
  OUTPUT:
    RETVAL

int
_store(self, how, key, value, flags, exptime, cas)
    cache *self
    int how
    SV *key
    SV *value
    UV flags
    IV exptime
    UV cas
  PREINIT:
    STRLEN key_length, length;
    const char *name, *bytes;
  CODE:
    name = SvPVbyte(key, key_length);
    bytes = SvPVbyte(value, length);
    switch (how) {
    case 0:
        RETVAL = sqlcached_set(self->client, name, key_length, bytes, length, (uint32_t)flags, exptime);
        break;
    case 1:
        RETVAL = sqlcached_add(self->client, name, key_length, bytes, length, (uint32_t)flags, exptime);
        break;
    default:
        RETVAL = sqlcached_cas(self->client, name, key_length, bytes, length, (uint32_t)flags, exptime, cas);
    }
    RETVAL = checked(aTHX_ RETVAL) == SQLCACHED_OK;
  OUTPUT:
    RETVAL

SV *
increment(self, key, delta = 1)
    cache *self
    SV *key
    IV delta
  PREINIT:
    STRLEN length;
    const char *bytes;
    uint64_t number;
    int status;
  CODE:
    bytes = SvPVbyte(key, length);
    status = checked(aTHX_ sqlcached_increment(self->client, bytes, length, delta, &number));
    RETVAL = status == SQLCACHED_OK ? newSVuv(number) : newSV(0);
  OUTPUT:
    RETVAL

int
delete(self, key)
    cache *self
    SV *key
  PREINIT:
    STRLEN length;
    const char *bytes;
  CODE:
    bytes = SvPVbyte(key, length);
    RETVAL = checked(aTHX_ sqlcached_delete(self->client, bytes, length)) == SQLCACHED_OK;
  OUTPUT:
    RETVAL

void
sql(self, statement, ...)
    cache *self
    SV *statement
  PREINIT:
    STRLEN length;
    const char *text;
    sqlcached_parameter *parameters;
    sqlcached_result *result;
    size_t i;
    AV *rows;
  PPCODE:
    Newxz(parameters, items, sqlcached_parameter);
    SAVEFREEPV(parameters);
    for (i = 2; i < (size_t)items; i++)
        set_parameter(aTHX_ &parameters[i - 2], ST(i));
    text = SvPVutf8(statement, length);
    result = sqlcached_result_new();
    if (!result)
        croak("out of memory");
    SAVEDESTRUCTOR(free_result, result);
    checked(aTHX_ sqlcached_sql(self->client, text, length, parameters, (size_t)items - 2, result));
    if (sqlcached_result_changed(result) >= 0) {
        mXPUSHi((IV)sqlcached_result_changed(result));
        XSRETURN(1);
    }
    rows = newAV();
    mXPUSHs(newRV_noinc((SV *)rows));
    for (i = 0; i < sqlcached_result_count(result); i++)
        av_push(rows, columns(aTHX_ sqlcached_result_row(result, i)));

void
table(self, name)
    cache *self
    SV *name
  PREINIT:
    table *inner;
    SV *made;
  PPCODE:
    Newxz(inner, 1, table);
    made = sv_setref_pv(sv_newmortal(), "Sqlcached::Table", inner);
    inner->value = room(aTHX);
    checked(aTHX_ sqlcached_table_open(self->client, SvPVutf8_nolen(name), &inner->table));
    XPUSHs(made);

MODULE = Sqlcached    PACKAGE = Sqlcached::Table

void
DESTROY(self)
    SV *self
  PREINIT:
    table *inner;
  CODE:
    inner = SvROK(self) ? INT2PTR(table *, SvIV(SvRV(self))) : NULL;
    if (inner) {
        sqlcached_table_free(inner->table);
        sqlcached_value_free(inner->value);
        Safefree(inner);
        sv_setiv(SvRV(self), 0);
    }

SV *
get(self, key)
    table *self
    SV *key
  PREINIT:
    STRLEN length;
    const char *bytes;
  CODE:
    bytes = SvPVbyte(key, length);
    RETVAL = copied(aTHX_ checked(aTHX_ sqlcached_table_get(self->table, bytes, length, self->value)), self->value);
  OUTPUT:
    RETVAL

SV *
_get_many(self, names)
    table *self
    AV *names
  CODE:
    RETVAL = read_many(aTHX_ NULL, self, names);
  OUTPUT:
    RETVAL

SV *
row(self, key)
    table *self
    SV *key
  PREINIT:
    STRLEN length;
    const char *bytes;
    sqlcached_row *row;
    int status;
  CODE:
    bytes = SvPVbyte(key, length);
    row = sqlcached_row_new();
    if (!row)
        croak("out of memory");
    SAVEDESTRUCTOR(free_row, row);
    status = checked(aTHX_ sqlcached_table_row(self->table, bytes, length, row));
    if (status == SQLCACHED_MISS)
        XSRETURN_UNDEF;
    RETVAL = columns(aTHX_ row);
  OUTPUT:
    RETVAL

SV *
wait(self, key, seconds)
    table *self
    SV *key
    NV seconds
  PREINIT:
    STRLEN length;
    const char *bytes;
    int status;
  CODE:
    bytes = SvPVbyte(key, length);
    status = sqlcached_table_wait(self->table, bytes, length, (uint32_t)(seconds * 1000.0), self->value);
    RETVAL = copied(aTHX_ checked(aTHX_ status), self->value);
  OUTPUT:
    RETVAL
