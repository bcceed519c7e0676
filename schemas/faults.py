"""What is wrong with a manifest: one ``Fault`` per field, in words a user can act on."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

MOST_FAULTS = 50
LONGEST_VALUE = 80
PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")

INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"
NOT_SUPPORTED = "FieldValueNotSupported"
TYPE_INVALID = "FieldValueTypeInvalid"
FORBIDDEN = "FieldValueForbidden"


class _Nothing:
    """The value of a field that is not there."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: ``path`` as kubectl writes it, ``must`` says what is allowed, ``got`` is the value found."""

    path: str
    must: str
    got: Any = NOTHING
    reason: str = INVALID

    @property
    def message(self) -> str:
        """The fault without its path, for a Status cause: ``must be an integer ≥ 0 (got "2")``."""
        return f"{self.must} (got {shown(self.got)})"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def shown(value: Any) -> str:
    """``value`` as JSON, cut to a length that fits a message."""
    if isinstance(value, _Nothing):
        return "nothing"
    try:
        text = orjson.dumps(value, default=repr).decode()
    except orjson.JSONEncodeError:  # integers beyond 64 bits, nesting beyond orjson's limit
        text = repr(value) if isinstance(value, int) else type(value).__name__
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def path(*segments: str | int) -> str:
    """A field path: ``path("spec", "containers", 0)`` is ``spec.containers[0]``; odd keys are put in brackets."""
    text = ""
    for segment in segments:
        if isinstance(segment, int):
            text += f"[{segment}]"
        elif PLAIN_KEY.fullmatch(segment):
            text += f".{segment}" if text else segment
        else:
            text += f"[{segment}]"
    return text


def ordered(faults: Iterable[Fault]) -> list[Fault]:
    """Sorted by path, each path and text once, numbers in paths compared as numbers."""
    return sorted(set_of(faults), key=lambda fault: (_sort_key(fault.path), fault.must))


def set_of(faults: Iterable[Fault]) -> list[Fault]:
    """The faults without repetitions (a path and its demand stand once)."""
    return list({(fault.path, fault.must): fault for fault in faults}.values())


def summary(faults: list[Fault]) -> str:
    """All faults in one message: at most 50, then how many more there are."""
    shown_faults = [str(fault) for fault in faults[:MOST_FAULTS]]
    if len(faults) > MOST_FAULTS:
        shown_faults.append(f"and {len(faults) - MOST_FAULTS} more")
    return "; ".join(shown_faults)


def _sort_key(text: str) -> list[tuple[int, str]]:
    """Numbers compare by length, then digits: int() refuses thousands of them, and ¹ though it is a digit."""
    parts = re.split(r"0*([0-9]+)", text)
    return [(-1, part) if at % 2 == 0 else (len(part), part) for at, part in enumerate(parts)]
