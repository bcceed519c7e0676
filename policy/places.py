"""Places in a JSON document: read one, and copy a document with one more value. Nothing is changed in place."""

import re
from typing import Any

Segments = tuple[str | int, ...]
SEGMENT = re.compile(r"\[(?P<index>[0-9]{1,9})\]|\[(?P<key>[^\[\]]+)\]|\.?(?P<name>[^.\[\]]+)", re.ASCII)


def segments(path: str) -> Segments:
    """The segments of a field path: ``spec.containers[0]``, ``metadata.labels[a/b]``."""
    found = SEGMENT.finditer(path)
    return tuple(int(step["index"]) if step["index"] else step["key"] or step["name"] for step in found)


def at(document: Any, place: Segments) -> Any:
    """The value at ``place``; None when there is nothing."""
    for segment in place:
        if isinstance(segment, int):
            document = document[segment] if isinstance(document, list) and segment < len(document) else None
        else:
            document = document.get(segment) if isinstance(document, dict) else None
    return document


def with_value(document: Any, place: Segments, value: Any) -> Any:
    """A copy with ``value`` at ``place``; objects that are missing or null on the way are made.

    Where something else than an object or list is in the way the document comes back as it is: validation names it.
    """
    if not place:
        return value
    segment, *rest = place
    if isinstance(segment, int):
        return _in_list(document, segment, tuple(rest), value)
    if document is not None and not isinstance(document, dict):
        return document
    inner = (document or {}).get(segment)
    changed = with_value(inner, tuple(rest), value)
    return document if changed is inner else {**(document or {}), segment: changed}


def _in_list(document: Any, index: int, rest: Segments, value: Any) -> Any:
    if not isinstance(document, list) or index >= len(document):
        return document
    changed = with_value(document[index], rest, value)
    return document if changed is document[index] else [*document[:index], changed, *document[index + 1 :]]


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 and true differ."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
