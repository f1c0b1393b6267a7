"""SQLAlchemy over psycopg 3, unchanged: Core, ORM and reflection. See tests/drivers/README.md."""

import datetime
import decimal
import os
import socket
import sys
import uuid

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from checks import check, memcached, ours, run, same

URL = sa.URL.create(
    "postgresql+psycopg",
    username=os.environ["PGUSER"],
    host=os.environ["PGHOST"],
    port=int(os.environ["PGPORT"]),
    database=os.environ["PGDATABASE"],
)
SOCKET_URL = URL.set(host=None, port=None, query={"host": os.environ["SOCKET_DIR"], "port": os.environ["PGPORT"]})
engine = sa.create_engine(URL)
metadata = sa.MetaData()

pages = sa.Table(
    "alc_pages",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("path", sa.String(200), nullable=False),
    sa.Column("title", sa.Text),
    sa.Column("hits", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("score", sa.Float),
    sa.UniqueConstraint("path", name="alc_pages_path_key"),
)
sa.Index("alc_pages_hits", pages.c.hits, pages.c.title)

pairs = sa.Table(
    "alc_pairs",
    metadata,
    sa.Column("page_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("user_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("note", sa.String),
)

values = sa.Table(
    "alc_values",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("flag", sa.Boolean),
    sa.Column("small", sa.SmallInteger),
    sa.Column("big", sa.BigInteger),
    sa.Column("real8", sa.Double),
    sa.Column("price", sa.Numeric(12, 2)),
    sa.Column("name", sa.String(40)),
    sa.Column("raw", sa.LargeBinary),
    sa.Column("at", sa.DateTime(timezone=True)),
    sa.Column("local", sa.DateTime),
    sa.Column("day", sa.Date),
    sa.Column("doc", sa.JSON),
    sa.Column("docb", postgresql.JSONB),
    sa.Column("uid", sa.Uuid),
)


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "alc_users"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(50), unique=True)
    active: Mapped[bool] = mapped_column(default=True)
    seen: Mapped[datetime.datetime | None] = mapped_column(sa.DateTime(timezone=True))


@check
def connects():
    """connects over TCP and over a Unix socket, and knows the server's version"""
    for url in (URL, SOCKET_URL):
        other = sa.create_engine(url, pool_pre_ping=True)
        with other.connect() as connection:
            same(connection.scalar(sa.text("SELECT 1")), 1)
            assert connection.dialect.server_version_info >= (15,), connection.dialect.server_version_info
            same(connection.dialect.default_schema_name, "public")
        other.dispose()


@check
def create_and_drop():
    """create_all and drop_all make and drop what is there or is not"""
    for _ in range(2):
        metadata.drop_all(engine)
        Base.metadata.drop_all(engine)
        metadata.create_all(engine)
        metadata.create_all(engine)
        Base.metadata.create_all(engine)
    inspector = sa.inspect(engine)
    assert inspector.has_table("alc_pages") and not inspector.has_table("alc_none")


@check
def core_writes():
    """Core inserts, updates and deletes, with autoincrement ids, RETURNING and executemany"""
    with engine.begin() as connection:
        result = connection.execute(sa.insert(pages).values(path="/a", title="A"))
        first = result.inserted_primary_key[0]
        assert first >= 1, first
        rows = [{"path": f"/p{number}", "score": number / 4} for number in range(40)]
        connection.execute(sa.insert(pages), rows)
        made = connection.execute(
            sa.insert(pages).returning(pages.c.id, pages.c.path, sort_by_parameter_order=True),
            [{"path": f"/q{number}"} for number in range(40)],
        ).all()
        same([row.path for row in made], [f"/q{number}" for number in range(40)])
        same(len({row.id for row in made} | {first}), 41)
        changed = connection.execute(sa.update(pages).where(pages.c.path == "/a").values(hits=pages.c.hits + 5))
        same(changed.rowcount, 1)
        same(connection.scalar(sa.select(pages.c.hits).where(pages.c.id == first)), 5)
        gone = connection.execute(sa.delete(pages).where(pages.c.path.like("/q%")))
        same(gone.rowcount, 40)
        same(connection.scalar(sa.select(sa.func.count()).select_from(pages)), 41)


@check
def core_reads():
    """Core selects with IN, joins, order, limit, aggregates, CASE and CTEs"""
    with engine.begin() as connection:
        connection.execute(sa.insert(pairs), [{"page_id": n % 3, "user_id": n, "note": None} for n in range(9)])
        query = sa.select(pairs.c.user_id).where(pairs.c.page_id.in_([0, 1])).order_by(pairs.c.user_id.desc()).limit(2)
        same(connection.scalars(query).all(), [7, 6])
        same(connection.scalars(sa.select(pairs.c.user_id).where(pairs.c.page_id.in_([]))).all(), [])
        query = sa.select(pairs.c.page_id, sa.func.count()).group_by(pairs.c.page_id).having(sa.func.count() > 2)
        same(sorted(tuple(row) for row in connection.execute(query)), [(0, 3), (1, 3), (2, 3)])
        low = sa.select(pairs.c.user_id).where(pairs.c.user_id < 3).cte("low")
        query = sa.select(sa.func.sum(sa.case((low.c.user_id == 1, 10), else_=1))).select_from(low)
        same(connection.scalar(query), 12)
        other = pairs.alias()
        joined = pairs.join(other, sa.and_(pairs.c.page_id == other.c.page_id, pairs.c.user_id < other.c.user_id))
        same(connection.scalar(sa.select(sa.func.count()).select_from(joined)), 9)
        query = sa.select(sa.cast(sa.literal("42"), sa.Integer), sa.literal("a") + "b", sa.func.coalesce(None, "z"))
        same(tuple(connection.execute(query).one()), (42, "ab", "z"))
        query = sa.select(pairs.c.user_id).where(pairs.c.user_id == sa.func.any(sa.literal([2, 4], postgresql.ARRAY(sa.Integer))))
        same(sorted(connection.scalars(query)), [2, 4])


@check
def upsert():
    """INSERT ... ON CONFLICT DO UPDATE and DO NOTHING"""
    with engine.begin() as connection:
        insert = postgresql.insert(pairs).values(page_id=1, user_id=1, note="first")
        statement = insert.on_conflict_do_update(index_elements=["page_id", "user_id"], set_={"note": insert.excluded.note})
        connection.execute(statement)
        connection.execute(insert.on_conflict_do_nothing())
        same(connection.scalar(sa.select(pairs.c.note).where(pairs.c.user_id == 1)), "first")


@check
def types():
    """every type goes in and comes out"""
    moment = datetime.datetime(2026, 2, 3, 4, 5, 6, 789000, tzinfo=datetime.timezone.utc)
    row = {
        "id": 1,
        "flag": False,
        "small": -7,
        "big": 2**62,
        "real8": 0.1,
        "price": decimal.Decimal("12.50"),
        "name": "Gr\u00fc\u00dfe",
        "raw": bytes(range(256)),
        "at": moment,
        "local": moment.replace(tzinfo=None),
        "day": datetime.date(2026, 2, 28),
        "doc": {"a": [1, None, "x"]},
        "docb": {"b": 2.5},
        "uid": uuid.UUID("12345678-1234-5678-1234-567812345678"),
    }
    with engine.begin() as connection:
        connection.execute(sa.insert(values), row)
        connection.execute(sa.insert(values), {"id": 2})
        found = connection.execute(sa.select(values).order_by(values.c.id)).mappings().all()
        same(dict(found[0]), row)
        same({value for name, value in found[1].items() if name != "id"}, {None})
        query = sa.select(values.c.id).where(values.c.uid == row["uid"], values.c.at == moment, values.c.flag.is_(False))
        same(connection.scalars(query).all(), [1])
        query = sa.select(values.c.docb["b"].as_float()).where(values.c.docb["b"].as_float() > 2)
        same(connection.scalars(query).all(), [2.5])


@check
def transactions():
    """begin, rollback and begin_nested; errors are SQLAlchemy's with the SQLSTATE"""
    with engine.connect() as connection:
        connection.execute(sa.delete(pairs))
        connection.execute(sa.insert(pairs), {"page_id": 1, "user_id": 1})
        nested = connection.begin_nested()
        connection.execute(sa.insert(pairs), {"page_id": 2, "user_id": 2})
        nested.rollback()
        try:
            with connection.begin_nested():
                connection.execute(sa.insert(pairs), {"page_id": 1, "user_id": 1})
            raise AssertionError("no IntegrityError")
        except exc.IntegrityError as error:
            same(error.orig.sqlstate, "23505")
        connection.commit()
        same(connection.scalar(sa.select(sa.func.count()).select_from(pairs)), 1)
        connection.execute(sa.delete(pairs))
        connection.rollback()
        same(connection.scalar(sa.select(sa.func.count()).select_from(pairs)), 1)
        for statement, kind, state in [
            ("SELEC 1", exc.ProgrammingError, "42601"),
            ("SELECT * FROM alc_none", exc.ProgrammingError, "42P01"),
            ("SELECT 'x'::int", exc.DataError, "22P02"),
        ]:
            try:
                connection.execute(sa.text(statement))
                raise AssertionError(f"no {kind.__name__}")
            except kind as error:
                same(error.orig.sqlstate, state)
                connection.rollback()
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as connection:
        same(connection.scalar(sa.select(sa.func.count()).select_from(pairs)), 1)
        same(connection.get_isolation_level(), "SERIALIZABLE")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.delete(pairs))


