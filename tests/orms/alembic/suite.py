"""SQLAlchemy 2 with Alembic, unchanged: revisions, autogenerate, reflection, the ORM. See tests/orms/README.md."""

import datetime
import decimal
import io
import os
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../drivers")]
sys.dont_write_bytecode = True

import sqlalchemy as sa
from alembic import autogenerate, command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import exc
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.ext.automap import automap_base
from sqlalchemy.orm import Session, aliased, joinedload, selectinload

from checks import check, run, same
from models import Base, Customer, Order, State, customer_tag

URL = sa.URL.create(
    "postgresql+psycopg",
    username=os.environ["PGUSER"],
    host=os.environ["PGHOST"],
    port=int(os.environ["PGPORT"]),
    database=os.environ["PGDATABASE"],
)
engine = sa.create_engine(URL)
UTC = datetime.timezone.utc
FIRST = uuid.UUID(int=1)


def config():
    """A configuration without a file; what Alembic prints goes to its buffer."""
    found = Config(stdout=io.StringIO())
    found.output_buffer = io.StringIO()
    found.set_main_option("script_location", HERE)
    found.set_main_option("path_separator", "os")
    found.attributes.update(engine=engine, metadata=Base.metadata)
    return found


def upgrade(revision):
    command.upgrade(config(), revision)


def differences(metadata=Base.metadata):
    """What autogenerate would change, Alembic's own table apart."""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        return [each for each in autogenerate.compare_metadata(context, metadata)]


@check
def upgrades_first():
    """upgrade to the first revision"""
    upgrade("a1")


@check
def rows_before():
    """rows of the first revision"""
    with engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO client (name, phone) VALUES ('old', '1')"))
        connection.execute(
            sa.text("INSERT INTO orders (id, customer_id, items, labels) VALUES (:id, 1, '[]', '{a}')"), {"id": FIRST}
        )


@check
def upgrades_second():
    """upgrade to the second revision, which renames and alters, with rows"""
    upgrade("+1")


@check
def upgrades_head():
    """upgrade to head, which adds tables, rows, comments and a partial index"""
    upgrade("head")


@check
def current():
    """current, history and check know the revision"""
    own = config()
    command.current(own)
    with engine.connect() as connection:
        same(MigrationContext.configure(connection).get_current_revision(), "a3")


@check
def downgrades():
    """downgrade two revisions, and upgrade again"""
    command.downgrade(config(), "a1")
    names = sa.inspect(engine).get_table_names()
    assert "client" in names and "customer" not in names, names
    upgrade("head")


@check
def no_difference():
    """autogenerate finds no difference"""
    same(differences(), [])


@check
def alembic_check():
    """alembic check"""
    command.check(config())


@check
def differences_found():
    """autogenerate finds a new column, table and index, and a changed type"""
    other = sa.MetaData(naming_convention=Base.metadata.naming_convention)
    for table in Base.metadata.tables.values():
        table.to_metadata(other)
    other.tables["customer"].append_column(sa.Column("age", sa.Integer))
    other.tables["customer"].c.name.type = sa.String(150)
    sa.Table("added", other, sa.Column("id", sa.Integer, primary_key=True))
    sa.Index("ix_orders_state", other.tables["orders"].c.state)
    kinds = [each[0] if isinstance(each, tuple) else each[0][0] for each in differences(other)]
    same(sorted(kinds), ["add_column", "add_index", "add_table", "modify_type"])


@check
def stamps():
    """stamp"""
    command.stamp(config(), "a2")
    command.stamp(config(), "head")


@check
def a_failed_revision():
    """a failed revision leaves nothing"""
    try:
        with engine.begin() as connection:
            op = Operations(MigrationContext.configure(connection))
            op.create_table("half", sa.Column("id", sa.Integer, primary_key=True))
            op.execute("INSERT INTO half VALUES (1), (1)")
        raise AssertionError("it did not fail")
    except exc.IntegrityError:
        pass
    assert "half" not in sa.inspect(engine).get_table_names()


