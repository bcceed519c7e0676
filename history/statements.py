"""Statements compiled once, with rows handed to the driver as they are.

SQLAlchemy spends four times as long on the parameters of a batch as SQLite on the batch (bench/history.py), so it
makes the statements here, and the values are turned into what the driver takes by a few functions in C.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any

from sqlalchemy import Connection, DateTime, Dialect
from sqlalchemy.sql.dml import Insert, Update

from history import upserts
from history.upserts import Target

Values = dict[str, Any]


class Batch:
    """One statement for many rows. ``columns`` are attributes of a record, the others are the same for all rows."""

    def __init__(self, statement: Insert | Update, dialect: Dialect, names: Iterable[str]) -> None:
        compiled = statement.compile(dialect=dialect, column_keys=list(names))
        self._sql = str(compiled)
        self._order: list[str] | None = list(compiled.positiontup or ()) if dialect.positional else None
        self._spelled = _as_text if dialect.name == "sqlite" else _as_is

    def run(self, connection: Connection, rows: list[Values]) -> None:
        """Execute for rows by parameter name."""
        if rows:
            spelled = [{name: self._spelled(value) for name, value in row.items()} for row in rows]
            self._send(connection, spelled if self._order is None else [self._placed(row) for row in spelled])

    def _placed(self, row: Values) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._order or ())

    def _send(self, connection: Connection, parameters: list[Any]) -> int:
        return int(connection.exec_driver_sql(self._sql, parameters).rowcount)


class Upsert(Batch):
    """The upsert of one table, for records that have its columns as attributes."""

    def __init__(self, target: Target, dialect: Dialect, columns: tuple[str, ...], same: tuple[str, ...]) -> None:
        super().__init__(upserts.upsert(target, dialect.name), dialect, (*columns, *same))
        self._columns, self._same = columns, same
        self._read: Callable[[Any], tuple[Any, ...]] = attrgetter(*columns)
        table = target.table.c
        self._times = [at for at, name in enumerate(columns) if isinstance(table[name].type, DateTime)]
        names = (*columns, *same)
        self._ordered: Callable[[list[Any]], tuple[Any, ...]] = itemgetter(
            *(names.index(name) for name in self._order or names)
        )

    def save(self, connection: Connection, records: list[Any], same: Values) -> bool:
        """Insert or merge the records, with the values in ``same``; whether surely all of them won."""
        tail = [self._spelled(same[name]) for name in self._same]
        if self._order is None:
            names = (*self._columns, *self._same)
            sent = [dict(zip(names, (*self._read(one), *tail), strict=True)) for one in records]
            changed = self._send(connection, sent)
        else:
            changed = self._send(connection, [self._values(one, tail) for one in records])
        return changed == len(records) and connection.dialect.name != "mysql"  # which counts a changed row twice

    def _values(self, record: Any, tail: list[Any]) -> tuple[Any, ...]:
        values = [*self._read(record), *tail]
        for at in self._times:
            if (time := values[at]) is not None:
                values[at] = time.isoformat(" ", "microseconds")
        return self._ordered(values)


def _as_text(value: Any) -> Any:
    """As SQLAlchemy stores times in SQLite: text that sorts like the time."""
    return value.isoformat(" ", "microseconds") if isinstance(value, datetime) else value


def _as_is(value: Any) -> Any:
    return value
