"""The first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql as pg

revision, down_revision = "a1", None


def upgrade():
    op.create_table(
        "client",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("phone", sa.String(30)),
        sa.Column("since", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_client"),
    )
    op.create_table(
        "orders",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("customer_id", sa.Integer, nullable=False),
        sa.Column("total", sa.Numeric(8, 2)),
        sa.Column("state", sa.Enum("open", "paid", name="state"), server_default="open", nullable=False),
        sa.Column("due", sa.Date),
        sa.Column("lasts", sa.Interval),
        sa.Column("items", pg.JSONB, nullable=False),
        sa.Column("labels", pg.ARRAY(sa.String(20)), nullable=False),
        sa.Column("data", sa.LargeBinary),
        sa.PrimaryKeyConstraint("id", name="pk_orders"),
        sa.ForeignKeyConstraint(["customer_id"], ["client.id"], name="fk_orders_customer_id"),
    )
