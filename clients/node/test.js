'use strict'
// The package as its users call it, against the daemon at SQLCACHED_SOCKET.

const assert = require('node:assert/strict')
const { before, test } = require('node:test')
const { Worker, isMainThread } = require('node:worker_threads')
const { Client } = require('@sqlcached/shared-memory')

const socket = process.env.SQLCACHED_SOCKET
const cache = new Client({ socket })

before(async () => {
  await cache.sql(`CREATE TABLE frag (page INT, part TEXT, body TEXT, PRIMARY KEY (page, part))
                   WITH (prefix = 'frag:', value = 'body', shared_memory = on)`)
  await cache.sql('CREATE TABLE kinds (k TEXT PRIMARY KEY, i INT, r REAL, t TEXT, b BLOB) WITH (shared_memory = on)')
  await cache.sql("CREATE TABLE private (k TEXT PRIMARY KEY, v TEXT) WITH (prefix = 'private:', value = 'v')")
})

test('values come back, from shared memory at once', async () => {
  assert.equal(await cache.set('frag:1:a', Buffer.from([120, 0, 255]), { flags: 7 }), true)
  assert.deepEqual(await cache.get('frag:1:a'), Buffer.from([120, 0, 255]))
  assert.deepEqual(cache.peek('frag:1:a'), Buffer.from([120, 0, 255]))
  assert.equal(await cache.get(Buffer.from('frag:1:none')), null)
  const { state, flags, cas } = await cache.lookup('frag:1:a')
  assert.deepEqual(cache.glance('frag:1:a'), { ...(await cache.lookup('frag:1:a')), renewal: cache.glance('frag:1:a').renewal })
  assert.equal(cache.table('frag').glance('1:a').flags, 7)
  assert.equal(cache.glance('frag:1:none').state, 'miss')
  assert.deepEqual([state, flags], ['hit', 7])
  assert.equal(await cache.add('frag:1:a', 'y'), false)
  assert.equal(await cache.cas('frag:1:a', 'y', cas), true)
  assert.equal(await cache.cas('frag:1:a', 'z', cas), false)
  assert.equal(await cache.delete('frag:1:a'), true)
  assert.equal(await cache.delete('frag:1:a'), false)
  assert.deepEqual(await cache.lookup('frag:1:a'), { state: 'miss', value: null, flags: 0, cas: 0n, renewal: 'nobody' })
})

test('a private table is the daemon\'s to answer', async () => {
  await cache.set('private:a', 'x')
  assert.equal(cache.peek('private:a'), undefined)
  assert.equal(cache.glance('private:a'), undefined)
  assert.equal(String(await cache.get('private:a')), 'x')
})

test('numbers', async () => {
  await cache.set('frag:2:n', '40')
  assert.equal(await cache.increment('frag:2:n', 2), 42n)
  assert.equal(await cache.increment('frag:2:n', -50), 0n)
  assert.equal(await cache.increment('frag:2:none'), null)
})

test('many at once', async () => {
  const keys = Array.from({ length: 100 }, (_, at) => `frag:3:${at}`)
  await Promise.all(keys.map((key) => cache.set(key, key)))
  const found = await cache.getMany([...keys, 'frag:3:none'])
  assert.deepEqual([...found].map(([key, value]) => [key, String(value)]), keys.map((key) => [key, key]))
  assert.equal((await cache.getMany([])).size, 0)
})

test('any bytes are a key, and any length a value', async () => {
  await cache.set('frag:4:\u20ac\r\nflush_all', 'x')
  assert.equal(String(await cache.get('frag:4:\u20ac\r\nflush_all')), 'x')
  await cache.set('frag:4:empty', '')
  assert.equal((await cache.get('frag:4:empty')).length, 0)
  const large = Buffer.alloc(900000, 'b')
  await cache.set('frag:4:large', large)
  assert.ok((await cache.get('frag:4:large')).equals(large))
  await assert.rejects(cache.set('frag:4:large', Buffer.alloc(2000000)), /too large/)
})

