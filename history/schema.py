"""Brings a database to this version's tables: Alembic without an ini file, safe when several processes start."""

from collections.abc import Iterator
from contextlib import contextmanager

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, text

from history.engine import STATEMENT_SECONDS

LOCK = 0x5167_A1B0  # "signalbox", as PostgreSQL's advisory locks want it: a number nobody else uses
LOCK_NAME = "signalbox-history"


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Run the migrations that are missing, if any. Raises TimeoutError when another process's run does not end."""
    with _alone(engine) as connection:
        command.upgrade(_config(connection), revision)


def downgrade(engine: Engine, revision: str = "base") -> None:
    """Undo migrations down to ``revision``; ``base`` drops every table of ours with its rows."""
    with _alone(engine) as connection:
        command.downgrade(_config(connection), revision)


def _config(connection: Connection) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "history:migrations")
    return config


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """A transaction that no other migration runs beside; SQLite's write lock, taken on begin, is enough of one."""
    with engine.begin() as connection:
        match engine.dialect.name:
            case "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
                connection.execute(text("SET LOCAL statement_timeout = 0"))
                yield connection
            case "mysql":
                with _named_lock(connection):
                    yield connection
            case _:
                yield connection


@contextmanager
def _named_lock(connection: Connection) -> Iterator[None]:
    """MySQL ends a transaction at every DDL statement; a named lock lasts until it is released."""
    seconds = STATEMENT_SECONDS - 1
    if connection.scalar(text("SELECT GET_LOCK(:name, :seconds)"), {"name": LOCK_NAME, "seconds": seconds}) != 1:
        raise TimeoutError("another process is migrating the history database")
    try:
        yield
    finally:
        connection.execute(text("SELECT RELEASE_LOCK(:name)"), {"name": LOCK_NAME})