@check
def operations():
    """operations one by one: add with default, alter default, type with USING, drop NOT NULL"""
    with engine.begin() as connection:
        op = Operations(MigrationContext.configure(connection))
        op.create_table("ops", sa.Column("id", sa.BigInteger, primary_key=True), sa.Column("n", sa.String(10)))
        op.execute("INSERT INTO ops (n) VALUES ('7')")
        op.alter_column("ops", "n", type_=sa.Integer, postgresql_using="n::integer")
        op.alter_column("ops", "n", server_default="5", nullable=False)
        op.add_column("ops", sa.Column("at", sa.DateTime, server_default=sa.text("CURRENT_TIMESTAMP")))
        op.alter_column("ops", "n", server_default=None, nullable=True)
        same(connection.execute(sa.text("SELECT id, n FROM ops")).all(), [(1, 7)])
        op.create_index("ops_n", "ops", ["n"], unique=True, if_not_exists=True)
        op.drop_index("ops_n", if_exists=True)
        op.drop_table("ops")


@check
def concurrent_index():
    """CREATE INDEX CONCURRENTLY in an autocommit block"""
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        with context.autocommit_block():
            op = Operations(context)
            op.create_index("ix_customer_country", "customer", ["country"], postgresql_concurrently=True)
            op.drop_index("ix_customer_country", table_name="customer", postgresql_concurrently=True)


@check
def reflects_columns():
    """reflection of columns and types"""
    found = sa.Table("orders", sa.MetaData(), autoload_with=engine)
    shown = {column.name: (str(column.type), column.nullable) for column in found.columns}
    same(
        {name: shown[name] for name in ["id", "customer_id", "total", "due", "lasts", "items", "labels", "data"]},
        {
            "id": ("UUID", False),
            "customer_id": ("INTEGER", False),
            "total": ("NUMERIC(10, 2)", False),
            "due": ("DATE", True),
            "lasts": ("INTERVAL", True),
            "items": ("JSONB", False),
            "labels": ("ARRAY", False),
            "data": ("BYTEA", True),
        },
    )


@check
def reflects_enums():
    """reflection of enum types"""
    found = sa.inspect(engine).get_enums()
    same([(each["name"], each["labels"]) for each in found], [("state", ["open", "paid"])])
    column = sa.Table("orders", sa.MetaData(), autoload_with=engine).c.state
    same((column.type.name, column.type.enums), ("state", ["open", "paid"]))


@check
def reflects_keys():
    """reflection of primary and unique keys, checks and indexes"""
    inspector = sa.inspect(engine)
    same(inspector.get_pk_constraint("orders")["name"], "pk_orders")
    same(inspector.get_pk_constraint("customer_tag")["constrained_columns"], ["customer_id", "tag"])
    same([each["name"] for each in inspector.get_unique_constraints("customer")], ["uq_customer_name"])
    same([each["name"] for each in inspector.get_check_constraints("orders")], ["ck_orders_total"])
    indexes = {each["name"]: each for each in inspector.get_indexes("orders")}
    same(indexes["ix_orders_due"]["column_sorting"], {"due": ("desc",)})
    assert "due IS NOT NULL" in indexes["ix_orders_due"]["dialect_options"]["postgresql_where"]


@check
def reflects_foreign_keys():
    """reflection of foreign keys"""
    found = sa.inspect(engine).get_foreign_keys("customer_tag")
    same(
        [(each["name"], each["referred_table"], each["options"].get("ondelete")) for each in found],
        [("fk_customer_tag_customer_id", "customer", "CASCADE")],
    )


@check
def reflects_comments():
    """reflection of comments"""
    inspector = sa.inspect(engine)
    same(inspector.get_table_comment("orders"), {"text": "what customers ordered"})
    comments = {each["name"]: each["comment"] for each in inspector.get_columns("orders")}
    same(comments["note"], "for the customer")


@check
def reflects_views():
    """reflection of views and schemas"""
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE VIEW open_orders AS SELECT id, total FROM orders WHERE state = 'open'"))
    inspector = sa.inspect(engine)
    same(inspector.get_view_names(), ["open_orders"])
    assert "orders" in inspector.get_view_definition("open_orders")
    same([each["name"] for each in inspector.get_columns("open_orders")], ["id", "total"])
    assert "public" in inspector.get_schema_names()
    with engine.begin() as connection:
        connection.execute(sa.text("DROP VIEW open_orders"))


@check
def automaps():
    """automap makes classes of the tables and of what refers to them"""
    found = automap_base()
    found.prepare(autoload_with=engine)
    assert {"customer", "orders", "customer_tag"} <= set(found.classes.keys()), found.classes.keys()
    with Session(engine) as session:
        same(session.scalars(sa.select(found.classes.orders)).one().customer.name, "old")


@check
def drops_all():
    """drop_all"""
    Base.metadata.drop_all(engine)
    names = sa.inspect(engine).get_table_names()
    assert not {"customer", "orders", "customer_tag"} & set(names), names
    same(sa.inspect(engine).get_enums(), [])


