const { Client } = require('@sqlcached/shared-memory')

async function main() {
  const cache = new Client({ socket: process.env.SQLCACHED_SOCKET })
  await cache.sql(`CREATE TABLE frag (page INT, part TEXT, body TEXT, PRIMARY KEY (page, part))
                   WITH (prefix = 'frag:', value = 'body', shared_memory = on)`)
  await cache.set('frag:17:head', 'hello', { expire: 600 })
  console.log(String(await cache.get('frag:17:head')))
  await cache.sql('DELETE FROM frag WHERE page = ?1', 17)
}

main()
