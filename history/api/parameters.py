"""Query parameters: one table that requests are read with and that the OpenAPI document shows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

from history import durations, statistics
from history.api.problems import Problem
from history.fields import NAME, WHO, WORD, utcnow
from history.queries import SORT_NAMES, Wanted
from history.records import STATUSES

MOST = 500
"""Rows of one page."""
TRUTH = {"true": True, "false": False}
WHEN = r"^([0-9]{1,6}[smhdw]|[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})?)?)$"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One query parameter; ``read`` makes the value and raises ValueError saying what is allowed."""

    name: str
    description: str
    schema: Mapping[str, Any]
    read: Callable[[str], Any]
    field: str = ""
    """The field of ``Wanted`` that it sets, if not of its own name."""


def word(text: str) -> str:
    if "\0" in text or not text or not text.isprintable():
        raise ValueError("must be printable text")
    return text


def whole(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0
    if not 1 <= number <= MOST:
        raise ValueError(f"must be a whole number from 1 to {MOST}")
    return number


def truth(text: str) -> bool:
    if text not in TRUTH:
        raise ValueError("must be true or false")
    return TRUTH[text]


def when(text: str) -> datetime:
    return durations.moment(text, utcnow())


def one_of(choices: Iterable[str]) -> Callable[[str], str]:
    allowed = tuple(choices)

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return text

    return read


def _text(name: str, description: str, width: int) -> Parameter:
    return Parameter(name, description, {"type": "string", "minLength": 1, "maxLength": width}, _within(width))


def _within(width: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        if len(text) > width:
            raise ValueError(f"must have at most {width} characters")
        return word(text)

    return read


def _choice(name: str, description: str, choices: Iterable[str], default: str | None = None) -> Parameter:
    schema: dict[str, Any] = {"type": "string", "enum": list(choices)}
    return Parameter(
        name, description, schema if default is None else schema | {"default": default}, one_of(schema["enum"])
    )


def _moment(name: str, description: str, field: str = "") -> Parameter:
    return Parameter(name, description, {"type": "string", "pattern": WHEN, "examples": ["30d"]}, when, field)


KIND = _text("kind", "Exactly this kind.", WORD)
NAMESPACE = _text("namespace", "Exactly this namespace.", NAME)
NAME_PART = _text("name", "A part of the name, in any case.", NAME)
STATUS = _choice("status", "Exactly this status.", STATUSES)
OWNER = _text("owner", "Exactly this owner.", WHO)
TENANT = _text("tenant", "Exactly this tenant.", WHO)
REGION = _text("region", "Exactly this region.", 64)
FROM = _moment("from", "Created then or later: a time, a date (UTC), or a span before now.", "since")
TO = _moment("to", "Created before then.", "until")
DELETED = Parameter("deleted", "Whether the object is gone.", {"type": "boolean"}, truth)
SORT = _choice("sort", "Order; a minus turns it. Only jobs that have the value are listed.", SORT_NAMES, "-created")
AFTER = Parameter("after", "The `next` of the page before.", {"type": "string", "minLength": 1, "maxLength": 512}, word)
LIMIT = Parameter("limit", "Rows of a page.", {"type": "integer", "minimum": 1, "maximum": MOST, "default": 100}, whole)
BY = _choice("by", "What to count by.", statistics.GROUPS, "owner")
SINCE = _moment("since", "Then or later: a time, a date (UTC), or a span before now.")
VERDICT = _text("verdict", "allowed, warned, defaulted or refused.", WORD)
USER = _text("user", "Exactly this user.", WHO)

FILTERS = (KIND, NAMESPACE, NAME_PART, STATUS, OWNER, TENANT, REGION, FROM, TO, DELETED)
LIST = (*FILTERS, SORT, AFTER, LIMIT)
STATISTICS = (BY, *FILTERS)
ANSWERS = (VERDICT, NAMESPACE, USER, SINCE, LIMIT)
RESTARTS = (NAMESPACE, SINCE, LIMIT)


def read(parameters: Iterable[Parameter], given: Mapping[str, list[str]]) -> dict[str, Any]:
    """Values by field name. Raises Problem with all that is wrong."""
    known = {parameter.name: parameter for parameter in parameters}
    values: dict[str, Any] = {}
    faults = [f"{name}: is not known here; known are {', '.join(known)}" for name in given if name not in known]
    for name, texts in given.items():
        if (parameter := known.get(name)) is None:
            continue
        try:
            if len(texts) != 1:
                raise ValueError("must be given once")
            values[parameter.field or name] = parameter.read(texts[0])
        except ValueError as error:
            faults.append(f"{name}: {error}")
    if faults:
        raise Problem(HTTPStatus.BAD_REQUEST, "The query is wrong.", faults)
    return values


def wanted(given: Mapping[str, list[str]]) -> Wanted:
    """The jobs that a query asks for. Raises Problem."""
    return Wanted(**read(LIST, given))
