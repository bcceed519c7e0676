"""Tolerant readers of raw Kubernetes objects: whatever stands there, they give what a column can take, or None."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Object = Mapping[str, Any]

NAME, UID, WORD, WHO, IMAGE, POD_RESOURCES = 128, 64, 32, 255, 255, 1024
"""Widths of the seed's varchar columns, in characters."""
TEXT = 65_535
"""Width of a text column, in bytes of UTF-8: MySQL's TEXT is the narrowest of the three databases."""
INT32 = 2**31 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
VERSION = re.compile(r"[1-9][0-9]{0,31}", re.ASCII)


def at(tree: Any, *path: str) -> Any:
    """What stands at ``path`` below ``tree``; None where a step is missing or not a mapping."""
    for step in path:
        # nearly every one is a dict, and asking an abstract class costs ten times as much
        if type(tree) is not dict and not isinstance(tree, Mapping):
            return None
        tree = tree.get(step)
    return tree


def each(tree: Any, *path: str) -> list[Object]:
    """The mappings in the list at ``path``; empty when there is no such list."""
    found = at(tree, *path)
    if not isinstance(found, list):
        return []
    return [item for item in found if type(item) is dict or isinstance(item, Mapping)]


def text(value: Any, width: int) -> str | None:
    """At most ``width`` characters of a string, without NUL and lone surrogates (no database stores those)."""
    if not isinstance(value, str):
        return None
    return value[: 2 * width].replace("\0", "").encode(errors="replace").decode()[:width] or None


def long_text(value: Any) -> str | None:
    """As much of a string as a text column holds, cut between two characters."""
    cleaned = text(value, TEXT)
    return cleaned.encode()[:TEXT].decode(errors="ignore") if cleaned else None


def number(value: Any) -> int | None:
    """A whole number as an int32 column holds it; numbers beyond are clamped, booleans are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return max(-INT32 - 1, min(value, INT32))


def version(obj: Object) -> str | None:
    """The resourceVersion when it is a number, as Kubernetes promises since 1.35; None otherwise, older than any."""
    found = at(obj, "metadata", "resourceVersion")
    return found if isinstance(found, str) and VERSION.fullmatch(found) else None


def moment(value: Any) -> datetime | None:
    """An RFC 3339 time as naive UTC in whole seconds (seed: datetime); None before 1970: Go's zero time is unset."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        time = time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return time.replace(microsecond=0) if time >= EPOCH else None


def utcnow() -> datetime:
    """The time now, in the form of every time in the history: naive UTC in whole seconds."""
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0)


def earliest(*times: datetime | None) -> datetime | None:
    """The first of the times that are known."""
    return min((time for time in times if time is not None), default=None)
