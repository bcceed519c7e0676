"""Times as the API writes them: RFC 3339, UTC, whole seconds."""

from datetime import UTC, datetime
from typing import Any


def parse(value: Any) -> datetime | None:
    """The time, or None for anything that is none."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def written(moment: datetime) -> str:
    """``moment`` as metav1.Time: whole seconds, cut and not rounded."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
