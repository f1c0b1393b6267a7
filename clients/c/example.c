#include <sqlcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    sqlcached_options options = SQLCACHED_OPTIONS_INIT;
    options.socket = getenv("SQLCACHED_SOCKET");
    sqlcached *cache;
    sqlcached_value *body = sqlcached_value_new();
    if (sqlcached_open(&options, &cache) < 0 || sqlcached_set(cache, "greeting", 8, "hello\n", 6, 0, 600) < 0)
        return fprintf(stderr, "%s\n", sqlcached_message()), 1;
    if (sqlcached_get(cache, "greeting", 8, body) == SQLCACHED_OK)
        fwrite(sqlcached_value_data(body, NULL), 1, 6, stdout);
    sqlcached_value_free(body);
    sqlcached_close(cache);
    return 0;
}
