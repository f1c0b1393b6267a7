// pgx, unchanged: what its users do with a server. See tests/drivers/README.md.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
)

const endless = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
	SELECT count(*) FROM n`

var (
	ctx  = context.Background()
	ours = os.Getenv("MEMCACHED_PORT") != ""
)

// must turns an error into the end of the check that runs.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func one[T any](value T, err error) T {
	must(err)
	return value
}

func same(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Errorf("found %v, expected %v", found, expected))
	}
}

func failsWith(state string, err error) *pgconn.PgError {
	var failure *pgconn.PgError
	if !errors.As(err, &failure) || failure.Code != state {
		panic(fmt.Errorf("found %v, expected SQLSTATE %s", err, state))
	}
	return failure
}

// connect takes PGHOST, PGPORT, PGUSER and PGDATABASE, which are pgx's own variables, and what is added to them.
func connect(more string) *pgx.Conn {
	return one(pgx.Connect(ctx, "sslmode=prefer "+more))
}

func run(db interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
}, statement string, arguments ...any) pgconn.CommandTag {
	return one(db.Exec(ctx, statement, arguments...))
}

func ask[T any](db interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}, query string, arguments ...any) T {
	var found T
	must(db.QueryRow(ctx, query, arguments...).Scan(&found))
	return found
}

func fresh(db *pgx.Conn, name, columns string) {
	run(db, "DROP TABLE IF EXISTS "+name)
	run(db, "CREATE TABLE "+name+" ("+columns+")")
}

func tcpAndUnix() {
	for _, host := range []string{os.Getenv("PGHOST"), os.Getenv("SOCKET_DIR")} {
		db := connect("host=" + host)
		same(ask[int32](db, "SELECT 1"), int32(1))
		same(db.PgConn().ParameterStatus("client_encoding"), "UTF8")
		must(db.Close(ctx))
	}
}

func modes() {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		db := connect("")
		fresh(db, "go_plain", "id INTEGER PRIMARY KEY, name TEXT")
		for id := 1; id <= 5; id++ {
			same(run(db, "INSERT INTO go_plain VALUES ($1, $2)", mode, id, "it's").String(), "INSERT 0 1")
		}
		same(ask[string](db, "SELECT name FROM go_plain WHERE id = $1", mode, 3), "it's")
		same(ask[int64](db, "SELECT count(*) FROM go_plain WHERE id > $1", mode, 2), int64(3))
		must(db.Close(ctx))
	}
}

type row struct {
	ID    int32
	Flag  *bool
	Small *int16
	Big   *int64
	Real4 *float32
	Real8 *float64
	Price pgtype.Numeric
	Name  *string
	Raw   []byte
	At    *time.Time
	Day   pgtype.Date
	Doc   map[string]any
	DocB  map[string]any
	UID   pgtype.UUID
}

func point[T any](value T) *T { return &value }

func types() {
	at := time.Date(2026, 2, 3, 4, 5, 6, 789000000, time.UTC)
	full := row{ID: 1, Flag: point(true), Small: point(int16(-7)), Big: point(int64(1) << 62), Real4: point(float32(1.5)),
		Real8: point(0.1), Name: point("Gr\u00fc\u00dfe"), Raw: []byte{0, 1, 255, 92}, At: &at,
		Day: pgtype.Date{Time: time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC), Valid: true},
		Doc: map[string]any{"a": []any{1.0, nil, "x"}}, DocB: map[string]any{"b": true}}
	must(full.Price.Scan("12.25"))
	must(full.UID.Scan("12345678-1234-5678-1234-567812345678"))
	db := connect("")
	defer db.Close(ctx)
	fresh(db, "go_types", `id INTEGER PRIMARY KEY, flag BOOLEAN, small SMALLINT, big BIGINT, real4 FLOAT4,
		real8 DOUBLE PRECISION, price NUMERIC(12, 2), name TEXT, raw BYTEA, at TIMESTAMPTZ, day DATE, doc JSON,
		docb JSONB, uid UUID`)
	insert := "INSERT INTO go_types VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
	for _, each := range []row{full, {ID: 2}} {
		run(db, insert, each.ID, each.Flag, each.Small, each.Big, each.Real4, each.Real8, each.Price, each.Name,
			each.Raw, each.At, each.Day, each.Doc, each.DocB, each.UID)
	}
	rows := one(db.Query(ctx, "SELECT * FROM go_types ORDER BY id"))
	found := one(pgx.CollectRows(rows, pgx.RowToStructByPos[row]))
	same(len(found), 2)
	same(found[0].At.UTC(), at)
	price := one(found[0].Price.Float64Value())
	same(price.Float64, 12.25)
	found[0].At, found[0].Price = full.At, full.Price
	same(found[0], full)
	same(found[1], row{ID: 2})
}

func arrays() {
	db := connect("")
	defer db.Close(ctx)
	fresh(db, "go_plain", "id INTEGER PRIMARY KEY, name TEXT")
	run(db, "INSERT INTO go_plain VALUES (1, 'a'), (2, 'b'), (3, 'c,\"d')")
	ids := func(query string, argument any) []int32 {
		return one(pgx.CollectRows(one(db.Query(ctx, query, argument)), pgx.RowTo[int32]))
	}
	same(ids("SELECT id FROM go_plain WHERE id = ANY($1) ORDER BY id", []int32{1, 3}), []int32{1, 3})
	same(ids("SELECT id FROM go_plain WHERE id = ANY($1::int8[])", []int64{2, 99}), []int32{2})
	same(ids("SELECT id FROM go_plain WHERE name = ANY($1)", []string{`c,"d`, "zz"}), []int32{3})
	same(len(ids("SELECT id FROM go_plain WHERE id = ANY($1)", []int32{})), 0)
}

