"""Connections to the database of the history: every wait has an end, and there are never more than a few of them.

Reports behind it: argoproj/argo-workflows#14112, #14907, #10498 (a slow or silent database must not stop the work).
"""

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

CONNECT_SECONDS = 3
STATEMENT_SECONDS = 5
POOL_SIZE = 5
DRIVERS = {
    "sqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
}
EXTRAS = {"postgresql": "postgres", "mysql": "mysql"}


def connect(address: str, *, read_only: bool = False) -> Engine:
    """An engine for a database URL; no connection is made yet.

    ``read_only`` takes no write lock and creates no SQLite file. Raises ValueError, naming the fault and never the
    password, for an address that cannot work.
    """
    url = parse(address)
    try:
        engine = create_engine(
            url,
            connect_args=_arguments(url, read_only=read_only),
            pool_size=POOL_SIZE,
            max_overflow=0,
            pool_timeout=STATEMENT_SECONDS,
            pool_pre_ping=url.get_backend_name() != "sqlite",
            pool_recycle=1800,
            hide_parameters=True,
        )
    except ImportError:
        extra = EXTRAS[url.get_backend_name()]
        raise ValueError(f"history URL: needs the driver of signalbox[{extra}], which is not installed") from None
    if engine.dialect.name == "mysql":
        engine = engine.execution_options(isolation_level="READ COMMITTED")  # fewer locks on gaps of indexes
    if engine.dialect.name == "sqlite":
        _tune_sqlite(engine, read_only=read_only)
    return engine


def parse(address: str) -> URL:
    """The URL with the driver we use; raises ValueError for another kind of database."""
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise ValueError("history URL: must look like sqlite:///FILE or postgresql://USER@HOST/DATABASE") from None
    if url.drivername not in {*DRIVERS, *DRIVERS.values()}:
        raise ValueError(f"history URL: must be sqlite, postgresql or mysql (got {url.drivername!r})")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise ValueError("history URL: must name a file, as in sqlite:///history.db")
    return url.set(drivername=DRIVERS.get(url.drivername, url.drivername))


def is_deadlock(error: DBAPIError) -> bool:
    """Whether the database ended the transaction for another's sake: it can be run again at once."""
    return getattr(error.orig, "sqlstate", None) == "40P01" or (
        error.orig is not None and error.orig.args[:1] == (1213,)
    )


def _arguments(url: URL, *, read_only: bool) -> dict[str, Any]:
    """Time limits in the driver's own words; what the URL itself says wins."""
    match url.get_backend_name():
        case "postgresql":
            limit = STATEMENT_SECONDS * 1000
            ours: dict[str, Any] = {
                "connect_timeout": CONNECT_SECONDS,
                "tcp_user_timeout": limit,
                **({"prepare_threshold": None} if read_only else {}),  # a plan for this very filter, not for any
                "application_name": "signalbox",
                "options": f"-c statement_timeout={limit} -c lock_timeout={limit} -c timezone=UTC",
            }
        case "mysql":
            ours = {
                "connect_timeout": CONNECT_SECONDS,
                "read_timeout": STATEMENT_SECONDS,
                "write_timeout": STATEMENT_SECONDS,
                "charset": "utf8mb4",
                "init_command": f"SET SESSION innodb_lock_wait_timeout={STATEMENT_SECONDS}, time_zone='+00:00'",
            }
        case _:
            ours = {"timeout": STATEMENT_SECONDS}
    return {name: value for name, value in ours.items() if name not in url.query}


def _tune_sqlite(engine: Engine, *, read_only: bool) -> None:
    """Readers beside one writer (WAL), and transactions that also hold DDL: Python's driver would not begin those."""

    def prepare(dialect: Any, record: Any, args: Any, params: Any) -> None:  # noqa: ARG001 (SQLAlchemy's signature)
        if not read_only:
            Path(args[0]).parent.mkdir(parents=True, exist_ok=True)
        elif not Path(args[0]).is_file():
            raise FileNotFoundError(f"no history database at {args[0]}")

    def opened(connection: Any, record: Any) -> None:  # noqa: ARG001 (SQLAlchemy's signature)
        connection.isolation_level = None
        pragmas = ("synchronous=NORMAL", "foreign_keys=ON", f"busy_timeout={STATEMENT_SECONDS * 1000}")
        for pragma in pragmas if read_only else ("journal_mode=WAL", *pragmas):
            connection.execute(f"PRAGMA {pragma}").close()

    def begun(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    event.listen(engine, "do_connect", prepare)
    event.listen(engine, "connect", opened)
    event.listen(engine, "begin", begun)