@check
def creates_all():
    """create_all, twice"""
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)


@check
def create_all_is_complete():
    """autogenerate finds no difference to create_all"""
    same(differences(), [])


@check
def orm_inserts():
    """the ORM inserts a graph of objects"""
    with Session(engine) as session:
        customer = Customer(name="ann", email="ann@example.com")
        customer.orders = [
            Order(
                id=uuid.UUID(int=n + 1),
                total=decimal.Decimal("10.10") * n,
                state=State.paid if n % 2 else State.open,
                due=datetime.date(2024, 2, n + 1) if n else None,
                lasts=datetime.timedelta(hours=n, microseconds=1),
                items=[{"sku": n, "gift": True}],
                labels=["a", f"l{n}"],
                data=bytes([0, n, 255]),
            )
            for n in range(4)
        ]
        session.add_all([customer, Customer(name="bob", country="fr")])
        session.commit()
        same((customer.country, customer.since.tzinfo is not None), ("de", True))


@check
def orm_reads():
    """the ORM reads all types"""
    with Session(engine) as session:
        found = session.get(Order, uuid.UUID(int=4))
        same((found.total, found.state, found.due), (decimal.Decimal("30.30"), State.paid, datetime.date(2024, 2, 4)))
        same(found.lasts, datetime.timedelta(hours=3, microseconds=1))
        same((found.items, found.labels, found.data), ([{"sku": 3, "gift": True}], ["a", "l3"], b"\x00\x03\xff"))
        same(found.customer.name, "ann")


@check
def orm_eager():
    """joinedload and selectinload"""
    with Session(engine) as session:
        # Without an order either server may give the rows in any.
        ordered = sa.select(Customer).options(joinedload(Customer.orders)).order_by(Customer.id)
        found = session.scalars(ordered).unique().all()
        same([(each.name, len(each.orders)) for each in found], [("ann", 4), ("bob", 0)])
        found = session.scalars(sa.select(Customer).options(selectinload(Customer.orders)).order_by(Customer.id)).all()
        same([len(each.orders) for each in found], [4, 0])


@check
def orm_changes():
    """the ORM updates and deletes, with orphans"""
    with Session(engine) as session:
        customer = session.scalars(sa.select(Customer).filter_by(name="ann")).one()
        customer.email = "other@example.com"
        customer.orders.remove(next(order for order in customer.orders if order.total == 0))
        session.commit()
        same(session.scalar(sa.select(sa.func.count()).select_from(Order)), 3)


@check
def orm_bulk():
    """bulk inserts with RETURNING, update and delete by criteria"""
    with Session(engine) as session:
        made = session.scalars(
            sa.insert(Customer).returning(Customer, sort_by_parameter_order=True),
            [{"name": f"bulk {n}"} for n in range(30)],
        ).all()
        same([each.name for each in made][:2], ["bulk 0", "bulk 1"])
        changed = session.execute(sa.update(Customer).where(Customer.name.like("bulk 1%")).values(country="it"))
        same(changed.rowcount, 11)
        session.execute(
            sa.update(Customer), [{"id": each.id, "email": f"{n}@example.com"} for n, each in enumerate(made)]
        )
        gone = session.execute(sa.delete(Customer).where(Customer.name.startswith("bulk")).returning(Customer.id))
        same(len(gone.all()), 30)
        session.commit()


@check
def upserts():
    """INSERT ON CONFLICT with RETURNING"""
    statement = pg.insert(Customer).values(name="bob", email="new@example.com")
    statement = statement.on_conflict_do_update(
        constraint="uq_customer_name", set_={"email": statement.excluded.email}
    ).returning(Customer.email)
    with engine.begin() as connection:
        same(connection.scalar(statement), "new@example.com")
        statement = pg.insert(Customer).values(name="bob").on_conflict_do_nothing(index_elements=["name"])
        same(connection.execute(statement.returning(Customer.id)).all(), [])


@check
def aggregates():
    """aggregates with FILTER, GROUP BY, HAVING"""
    with engine.connect() as connection:
        found = connection.execute(
            sa.select(
                Customer.name,
                sa.func.sum(Order.total),
                sa.func.avg(Order.total),
                sa.func.count().filter(Order.state == State.paid),
            )
            .join_from(Customer, Order)
            .group_by(Customer.name)
            .having(sa.func.count() > 1)
        ).all()
        same(found, [("ann", decimal.Decimal("60.60"), decimal.Decimal("20.2000000000000000"), 2)])