func failures() {
	db := connect("")
	defer db.Close(ctx)
	fresh(db, "go_plain", "id INTEGER PRIMARY KEY, name TEXT")
	run(db, "INSERT INTO go_plain VALUES (1, 'a')")
	exec := func(statement string, arguments ...any) error {
		_, err := db.Exec(ctx, statement, arguments...)
		return err
	}
	failsWith("42601", exec("SELEC 1"))
	same(failsWith("42P01", exec("SELECT * FROM go_none")).Position, int32(15))
	same(failsWith("23505", exec("INSERT INTO go_plain VALUES ($1, $2)", 1, "b")).ConstraintName, "go_plain_pkey")
	failsWith("22P02", exec("INSERT INTO go_plain VALUES ('x', 'b')"))
	same(ask[int64](db, "SELECT count(*) FROM go_plain"), int64(1))
	same(errors.Is(db.QueryRow(ctx, "SELECT id FROM go_plain WHERE id = 2").Scan(new(int32)), pgx.ErrNoRows), true)
}

func transactions() {
	db, other := connect(""), connect("")
	defer db.Close(ctx)
	defer other.Close(ctx)
	fresh(other, "go_plain", "id INTEGER PRIMARY KEY, n INTEGER")
	tx := one(db.Begin(ctx))
	run(tx, "INSERT INTO go_plain VALUES (1, 0)")
	nested := one(tx.Begin(ctx))
	_, err := nested.Exec(ctx, "INSERT INTO go_plain VALUES (1, 0)")
	failsWith("23505", err)
	_, err = nested.Exec(ctx, "SELECT 1")
	failsWith("25P02", err)
	must(nested.Rollback(ctx))
	same(ask[int64](other, "SELECT count(*) FROM go_plain"), int64(0))
	must(tx.Commit(ctx))
	same(ask[int64](other, "SELECT count(*) FROM go_plain"), int64(1))

	tx = one(db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}))
	same(ask[int32](tx, "SELECT n FROM go_plain WHERE id = $1", 1), int32(0))
	if ours {
		// No write waits for another here; the one who commits late is refused.
		run(tx, "UPDATE go_plain SET n = n + 1 WHERE id = $1", 1)
		run(other, "UPDATE go_plain SET n = 10")
		failsWith("40001", tx.Commit(ctx))
	} else {
		run(other, "UPDATE go_plain SET n = 10")
		_, err = tx.Exec(ctx, "UPDATE go_plain SET n = n + 1 WHERE id = $1", 1)
		failsWith("40001", err)
	}
	_ = tx.Rollback(ctx)
	same(ask[int32](other, "SELECT n FROM go_plain"), int32(10))

	tx = one(db.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}))
	_, err = tx.Exec(ctx, "INSERT INTO go_plain VALUES (3, 3)")
	failsWith("25006", err)
	must(tx.Rollback(ctx))
}

