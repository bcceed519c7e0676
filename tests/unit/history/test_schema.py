"""The migrations, on every database (see test_store.py)."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from history import schema
from history.engine import connect
from history.models import metadata


@pytest.fixture
def engine(database):
    engine = connect(database)
    yield engine
    engine.dispose()


def ours(name, kind, parents):
    """The index of trigrams only exists where PostgreSQL has its extension."""
    return not (kind == "index" and name == "ix_job_info_name_trigrams")


def differences(engine):
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True, "include_name": ours}
        )
        return compare_metadata(context, metadata)


def test_migrations_make_exactly_the_models_tables(engine):
    schema.upgrade(engine)

    assert differences(engine) == []


def test_down_and_up_again(engine):
    schema.upgrade(engine)
    schema.downgrade(engine)
    assert inspect(engine).get_table_names() == ["alembic_version"]

    schema.upgrade(engine)
    assert differences(engine) == []


def test_processes_that_start_at_once(database):
    def start():
        engine = connect(database)
        schema.upgrade(engine)
        engine.dispose()

    with ThreadPoolExecutor(4) as threads:
        for one in [threads.submit(start) for _ in range(4)]:
            one.result()
