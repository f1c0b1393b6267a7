// Package steps runs the checks of a Go suite and prints a line for each.
package steps

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

type check struct {
	name string
	body func() error
}

var checks []check

// Check registers a check under a name without a colon and a blank behind it.
func Check(name string, body func() error) {
	checks = append(checks, check{name, body})
}

// Same says that two values must be equal, with their types.
func Same(found, expected any) error {
	if reflect.DeepEqual(found, expected) {
		return nil
	}
	return fmt.Errorf("found %#v, expected %#v", found, expected)
}

// State returns the SQLSTATE of an error, also where a layer above wrapped it.
func State(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code
	}
	return ""
}

// Fails says that the error must have this SQLSTATE.
func Fails(err error, state string) error {
	if err == nil {
		return fmt.Errorf("it did not fail with %s", state)
	}
	return Same(State(err), state)
}

// All returns the first error.
func All(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// URL is where the server is.
func URL(scheme string) string {
	env := os.Getenv
	return fmt.Sprintf("%s://%s@%s:%s/%s?sslmode=disable", scheme, env("PGUSER"), env("PGHOST"), env("PGPORT"), env("PGDATABASE"))
}

// Run runs all checks in their order and ends the program, with 1 if one failed.
func Run() {
	code := 0
	for _, each := range checks {
		if err := guarded(each.body); err != nil {
			code = 1
			said := strings.Join(strings.Fields(err.Error()), " ")
			fmt.Printf("not ok - %s: %s %s\n", each.name, State(err), said)
		} else {
			fmt.Printf("ok - %s\n", each.name)
		}
	}
	os.Exit(code)
}

func guarded(body func() error) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic %v", panicked)
		}
	}()
	return body()
}