@check
def server_side_cursor():
    """yield_per streams through a server-side cursor"""
    with engine.begin() as connection:
        connection.execute(sa.insert(pairs), [{"page_id": 0, "user_id": n} for n in range(500)])
    with engine.connect() as connection:
        result = connection.execution_options(yield_per=64).execute(sa.select(pairs.c.user_id))
        same(sum(1 for _ in result), 500)


@check
def orm():
    """ORM objects are made with ids, loaded, changed, counted and deleted"""
    with Session(engine) as session:
        ann, bob = User(name="ann"), User(name="bob", active=False)
        session.add_all([ann, bob])
        session.flush()
        assert ann.id and bob.id and ann.id != bob.id
        session.add_all([User(name=f"user{number}") for number in range(30)])
        session.commit()
        same(session.get(User, ann.id).name, "ann")
        bob.seen = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
        bob.active = True
        session.commit()
        session.expire_all()
        same((bob.active, bob.seen.year), (True, 2026))
        same(session.scalar(sa.select(sa.func.count(User.id)).where(User.active)), 32)
        same(session.scalars(sa.select(User).where(User.name.ilike("BO%"))).one().id, bob.id)
        session.delete(ann)
        session.commit()
        same(session.get(User, ann.id), None)
        session.add(User(name="bob"))
        try:
            session.commit()
            raise AssertionError("no IntegrityError")
        except exc.IntegrityError:
            session.rollback()
        with session.begin_nested():
            session.add(User(name="eve"))
        session.rollback()
        same(session.scalars(sa.select(User).where(User.name == "eve")).first(), None)