func batches() {
	db := connect("")
	defer db.Close(ctx)
	fresh(db, "go_plain", "id INTEGER PRIMARY KEY, n INTEGER")
	batch := &pgx.Batch{}
	for id := 0; id < 100; id++ {
		batch.Queue("INSERT INTO go_plain VALUES ($1, $2)", id, id*id)
	}
	batch.Queue("SELECT sum(n) FROM go_plain").QueryRow(func(row pgx.Row) error {
		var sum int64
		must(row.Scan(&sum))
		same(sum, int64(328350))
		return nil
	})
	must(db.SendBatch(ctx, batch).Close())
	batch = &pgx.Batch{}
	batch.Queue("DELETE FROM go_plain")
	batch.Queue("INSERT INTO go_plain VALUES ('x', 1)")
	failsWith("22P02", db.SendBatch(ctx, batch).Close())
	same(ask[int64](db, "SELECT count(*) FROM go_plain"), int64(100))
}

func copies() {
	db := connect("")
	defer db.Close(ctx)
	fresh(db, "go_copy", "id INTEGER PRIMARY KEY, name TEXT, raw BYTEA")
	source := pgx.CopyFromSlice(2000, func(id int) ([]any, error) {
		return []any{int32(id), fmt.Sprint("name ", id), []byte{byte(id)}}, nil
	})
	same(one(db.CopyFrom(ctx, pgx.Identifier{"go_copy"}, []string{"id", "name", "raw"}, source)), int64(2000))
	same(ask[string](db, "SELECT name FROM go_copy WHERE id = 1234"), "name 1234")
	reader, writer := io.Pipe()
	go func() {
		_, err := db.PgConn().CopyTo(ctx, writer, "COPY (SELECT id, name FROM go_copy ORDER BY id) TO STDOUT")
		writer.CloseWithError(err)
	}()
	text := string(one(io.ReadAll(reader)))
	same(strings.Count(text, "\n"), 2000)
	same(strings.HasPrefix(text, "0\tname 0\n1\tname 1\n"), true)
}

func cancels() {
	db := connect("")
	defer db.Close(ctx)
	run(db, "SET statement_timeout = '100ms'")
	_, err := db.Exec(ctx, endless)
	failsWith("57014", err)
	run(db, "RESET statement_timeout")
	go func() {
		time.Sleep(200 * time.Millisecond)
		_ = db.PgConn().CancelRequest(ctx)
	}()
	_, err = db.Exec(ctx, endless)
	failsWith("57014", err)
	same(ask[int32](db, "SELECT 1"), int32(1))
	limited, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = db.Exec(limited, endless)
	same(pgconn.Timeout(err), true)
}

func notifications() {
	db, other := connect(""), connect("")
	defer db.Close(ctx)
	defer other.Close(ctx)
	run(db, "LISTEN go_channel")
	run(other, "SELECT pg_notify('go_channel', $1)", "hello")
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	note := one(db.WaitForNotification(limited))
	same([]string{note.Channel, note.Payload}, []string{"go_channel", "hello"})
}

