"""Names, types, defaults, constraints."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "a2", "a1"


def upgrade():
    op.rename_table("client", "customer")
    op.execute("ALTER TABLE customer RENAME CONSTRAINT pk_client TO pk_customer")
    op.alter_column("customer", "name", type_=sa.String(120))
    op.alter_column("customer", "phone", new_column_name="email", type_=sa.String(200))
    op.add_column("customer", sa.Column("country", sa.String(2), server_default="de", nullable=False))
    op.create_unique_constraint("uq_customer_name", "customer", ["name"])
    op.create_index("ix_customer_email", "customer", ["email"])
    op.execute("UPDATE orders SET total = 0 WHERE total IS NULL")
    op.alter_column("orders", "total", type_=sa.Numeric(10, 2), nullable=False)
    op.create_check_constraint("total", "orders", "total >= 0")


def downgrade():
    op.drop_constraint("total", "orders", type_="check")
    op.alter_column("orders", "total", type_=sa.Numeric(8, 2), nullable=True)
    op.drop_index("ix_customer_email", table_name="customer")
    op.drop_constraint("uq_customer_name", "customer", type_="unique")
    op.drop_column("customer", "country")
    op.alter_column("customer", "email", new_column_name="phone", type_=sa.String(30))
    op.alter_column("customer", "name", type_=sa.String(80))
    op.execute("ALTER TABLE customer RENAME CONSTRAINT pk_customer TO pk_client")
    op.rename_table("customer", "client")
