"""A further table, comments, an index over a part of the rows, data."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "a3", "a2"


def upgrade():
    op.create_table(
        "customer_tag",
        sa.Column("customer_id", sa.Integer, nullable=False),
        sa.Column("tag", sa.String(20), nullable=False),
        sa.PrimaryKeyConstraint("customer_id", "tag", name="pk_customer_tag"),
        sa.ForeignKeyConstraint(
            ["customer_id"], ["customer.id"], name="fk_customer_tag_customer_id", ondelete="CASCADE"
        ),
    )
    op.bulk_insert(
        sa.table("customer_tag", sa.column("customer_id", sa.Integer), sa.column("tag", sa.String)),
        [{"customer_id": 1, "tag": "old"}, {"customer_id": 1, "tag": "good"}],
    )
    op.add_column("orders", sa.Column("note", sa.Text, comment="for the customer"))
    op.create_table_comment("orders", "what customers ordered")
    op.create_index(
        "ix_orders_due", "orders", [sa.text("due DESC")], postgresql_where=sa.text("due IS NOT NULL")
    )


def downgrade():
    op.drop_index("ix_orders_due", table_name="orders")
    op.drop_table_comment("orders")
    op.drop_column("orders", "note")
    op.drop_table("customer_tag")