test('rows and tables', async () => {
  assert.equal(await cache.sql('INSERT INTO kinds VALUES (?1, ?2, ?3, ?4, ?5)', 'a', -5, 0.5, 'k\u00e9y', Buffer.from([0, 255])), 1)
  assert.equal(await cache.sql('INSERT INTO kinds VALUES (?1, ?2, NULL, NULL, NULL)', 'big', 2n ** 62n), 1)
  const kinds = cache.table('kinds')
  assert.deepEqual(await kinds.row('a'), { k: 'a', i: -5, r: 0.5, t: 'k\u00e9y', b: Buffer.from([0, 255]) })
  assert.equal((await kinds.row('big')).i, 2n ** 62n)
  assert.equal(await kinds.row('none'), null)
  const frag = cache.table('frag')
  await cache.set('frag:5:a', 'a')
  assert.equal(String(await frag.get('5:a')), 'a')
  assert.equal(String(frag.peek('5:a')), 'a')
  assert.equal((await frag.lookup('5:a')).state, 'hit')
  assert.deepEqual([...(await frag.getMany(['5:a', '5:none'])).keys()], ['5:a'])
  assert.equal(String(await frag.wait('5:a', 1)), 'a')
  assert.equal(await frag.wait('5:never', 60), null)
})

test('statements', async () => {
  assert.equal(await cache.sql("INSERT INTO frag VALUES (7, 'a', 'x'), (7, 'b', NULL)"), 2)
  assert.deepEqual(await cache.sql('SELECT part, body FROM frag WHERE page = ?1 ORDER BY part', 7), [
    { part: 'a', body: 'x' },
    { part: 'b', body: null },
  ])
  const values = [null, true, -(2n ** 63n), 0.5, 'a\'"\n\u20ac', Buffer.from([0, 255])]
  const [row] = await cache.sql('SELECT ?1 AS a, ?2 AS b, ?3 AS c, ?4 AS d, ?5 AS e, ?6 AS f', ...values)
  assert.deepEqual(Object.values(row), [null, 1, -(2n ** 63n), 0.5, 'a\'"\n\u20ac', Buffer.from([0, 255])])
  await assert.rejects(async () => cache.sql('SELECT ?1', 2n ** 63n), RangeError)
  await assert.rejects(async () => cache.sql('SELECT ?1', {}))
})

test('errors', async () => {
  await assert.rejects(cache.sql('SELEKT'), (error) => error instanceof Error && error.sqlstate === '42601')
  assert.throws(() => cache.table('no_such'), (error) => error.status === -4)
  await assert.rejects(cache.set('k'.repeat(251), 'x'), (error) => error.status === -1)
  assert.throws(() => new Client({ socket: '/nowhere' }), (error) => error.status === -2)
  await assert.rejects(async () => cache.get(17))
})

test('a wait holds up nobody', async () => {
  assert.equal((await cache.claim('frag:6:w', 60)).renewal, 'you')
  assert.equal((await cache.claim('frag:6:w', 60)).renewal, 'another')
  assert.equal(await cache.table('frag').wait('6:w', 0.01), null)
  const waiting = cache.table('frag').wait('6:w', 60)
  await cache.set('frag:6:w', 'here')
  assert.equal(String(await waiting), 'here')
})

test('a worker has a client of its own', { skip: !isMainThread }, async () => {
  await cache.set('frag:8:w', 'seen')
  const code = `const { parentPort } = require('node:worker_threads'), { Client } = require('@sqlcached/shared-memory')
    parentPort.postMessage(String(new Client({ socket: process.env.SQLCACHED_SOCKET }).peek('frag:8:w')))`
  const answer = await new Promise((resolve, reject) => {
    const worker = new Worker(code, { eval: true })
    worker.on('message', resolve)
    worker.on('error', reject)
  })
  assert.equal(answer, 'seen')
})
