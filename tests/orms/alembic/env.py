"""Alembic's environment: the suite hands over its engine and its metadata."""

from alembic import context

with context.config.attributes["engine"].connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=context.config.attributes["metadata"],
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()