@check
def reflection_tables():
    """the inspector lists tables and columns with types, nullability and defaults"""
    inspector = sa.inspect(engine)
    assert {"alc_pages", "alc_pairs", "alc_values", "alc_users"} <= set(inspector.get_table_names())
    assert "public" in inspector.get_schema_names()
    columns = {column["name"]: column for column in inspector.get_columns("alc_pages")}
    same(list(columns), ["id", "path", "title", "hits", "score"])
    same([columns[name]["nullable"] for name in columns], [False, False, True, False, True])
    for name, kind in [("id", sa.INTEGER), ("path", sa.VARCHAR), ("title", sa.TEXT), ("hits", sa.BIGINT)]:
        assert isinstance(columns[name]["type"], kind), columns[name]
    same(columns["path"]["type"].length, 200)
    assert "0" in columns["hits"]["default"], columns["hits"]
    types = {column["name"]: type(column["type"]).__name__ for column in inspector.get_columns("alc_values")}
    same(
        types,
        {
            "id": "INTEGER",
            "flag": "BOOLEAN",
            "small": "SMALLINT",
            "big": "BIGINT",
            "real8": "DOUBLE_PRECISION",
            "price": "NUMERIC",
            "name": "VARCHAR",
            "raw": "BYTEA",
            "at": "TIMESTAMP",
            "local": "TIMESTAMP",
            "day": "DATE",
            "doc": "JSON",
            "docb": "JSONB",
            "uid": "UUID",
        },
    )


@check
def reflection_constraints():
    """the inspector tells primary keys, indexes, unique constraints, and that there are no foreign keys"""
    inspector = sa.inspect(engine)
    same(inspector.get_pk_constraint("alc_pairs")["constrained_columns"], ["page_id", "user_id"])
    same(inspector.get_pk_constraint("alc_pages")["name"], "alc_pages_pkey")
    indexes = {index["name"]: index for index in inspector.get_indexes("alc_pages")}
    same(indexes["alc_pages_hits"]["column_names"], ["hits", "title"])
    same(indexes["alc_pages_hits"]["unique"], False)
    unique = inspector.get_unique_constraints("alc_pages")
    same([(each["name"], each["column_names"]) for each in unique], [("alc_pages_path_key", ["path"])])
    same(inspector.get_foreign_keys("alc_pages"), [])
    same(inspector.get_check_constraints("alc_pages"), [])
    same(inspector.get_table_comment("alc_pages"), {"text": None})
    same(inspector.get_view_names(), [])