@check
def windows():
    """windows, CTEs, LATERAL"""
    top = (
        sa.select(Order.total)
        .where(Order.customer_id == Customer.id)
        .order_by(Order.total.desc())
        .limit(1)
        .lateral("top")
    )
    ranked = sa.select(Order.total, sa.func.row_number().over(order_by=Order.total.desc()).label("n")).cte("ranked")
    with engine.connect() as connection:
        found = connection.execute(sa.select(Customer.name, top.c.total).join(top, sa.true())).all()
        same(found, [("ann", decimal.Decimal("30.30"))])
        same(connection.scalar(sa.select(ranked.c.total).where(ranked.c.n == 2)), decimal.Decimal("20.20"))


@check
def recursive():
    """a recursive CTE"""
    numbers = sa.select(sa.literal(1).label("n")).cte("numbers", recursive=True)
    numbers = numbers.union_all(sa.select(numbers.c.n + 1).where(numbers.c.n < 5))
    with engine.connect() as connection:
        same(connection.scalar(sa.select(sa.func.sum(numbers.c.n))), 15)


@check
def set_operations():
    """UNION, EXCEPT, with order and limit of parts"""
    first = sa.select(Customer.name).order_by(Customer.id).limit(1)
    with engine.connect() as connection:
        same(connection.scalars(first.union_all(sa.select(sa.literal("x")))).all(), ["ann", "x"])
        same(connection.scalars(sa.select(Customer.name).except_(first)).all(), ["bob"])


@check
def distinct_on():
    """DISTINCT ON"""
    with engine.connect() as connection:
        found = connection.execute(
            sa.select(Order.state, Order.total).distinct(Order.state).order_by(Order.state, Order.total.desc())
        ).all()
        same(found, [(State.open, decimal.Decimal("20.20")), (State.paid, decimal.Decimal("30.30"))])


@check
def subqueries():
    """EXISTS, IN, correlated and scalar subqueries, aliases"""
    other = aliased(Order)
    dearest = sa.select(sa.func.max(other.total)).where(other.customer_id == Order.customer_id).scalar_subquery()
    with Session(engine) as session:
        same(session.scalars(sa.select(Order.total).where(Order.total == dearest)).all(), [decimal.Decimal("30.30")])
        same(session.scalars(sa.select(Customer.name).where(Customer.orders.any(state=State.paid))).all(), ["ann"])
        same(session.scalars(sa.select(Customer.name).where(~Customer.orders.any())).all(), ["bob"])
        same(session.scalar(sa.select(sa.tuple_(sa.literal(1), sa.literal("a")).in_([(1, "a"), (2, "b")]))), True)


@check
def json():
    """JSONB operators"""
    with engine.connect() as connection:
        same(connection.scalar(sa.select(Order.items[(0, "sku")].as_integer()).where(Order.total > 30)), 3)
        same(connection.scalar(sa.select(sa.func.count()).where(Order.items.contains([{"sku": 2}]))), 1)
        same(connection.scalar(sa.select(Order.items[0]["gift"].as_boolean()).where(Order.total > 30)), True)
        same(connection.scalar(sa.select(sa.func.jsonb_array_length(Order.items)).where(Order.total > 30)), 1)
        built = sa.func.jsonb_build_object("a", 1, "b", sa.true())
        same(connection.scalar(sa.select(built)), {"a": 1, "b": True})


@check
def arrays():
    """ARRAY operators, ANY, array_agg, unnest"""
    with engine.connect() as connection:
        same(connection.scalar(sa.select(sa.func.count()).where(Order.labels.contains(["l2"]))), 1)
        same(connection.scalar(sa.select(sa.func.count()).where(Order.labels.any("a"))), 3)
        same(connection.scalar(sa.select(Order.labels[2]).where(Order.total > 30)), "l3")
        label = sa.func.unnest(Order.labels).label("label")
        labels = sa.select(label).subquery()
        found = connection.execute(
            sa.select(labels.c.label, sa.func.count()).group_by(labels.c.label).order_by(sa.func.count().desc())
        ).first()
        same(found, ("a", 3))
        found = connection.scalar(sa.select(pg.array_agg(pg.aggregate_order_by(Order.total, Order.total.desc()))))
        same(found[0], decimal.Decimal("30.30"))


