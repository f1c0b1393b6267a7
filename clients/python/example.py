import os

import sqlcached

with sqlcached.Client(os.environ["SQLCACHED_SOCKET"]) as cache:
    cache.sql("""CREATE TABLE frag (page INT, part TEXT, body TEXT, PRIMARY KEY (page, part))
                 WITH (prefix = 'frag:', value = 'body', shared_memory = on)""")
    cache.set("frag:17:head", b"hello", expire=600)
    print(cache.get("frag:17:head").decode())
    cache.sql("DELETE FROM frag WHERE page = ?1", 17)
