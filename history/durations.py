"""Spans of time as people write them."""

import re
from datetime import datetime, timedelta

SPELLING = re.compile(r"(?P<number>[0-9]{1,6})(?P<unit>[smhdw])", re.ASCII)
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
ALLOWED = "must be a whole number and s, m, h, d or w, as in 30d"


def parse(text: str) -> timedelta:
    """``90s``, ``30m``, ``12h``, ``180d``, ``4w``. Raises ValueError, naming what is allowed."""
    match = SPELLING.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'{ALLOWED} (got "{text}")')
    return timedelta(**{UNITS[match["unit"]]: int(match["number"])})


def moment(text: str, now: datetime) -> datetime:
    """A span before ``now``, or an ISO 8601 date or time (UTC if it says no zone), as naive UTC. Raises ValueError."""
    try:
        return now - parse(text)
    except (ValueError, OverflowError):
        pass
    try:
        time = datetime.fromisoformat(text.strip())
        return time if time.tzinfo is None else (time - (time.utcoffset() or timedelta())).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise ValueError(
            f'must be a time as in 2026-11-30T12:00:00Z, a date or a span as in 30d (got "{text}")'
        ) from None