@check
def reflected_table():
    """a table reflected with autoload_with reads and writes; metadata.reflect finds all"""
    reflected = sa.Table("alc_pages", sa.MetaData(), autoload_with=engine)
    same([column.name for column in reflected.primary_key], ["id"])
    same({index.name for index in reflected.indexes} >= {"alc_pages_hits"}, True)
    with engine.begin() as connection:
        made = connection.execute(sa.insert(reflected).values(path="/reflected")).inserted_primary_key[0]
        same(connection.scalar(sa.select(reflected.c.path).where(reflected.c.id == made)), "/reflected")
    everything = sa.MetaData()
    everything.reflect(engine)
    assert {"alc_pages", "alc_pairs", "alc_users"} <= set(everything.tables)


@check
def pool():
    """the pool replaces a connection that broke"""
    other = sa.create_engine(URL, pool_size=1, max_overflow=0, pool_pre_ping=True)
    with other.connect() as connection:
        same(connection.scalar(sa.text("SELECT 1")), 1)
        file = connection.connection.driver_connection.fileno()
    # The wire dies while the connection lies in the pool.
    with socket.socket(fileno=os.dup(file)) as wire:
        wire.shutdown(socket.SHUT_RDWR)
    with other.connect() as connection:
        same(connection.scalar(sa.text("SELECT 2")), 2)
    other.dispose()


@check
def functions():
    """func.* of users' functions, as values, in conditions and as tables, and CALL"""
    with engine.begin() as connection:
        for statement in (
            "DROP FUNCTION IF EXISTS alc_add",
            "DROP FUNCTION IF EXISTS alc_near",
            "DROP PROCEDURE IF EXISTS alc_put",
            "DROP TABLE IF EXISTS alc_numbers CASCADE",
            "CREATE TABLE alc_numbers (id INTEGER PRIMARY KEY)",
            "CREATE FUNCTION alc_add(a INTEGER, b INTEGER DEFAULT 1) RETURNS INTEGER LANGUAGE sql AS $$ SELECT a + b $$",
            """CREATE FUNCTION alc_near(n INTEGER) RETURNS TABLE (id INTEGER, far INTEGER) LANGUAGE sql AS
               $$ SELECT id, abs(id - n) FROM alc_numbers WHERE abs(id - n) < 2 ORDER BY id $$""",
            """CREATE PROCEDURE alc_put(INOUT one INTEGER, two INTEGER) LANGUAGE sql AS
               $$ INSERT INTO alc_numbers VALUES (one); INSERT INTO alc_numbers VALUES (two); SELECT one + two $$""",
        ):
            connection.execute(sa.text(statement))
        same(connection.execute(sa.text("CALL alc_put(:one, :two)"), {"one": 1, "two": 2}).scalar(), 3)
        connection.execute(sa.text("CALL alc_put(3, 7)"))
        same(connection.scalar(sa.select(sa.func.alc_add(40, 2))), 42)
        numbers = sa.table("alc_numbers", sa.column("id", sa.Integer))
        query = sa.select(numbers.c.id, sa.func.alc_add(numbers.c.id)).where(sa.func.alc_add(numbers.c.id, 1) < 4)
        same(connection.execute(query.order_by(numbers.c.id)).all(), [(1, 2), (2, 3)])
        near = sa.func.alc_near(2).table_valued("id", "far", name="near")
        same(connection.execute(sa.select(near.c.id, near.c.far)).all(), [(1, 1), (2, 0), (3, 1)])
        query = sa.select(numbers.c.id, sa.func.count()).select_from(numbers)
        beside = sa.func.alc_near(numbers.c.id).table_valued("id").lateral("beside")
        query = query.join(beside, sa.true()).group_by(numbers.c.id).order_by(numbers.c.id)
        same(connection.execute(query).all(), [(1, 2), (2, 3), (3, 2), (7, 1)])


@ours
def memcached_sees():
    """a cache table with a key prefix holds ORM rows that memcached reads"""
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS alc_frag"))
        connection.execute(
            sa.text("CREATE TABLE alc_frag (key TEXT PRIMARY KEY, page INT, body TEXT) WITH (prefix = 'alc:', value = 'body')")
        )
    table = sa.Table("alc_frag", sa.MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(table), [{"key": "a", "page": 1, "body": "x"}, {"key": "b", "page": 2, "body": "y"}])
    same(memcached(b"get alc:a alc:b\r\n"), b"VALUE alc:a 0 1\r\nx\r\nVALUE alc:b 0 1\r\ny\r\nEND\r\n")


run()