@check
def moments():
    """extract, date_trunc, intervals, AT TIME ZONE, now()"""
    with engine.begin() as connection:
        same(connection.scalar(sa.select(sa.extract("month", Order.due)).limit(1)), 2)
        at = sa.literal(datetime.datetime(2024, 6, 30, 22, 30, tzinfo=UTC), sa.DateTime(timezone=True))
        found = connection.scalar(sa.select(sa.func.timezone("Europe/Berlin", at)))
        same(found, datetime.datetime(2024, 7, 1, 0, 30))
        found = connection.scalar(sa.select(sa.func.date_trunc("month", at.op("AT TIME ZONE")("UTC"))))
        same(found, datetime.datetime(2024, 6, 1))
        same(connection.scalar(sa.select(Order.due + datetime.timedelta(days=1)).where(Order.total > 30)),
             datetime.datetime(2024, 2, 5))
        connection.execute(sa.update(Customer).values(since=sa.func.now()))
        same(connection.scalar(sa.select(sa.func.count()).where(Customer.since <= sa.func.now())), 2)


@check
def literals():
    """literals and casts in the select list"""
    with engine.connect() as connection:
        found = connection.execute(
            sa.select(
                sa.literal(1), sa.literal("a"), sa.cast("7", sa.Integer), sa.null(), sa.true(),
                sa.type_coerce(sa.literal(decimal.Decimal("1.50")), sa.Numeric(5, 2)),
            )
        ).one()
        same(found, (1, "a", 7, None, True, decimal.Decimal("1.50")))


@check
def transactions():
    """savepoints and isolation levels"""
    with Session(engine) as session:
        session.add(Customer(name="kept"))
        session.flush()
        try:
            with session.begin_nested():
                session.add(Customer(name="kept"))
                session.flush()
            raise AssertionError("it was taken")
        except exc.IntegrityError as error:
            same(error.orig.sqlstate, "23505")
        session.commit()
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as connection:
        same(connection.get_isolation_level(), "SERIALIZABLE")
        same(connection.scalar(sa.text("SHOW transaction_isolation")), "serializable")


@check
def streams():
    """yield_per over a cursor of the server"""
    with Session(engine) as session:
        session.execute(sa.insert(Customer), [{"name": f"many {n}"} for n in range(250)])
        found = session.scalars(
            sa.select(Customer.name).where(Customer.name.startswith("many")).execution_options(yield_per=100)
        )
        same(sum(1 for _ in found), 250)
        session.rollback()


@check
def for_update():
    """FOR UPDATE, with NOWAIT, SKIP LOCKED, OF"""
    with Session(engine) as session:
        query = sa.select(Customer).where(Customer.name == "ann")
        same(session.scalars(query.with_for_update()).one().name, "ann")
        same(session.scalars(query.with_for_update(nowait=True)).one().name, "ann")
        same(session.scalars(query.with_for_update(skip_locked=True, of=Customer)).one().name, "ann")
        same(session.scalars(query.with_for_update(read=True)).one().name, "ann")


@check
def computed():
    """identity and computed columns"""
    own = sa.MetaData()
    table = sa.Table(
        "computed",
        own,
        sa.Column("id", sa.BigInteger, sa.Identity(always=True, start=100), primary_key=True),
        sa.Column("n", sa.Integer),
        sa.Column("twice", sa.Integer, sa.Computed("n * 2", persisted=True)),
    )
    own.create_all(engine)
    with engine.begin() as connection:
        same(connection.execute(table.insert().values(n=4).returning(table.c.id, table.c.twice)).one(), (100, 8))
    reflected = sa.Table("computed", sa.MetaData(), autoload_with=engine)
    assert reflected.c.twice.computed is not None and reflected.c.id.identity.always
    own.drop_all(engine)


@check
def sequences():
    """sequences"""
    sequence = sa.Sequence("numbers", start=10, increment=5)
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSequence(sequence))
        same([connection.scalar(sequence) for _ in range(2)], [10, 15])
        assert "numbers" in sa.inspect(connection).get_sequence_names()
        connection.execute(sa.schema.DropSequence(sequence))


@check
def temporary():
    """a temporary table"""
    with engine.begin() as connection:
        table = sa.Table("tmp", sa.MetaData(), sa.Column("n", sa.Integer), prefixes=["TEMPORARY"])
        table.create(connection)
        connection.execute(table.insert(), [{"n": 1}, {"n": 2}])
        same(connection.scalar(sa.select(sa.func.sum(table.c.n))), 3)
        table.drop(connection)


run()
