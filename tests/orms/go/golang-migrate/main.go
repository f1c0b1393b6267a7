// golang-migrate, unchanged: up, down, force, drop. See tests/orms/README.md.
package main

import (
	"database/sql"
	"embed"
	"errors"

	. "sqlcached.test/orms/steps"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	_ "github.com/jackc/pgx/v5/stdlib"
)

//go:embed migrations
var migrations embed.FS

var tool *migrate.Migrate
var db *sql.DB

func version(expected uint, dirty bool) error {
	found, isDirty, err := tool.Version()
	return All(err, Same(found, expected), Same(isDirty, dirty))
}

func count(query string, expected int) error {
	var found int
	return All(db.QueryRow(query).Scan(&found), Same(found, expected))
}

func opened() error {
	from, err := iofs.New(migrations, "migrations")
	if err != nil {
		return err
	}
	tool, err = migrate.NewWithSourceInstance("iofs", from, URL("pgx5"))
	return err
}

func main() {
	Check("connects", func() (err error) {
		db, err = sql.Open("pgx", URL("postgres"))
		return All(err, db.Ping())
	})
	Check("makes the table of versions, under an advisory lock", opened)
	Check("one step up", func() error { return All(tool.Steps(1), version(1, false)) })
	Check("rows of the first version", func() error {
		_, err := db.Exec("INSERT INTO member (name) VALUES ('ann'), ('bob')")
		return err
	})
	Check("migrate to a version", func() error { return All(tool.Migrate(2), version(2, false)) })
	Check("up to the last that works, and the next is dirty", func() error {
		return All(Same(tool.Up() != nil, true), version(4, true))
	})
	Check("force", func() error { return All(tool.Force(3), version(3, false)) })
	Check("a failed migration in a transaction left nothing", func() error {
		return count("SELECT count(*) FROM information_schema.tables WHERE table_name = 'half'", 0)
	})
	Check("the altered table has its rows", func() error {
		return count("SELECT count(*) FROM member WHERE town = 'Ulm' AND karma = 0", 2)
	})
	Check("one step down", func() error { return All(tool.Steps(-1), version(2, false)) })
	Check("down to nothing", func() error {
		return All(tool.Down(), count("SELECT count(*) FROM information_schema.tables WHERE table_name = 'member'", 0))
	})
	Check("up to a version again, with nothing left to do", func() error {
		return All(tool.Migrate(3), Same(errors.Is(tool.Migrate(3), migrate.ErrNoChange), true))
	})
	Check("drop takes all tables", func() error {
		return All(tool.Drop(), count("SELECT count(*) FROM information_schema.tables WHERE table_name IN ('member', 'note', 'schema_migrations')", 0))
	})
	Check("close", func() error {
		first, second := tool.Close()
		return All(first, second)
	})
	Run()
}
