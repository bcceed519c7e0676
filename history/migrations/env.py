"""What Alembic runs for every command: the caller's connection, in the caller's transaction."""

from alembic import context

from history.models import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite alters a table by copying it
)
with context.begin_transaction():
    context.run_migrations()