func pools() {
	pool := one(pgxpool.New(ctx, "pool_max_conns=4"))
	defer pool.Close()
	var wait sync.WaitGroup
	found := make([]int32, 100)
	for n := range found {
		wait.Add(1)
		go func(n int) {
			defer wait.Done()
			_ = pool.QueryRow(ctx, "SELECT $1::int4 + 1", n).Scan(&found[n])
		}(n)
	}
	wait.Wait()
	for n, each := range found {
		same(each, int32(n+1))
	}
	held := one(pool.Acquire(ctx))
	must(held.Conn().PgConn().Conn().Close())
	_, err := held.Exec(ctx, "SELECT 1")
	same(err != nil, true)
	held.Release()
	same(ask[int32](pool, "SELECT 2"), int32(2))
}

func databaseSQL() {
	db := one(sql.Open("pgx", ""))
	defer db.Close()
	one(db.Exec("DROP TABLE IF EXISTS go_std"))
	one(db.Exec("CREATE TABLE go_std (id INTEGER PRIMARY KEY, name TEXT)"))
	insert := one(db.Prepare("INSERT INTO go_std VALUES ($1, $2)"))
	for id := 0; id < 10; id++ {
		same(one(one(insert.Exec(id, sql.NullString{Valid: id%2 == 0, String: "x"})).RowsAffected()), int64(1))
	}
	tx := one(db.Begin())
	one(tx.Exec("DELETE FROM go_std WHERE name IS NULL"))
	must(tx.Rollback())
	var count int
	must(db.QueryRow("SELECT count(*) FROM go_std WHERE name IS NULL").Scan(&count))
	same(count, 5)
}

func memcachedSees() {
	db := connect("")
	defer db.Close(ctx)
	run(db, "DROP TABLE IF EXISTS go_frag")
	run(db, "CREATE TABLE go_frag (key TEXT PRIMARY KEY, page INT, body BYTEA) WITH (prefix = 'go:', value = 'body')")
	run(db, "INSERT INTO go_frag VALUES ($1, $2, $3)", "a", 17, []byte("hello"))
	wire := one(net.Dial("tcp", "127.0.0.1:"+os.Getenv("MEMCACHED_PORT")))
	one(wire.Write([]byte("get go:a\r\nset go:b 0 0 2\r\nhi\r\nquit\r\n")))
	same(string(one(io.ReadAll(wire))), "VALUE go:a 0 5\r\nhello\r\nEND\r\nSTORED\r\n")
	same(ask[[]byte](db, "SELECT body FROM go_frag WHERE key = 'b'"), []byte("hi"))
}

// holds runs a check and prints its line.
func holds(name string, check func()) (held bool) {
	defer func() {
		if why := recover(); why != nil {
			fmt.Printf("not ok - %s: %s\n", name, strings.Join(strings.Fields(fmt.Sprint(why)), " "))
		}
	}()
	check()
	fmt.Println("ok - " + name)
	return true
}

func main() {
	good := holds("connects over TCP and over a Unix socket", tcpAndUnix)
	good = holds("each of pgx's ways to run a query", modes) && good
	good = holds("types go in and come out as binary, and NULLs", types) && good
	good = holds("= ANY($1) takes a slice", arrays) && good
	good = holds("errors have a SQLSTATE, position and constraint", failures) && good
	good = holds("transactions, savepoints, a lost race, and read only", transactions) && good
	good = holds("a batch is one round trip, and whole or not at all", batches) && good
	good = holds("CopyFrom and CopyTo", copies) && good
	good = holds("statement_timeout, CancelRequest and a context's deadline end a statement", cancels) && good
	good = holds("LISTEN gets what NOTIFY sends", notifications) && good
	good = holds("a pool serves many at once and replaces a broken connection", pools) && good
	good = holds("database/sql with prepared statements", databaseSQL) && good
	if ours {
		good = holds("a row written by SQL is read by memcached's get, and the other way round", memcachedSees) && good
	}
	if !good {
		os.Exit(1)
	}
}
