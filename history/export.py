"""Jobs as files: CSV, JSON Lines, Parquet."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import IO, Any

import orjson
from sqlalchemy import DateTime, Integer

from history.models import job_info
from history.queries import Row

BATCH = 10_000
OPTIONS = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE
COLUMNS = [str(column.name) for column in job_info.columns]


def as_csv(rows: Iterable[Row], out: IO[bytes]) -> int:
    """RFC 4180 with a header; times as RFC 3339, unknown ones empty. Returns how many rows."""
    return write_csv(COLUMNS, ([row[name] for name in COLUMNS] for row in rows), out)


def write_csv(header: Iterable[str], rows: Iterable[Iterable[Any]], out: IO[bytes]) -> int:
    """Any table as CSV. Returns how many rows."""
    lines = csv.writer(_Text(out))
    lines.writerow(header)
    number = 0
    for number, row in enumerate(rows, 1):  # noqa: B007 (the count is the answer)
        lines.writerow([_cell(value) for value in row])
    return number


def as_jsonl(rows: Iterable[Row], out: IO[bytes]) -> int:
    """One JSON object a line; what is unknown is left out. Returns how many rows."""
    number = 0
    for number, row in enumerate(rows, 1):  # noqa: B007 (the count is the answer)
        out.write(orjson.dumps({key: value for key, value in row.items() if value is not None}, option=OPTIONS))
    return number


def as_parquet(rows: Iterable[Row], out: IO[bytes]) -> int:
    """Parquet, in groups of rows. Returns how many rows. Raises ValueError without the extra that brings pyarrow."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ValueError("Parquet needs signalbox[parquet], which is not installed") from None
    kinds = {DateTime: pa.timestamp("s", tz="UTC"), Integer: pa.int64()}
    schema = pa.schema(
        [
            (str(column.name), next((kinds[k] for k in kinds if isinstance(column.type, k)), pa.string()))
            for column in job_info.columns
        ]
    )
    number = 0
    with parquet.ParquetWriter(out, schema) as writer:
        for batch in _batches(rows):
            writer.write_table(pa.Table.from_pylist(batch, schema))
            number += len(batch)
    return number


FORMATS: Mapping[str, Callable[[Iterable[Row], IO[bytes]], int]] = {
    "csv": as_csv,
    "jsonl": as_jsonl,
    "parquet": as_parquet,
}


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


class _Text:
    """What csv writes to: text in, UTF-8 out."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def write(self, text: str) -> int:
        return self._out.write(text.encode())


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is quoted (CSV injection)."""
    if isinstance(value, datetime):
        return f"{value.isoformat()}Z"
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
