"""What the history answers: rows by column name, from any of the three databases."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Executable, literal, select
from sqlalchemy.exc import SQLAlchemyError

from history import queries
from history.engine import connect
from history.queries import Row, Wanted

BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list, and the cursor that the next part is had with; None at the end."""

    rows: list[Row]
    next: str | None


class Reader:
    """Reads one database of the history. Safe to use from several threads and processes at once.

    ``url`` is a SQLAlchemy URL of SQLite (a file), PostgreSQL or MySQL/MariaDB; nothing is connected before the first
    call. Raises ValueError for an unusable URL; any method raises ``sqlalchemy.exc.SQLAlchemyError`` or OSError when
    the database does not answer, within seconds, and can be called again.
    """

    def __init__(self, url: str, *, read_only: bool = True) -> None:
        self._engine = connect(url, read_only=read_only)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def page(self, wanted: Wanted = queries.ANY) -> Page:
        """Jobs as wanted, at most ``wanted.limit``. Raises BadCursor."""
        rows = self.rows(queries.jobs(replace(wanted, limit=wanted.limit + 1)))
        more = len(rows) > wanted.limit
        rows = rows[: wanted.limit]
        return Page(rows, queries.cursor(wanted.sort, rows[-1]) if more else None)

    def jobs(self, wanted: Wanted = queries.ANY) -> list[Row]:
        """Rows of job_info, newest first."""
        return self.rows(queries.jobs(wanted))

    def every(self, wanted: Wanted) -> Iterator[Row]:
        """All jobs wanted, whatever their number, in small queries."""
        left = wanted.limit
        wanted = replace(wanted, limit=min(BATCH, left))
        while left > 0:
            page = self.page(wanted)
            yield from page.rows
            left -= len(page.rows)
            if page.next is None:
                return
            wanted = replace(wanted, after=page.next, limit=min(BATCH, left))

    def job(self, reference: str) -> tuple[Row | None, int]:
        """The newest job that a UID, ``namespace/name`` or name means, and how many older ones it means as well."""
        for meaning in queries.meanings(reference):
            with self._engine.connect() as connection:
                row = connection.execute(queries.newest(meaning)).mappings().first()
                if row is not None:
                    return _named(row), int(connection.scalar(queries.count(meaning)) or 1) - 1
        return None, 0

    def by_uid(self, uid: str) -> Row | None:
        """The job of this UID."""
        return self.first(queries.newest(queries.meanings(uid)[0])) if "/" not in uid else None

    def pods(self, job_uid: str) -> list[Row]:
        """Rows of replica_info of one job by type, index and age."""
        return sorted(self.rows(queries.pods(job_uid)), key=queries.pod_order)

    def events(self, uid: str) -> list[Row]:
        """Rows of event_info about an object and, for a job, about its pods, oldest first."""
        return self.rows(queries.events(uid))

    def restarts(self, job_uid: str) -> list[Row]:
        """Rows of restart_info of one job, oldest first."""
        return self.rows(queries.restarts(job_uid))

    def conditions(self, job_uid: str) -> list[Row]:
        """Rows of condition_info of one job, oldest first."""
        return self.rows(queries.conditions(job_uid))

    def admissions(self, job: Row) -> list[Row]:
        """Rows of admission_info about a job (a row of job_info), oldest first."""
        return self.rows(queries.admissions(job))

    def snapshot(self, uid: str) -> Row | None:
        """The newest row of object_snapshot of an object."""
        return self.first(queries.snapshot(uid))

    def submissions(self, since: datetime) -> Iterator[Row]:
        """Rows of object_snapshot that somebody submitted at ``since`` or later."""
        after = ("", -1)
        while rows := self.rows(queries.submissions(since, after)):
            yield from rows
            after = (rows[-1]["uid"], rows[-1]["generation"])

    def answers(self) -> bool:
        """Whether the database does."""
        try:
            self.first(select(literal(1)))
        except (SQLAlchemyError, OSError):
            return False
        return True

    def rows(self, query: Executable) -> list[Row]:
        """All rows of a statement of ``queries`` or ``statistics``."""
        with self._engine.connect() as connection:
            return [_named(row) for row in connection.execute(query).mappings()]

    def first(self, query: Executable) -> Row | None:
        """The first row of a statement, if any."""
        with self._engine.connect() as connection:
            row = connection.execute(query).mappings().first()
            return None if row is None else _named(row)


def _named(row: Mapping[Any, Any]) -> Row:
    """By plain strings: the driver's column names are a kind of str that JSON encoders refuse."""
    return {str(name): value for name, value in row.items()}
