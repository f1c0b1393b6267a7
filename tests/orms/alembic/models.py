"""The models that the last revision leaves."""

import datetime
import decimal
import enum
import uuid

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class State(enum.Enum):
    open = "open"
    paid = "paid"


customer_tag = sa.Table(
    "customer_tag",
    Base.metadata,
    sa.Column("customer_id", sa.ForeignKey("customer.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag", sa.String(20), primary_key=True),
)


class Customer(Base):
    __tablename__ = "customer"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(120), unique=True)
    email: Mapped[str | None] = mapped_column(sa.String(200), index=True)
    country: Mapped[str] = mapped_column(sa.String(2), server_default="de")
    since: Mapped[datetime.datetime] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    orders: Mapped[list["Order"]] = relationship(back_populates="customer", cascade="all, delete-orphan")


class Order(Base):
    __tablename__ = "orders"
    __table_args__ = (
        sa.CheckConstraint("total >= 0", name="total"),
        sa.Index("ix_orders_due", sa.desc("due"), postgresql_where=sa.text("due IS NOT NULL")),
        {"comment": "what customers ordered"},
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=uuid.uuid4)
    customer_id: Mapped[int] = mapped_column(sa.ForeignKey("customer.id"))
    customer: Mapped[Customer] = relationship(back_populates="orders")
    total: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(10, 2))
    state: Mapped[State] = mapped_column(sa.Enum(State, name="state"), server_default="open")
    due: Mapped[datetime.date | None]
    lasts: Mapped[datetime.timedelta | None]
    items: Mapped[list[dict]] = mapped_column(pg.JSONB, default=list)
    labels: Mapped[list[str]] = mapped_column(pg.ARRAY(sa.String(20)), default=list)
    data: Mapped[bytes | None]
    note: Mapped[str | None] = mapped_column(sa.Text, comment="for the customer")
