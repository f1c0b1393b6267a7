// node-postgres, unchanged: what its users do with a server. See tests/drivers/README.md.
'use strict'

const assert = require('node:assert/strict')
const net = require('node:net')
const { Readable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const { Client, Pool } = require('pg')
const Cursor = require('pg-cursor')
const { from: copyFrom, to: copyTo } = require('pg-copy-streams')

const OURS = Boolean(process.env.MEMCACHED_PORT)
const ENDLESS = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
                 SELECT count(*) FROM n`
const COLUMNS = `id INTEGER PRIMARY KEY, flag BOOLEAN, small SMALLINT, big BIGINT, real8 DOUBLE PRECISION,
  price NUMERIC(12, 2), name TEXT, code VARCHAR(20), raw BYTEA, at TIMESTAMPTZ, doc JSON, docb JSONB, uid UUID`
const ROW = [
  1, true, -7, '9000000000000000000', 0.5, '12.50', "Gr\u00fc\u00dfe, it's \\", 'x-1', Buffer.from([0, 1, 255, 92, 120]),
  new Date('2026-02-03T04:05:06.789Z'), { a: [1, null, 'x'] }, { b: { c: true } },
  '12345678-1234-5678-1234-567812345678'
]

// PGHOST, PGPORT, PGUSER and PGDATABASE are variables of the driver too.
async function connected(work, options = {}) {
  const client = new Client(options)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

async function fresh(client, name, columns) {
  await client.query(`DROP TABLE IF EXISTS ${name}`)
  await client.query(`CREATE TABLE ${name} (${columns})`)
}

async function failsWith(code, promise) {
  const error = await promise.then(() => null, (error) => error)
  assert.equal(error && error.code, code, error ? error.message : `no error ${code}`)
  return error
}

function memcached(request) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(process.env.MEMCACHED_PORT), '127.0.0.1', () => socket.write(request + 'quit\r\n'))
    const parts = []
    socket.on('data', (part) => parts.push(part)).on('end', () => resolve(Buffer.concat(parts).toString()))
    socket.on('error', reject)
  })
}

const checks = {
  'connects over TCP and over a Unix socket': async () => {
    for (const options of [{}, { host: process.env.SOCKET_DIR }]) {
      await connected(async (client) => {
        assert.deepEqual((await client.query('SELECT 1 AS one')).rows, [{ one: 1 }])
        assert.ok(client.processID > 0)
      }, options)
    }
  },

  'simple, parameterised and named prepared queries give the same rows': () => connected(async (client) => {
    await fresh(client, 'node_plain', 'id INTEGER PRIMARY KEY, name TEXT')
    await client.query("INSERT INTO node_plain VALUES (1, 'a'), (2, 'b')")
    assert.deepEqual((await client.query('SELECT name FROM node_plain WHERE id = 2')).rows, [{ name: 'b' }])
    for (let round = 0; round < 3; round++) {
      const named = { name: 'by-id', text: 'SELECT name FROM node_plain WHERE id = $1', values: [round] }
      const found = await client.query(named)
      assert.deepEqual(found.rows, round === 0 ? [] : [{ name: 'xab'[round] }])
      assert.equal(found.command, 'SELECT')
      assert.equal(found.rowCount, Math.min(round, 1))
    }
    const array = await client.query({ text: 'SELECT id, name FROM node_plain ORDER BY id', rowMode: 'array' })
    assert.deepEqual(array.rows, [[1, 'a'], [2, 'b']])
    const several = await client.query('SELECT 1 AS a; SELECT 2 AS b')
    assert.deepEqual(several.map((result) => result.rows[0]), [{ a: 1 }, { b: 2 }])
  }),

  'every type goes in and comes out, and NULLs': () => connected(async (client) => {
    await fresh(client, 'node_types', COLUMNS)
    const places = ROW.map((_, index) => `$${index + 1}`).join(', ')
    await client.query(`INSERT INTO node_types VALUES (${places})`, ROW)
    await client.query(`INSERT INTO node_types VALUES (${places})`, ROW.map((_, index) => (index === 0 ? 2 : null)))
    const text = 'SELECT * FROM node_types ORDER BY id'
    const found = await client.query({ text, rowMode: 'array' })
    assert.deepEqual(found.rows[0], ROW)
    assert.deepEqual(found.rows[1].slice(1), ROW.slice(1).map(() => null))
    assert.deepEqual(found.fields.map((field) => field.dataTypeID),
      [23, 16, 21, 20, 701, 1700, 25, 1043, 17, 1184, 114, 3802, 2950])
  }),

  '= ANY($1) takes an array': () => connected(async (client) => {
    await fresh(client, 'node_plain', 'id INTEGER PRIMARY KEY, name TEXT')
    await client.query("INSERT INTO node_plain VALUES (1, 'a'), (2, 'b'), (3, 'c,\"d')")
    const ids = async (text, values) => (await client.query({ text, values, rowMode: 'array' })).rows.flat()
    assert.deepEqual(await ids('SELECT id FROM node_plain WHERE id = ANY($1) ORDER BY id', [[1, 3]]), [1, 3])
    assert.deepEqual(await ids('SELECT id FROM node_plain WHERE id = ANY($1::int[]) ORDER BY id', [[2]]), [2])
    assert.deepEqual(await ids('SELECT id FROM node_plain WHERE name = ANY($1::text[])', [['c,"d', 'zz']]), [3])
    assert.deepEqual(await ids('SELECT id FROM node_plain WHERE id = ANY($1)', [[]]), [])
  }),

  'errors have a SQLSTATE, and leave the connection usable': () => connected(async (client) => {
    await fresh(client, 'node_plain', 'id INTEGER PRIMARY KEY, name TEXT')
    await client.query("INSERT INTO node_plain VALUES (1, 'a')")
    await failsWith('42601', client.query('SELEC 1'))
    assert.equal((await failsWith('42P01', client.query('SELECT * FROM node_none'))).position, '15')
    await failsWith('42703', client.query('SELECT missing FROM node_plain WHERE id = $1', [1]))
    const taken = await failsWith('23505', client.query('INSERT INTO node_plain VALUES ($1, $2)', [1, 'b']))
    assert.equal(taken.constraint, 'node_plain_pkey')
    await failsWith('22P02', client.query('SELECT * FROM node_plain WHERE id = $1', ['one']))
    await failsWith('08P01', client.query('SELECT * FROM node_plain WHERE id = $1', [1, 2]))
    assert.equal((await client.query('SELECT 1 AS one')).rows[0].one, 1)
  }),

  'transactions, savepoints, and a lost race': () => connected((one) => connected(async (two) => {
    await fresh(two, 'node_plain', 'id INTEGER PRIMARY KEY, n INTEGER')
    const count = async () => Number((await two.query('SELECT count(*) FROM node_plain')).rows[0].count)
    await one.query('BEGIN')
    await one.query('INSERT INTO node_plain VALUES (1, 0)')
    await one.query('SAVEPOINT a')
    await failsWith('23505', one.query('INSERT INTO node_plain VALUES (1, 0)'))
    await failsWith('25P02', one.query('SELECT 1'))
    await one.query('ROLLBACK TO SAVEPOINT a')
    assert.equal(await count(), 0)
    await one.query('COMMIT')
    assert.equal(await count(), 1)
    await one.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await one.query('SELECT n FROM node_plain WHERE id = $1', [1])
    const change = () => one.query('UPDATE node_plain SET n = n + 1 WHERE id = $1', [1])
    // No write waits for another in sqlcached; the one who commits late is refused.
    if (OURS) await change()
    await two.query('UPDATE node_plain SET n = 10')
    await failsWith('40001', OURS ? one.query('COMMIT') : change())
    await one.query('ROLLBACK')
    assert.equal((await two.query('SELECT n FROM node_plain')).rows[0].n, 10)
  })),

  'many queries are queued at once and answered in order': () => connected(async (client) => {
    await fresh(client, 'node_plain', 'id INTEGER PRIMARY KEY')
    const queries = Array.from({ length: 200 }, (_, id) => client.query('INSERT INTO node_plain VALUES ($1) RETURNING id', [id]))
    assert.deepEqual((await Promise.all(queries)).map((result) => result.rows[0].id), [...Array(200).keys()])
  }),

  'a cursor reads a large result in pieces': () => connected(async (client) => {
    const cursor = client.query(new Cursor(
      'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1::int) SELECT i FROM n', [250]))
    let rows = 0
    for (let part = await cursor.read(100); part.length > 0; part = await cursor.read(100)) rows += part.length
    assert.equal(rows, 250)
    await cursor.close()
    const abandoned = client.query(new Cursor('VALUES (1), (2), (3)'))
    assert.equal((await abandoned.read(1)).length, 1)
    await abandoned.close()
    assert.equal((await client.query('SELECT 1 AS one')).rows[0].one, 1)
  }),

  'statement_timeout ends a statement': async () => {
    await connected((client) => failsWith('57014', client.query(ENDLESS)), { statement_timeout: 100 })
  },

  'pg_cancel_backend ends the statement of another session': async () => {
    await connected((one) => connected(async (two) => {
      const running = failsWith('57014', one.query(ENDLESS))
      await new Promise((resolve) => setTimeout(resolve, 100))
      const asked = await two.query('SELECT pg_cancel_backend($1)', [one.processID]).catch((error) => error)
      await running
      assert.ok(!(asked instanceof Error), asked.message)
    }), { statement_timeout: 2000 })
  },

  'COPY streams rows in and out': () => connected(async (client) => {
    await fresh(client, 'node_copy', 'id INTEGER PRIMARY KEY, name TEXT')
    const lines = Array.from({ length: 1000 }, (_, id) => `${id}\tname ${id}\n`)
    const incoming = client.query(copyFrom('COPY node_copy FROM STDIN'))
    await pipeline(Readable.from(lines), incoming)
    assert.equal(incoming.rowCount, 1000)
    const parts = []
    const outgoing = client.query(copyTo('COPY (SELECT id, name FROM node_copy ORDER BY id) TO STDOUT'))
    for await (const part of outgoing) parts.push(part)
    assert.equal(Buffer.concat(parts).toString(), lines.join(''))
    const broken = client.query(copyFrom('COPY node_copy FROM STDIN WITH (FORMAT csv)'))
    await failsWith('22P02', pipeline(Readable.from(['x,y\n']), broken))
    assert.equal((await client.query('SELECT count(*) FROM node_copy')).rows[0].count, '1000')
  }),

  'LISTEN gets what NOTIFY sends': () => connected((one) => connected(async (two) => {
    const heard = new Promise((resolve) => one.once('notification', resolve))
    await one.query('LISTEN node_channel')
    await two.query("SELECT pg_notify('node_channel', $1)", ['hello'])
    const { channel, payload } = await heard
    assert.deepEqual([channel, payload], ['node_channel', 'hello'])
  })),

  'a pool serves many at once and replaces a broken connection': async () => {
    const pool = new Pool({ max: 4 })
    pool.on('error', () => {})
    const found = await Promise.all(Array.from({ length: 50 }, (_, n) => pool.query('SELECT $1::int AS n', [n])))
    assert.deepEqual(found.map((result) => result.rows[0].n), [...Array(50).keys()])
    const client = await pool.connect()
    client.on('error', () => {})
    client.connection.stream.destroy()
    await assert.rejects(client.query('SELECT 1'))
    client.release(true)
    assert.equal((await pool.query('SELECT 2 AS two')).rows[0].two, 2)
    await pool.end()
  }
}

if (OURS) {
  checks["a row written by SQL is read by memcached's get, and the other way round"] = () => connected(async (client) => {
    await client.query('DROP TABLE IF EXISTS node_frag')
    await client.query("CREATE TABLE node_frag (key TEXT PRIMARY KEY, page INT, body BYTEA) WITH (prefix = 'node:', value = 'body')")
    await client.query('INSERT INTO node_frag VALUES ($1, $2, $3)', ['a', 17, Buffer.from('hello')])
    assert.equal(await memcached('get node:a\r\nset node:b 0 0 2\r\nhi\r\n'), 'VALUE node:a 0 5\r\nhello\r\nEND\r\nSTORED\r\n')
    assert.equal(String((await client.query("SELECT body FROM node_frag WHERE key = 'b'")).rows[0].body), 'hi')
  })
}

async function main() {
  // A check that never ends would end the program without a word.
  let failed = 0
  process.exitCode = 1
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check()
      console.log(`ok - ${name}`)
    } catch (error) {
      failed = 1
      console.log(`not ok - ${name}: ${error.message.replace(/\s+/g, ' ')}`)
      console.error(error)
    }
  }
  process.exitCode = failed
}

main()
