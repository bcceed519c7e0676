"""CEL: compiled once with its types checked, evaluated with a bound. On cel-expr-python (docs/adr/0009).

The library ends an evaluation after 10,000 steps of loops, about a tenth of a second, and matches patterns in linear
time, so no expression can hold a worker for long.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

NAMES = ("object", "oldObject", "request", "namespaceObject", "params")
LONGEST = 10_000  # characters
PLACE = re.compile(r"ERROR: <input>:([0-9]+):([0-9]+): ([^\n]*)")
STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")

BOOLEAN, STRING = "BOOL", "STRING"
TYPE_WORDS = {BOOLEAN: "true or false", STRING: "a string"}


class Malformed(ValueError):  # noqa: N818 - it reads as what it says
    """An expression that cannot be used; the text has line and column."""


class Failed(Exception):  # noqa: N818 - it reads as what it says
    """An evaluation without a result; the text says why."""


@dataclass(frozen=True)
class Expression:
    """One compiled expression; safe for threads."""

    source: str
    program: Any

    def value(self, values: Any) -> Any:
        """The result for ``values`` (of ``activation``). Raises Failed."""
        try:
            result = self.program.eval(values)
        except RuntimeError as error:
            raise Failed(_bare(str(error))) from error
        if result.type() == _types().ERROR:
            raise Failed(_bare(str(result.value())))
        return result.value()


@cache
def _types() -> Any:
    from cel_expr_python import cel

    return cel.Type


@cache
def _environment() -> Any:
    """Loads the library, 12 MB, with the first expression: most clusters have no policy."""
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional, ext_strings

    variables = dict.fromkeys(NAMES, cel.Type.DYN)
    return cel.NewEnv(variables=variables, extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional()])


def compiled(source: str, wanted: str) -> Expression:
    """``source`` as an expression that gives a value of type ``wanted`` (BOOL, STRING). Raises Malformed."""
    if len(source) > LONGEST:
        raise Malformed(f"must be at most {LONGEST} characters long")
    try:
        program = _environment().compile(source)
    except RuntimeError as error:
        raise Malformed(f"must be valid CEL: {_place(str(error))}") from error
    found = program.return_type()
    if found != _types().DYN and found.name() != wanted:
        raise Malformed(f"must give {TYPE_WORDS[wanted]}, not {found.name()}")
    return Expression(source, program)


def activation(values: Mapping[str, Any]) -> Any:
    """Values for ``NAMES``, converted only as far as expressions look, and only once."""
    return _environment().Activation(dict(values))


def _place(text: str) -> str:
    found = PLACE.search(text)
    return f"line {found[1]}, column {found[2]}: {_bare(found[3])}" if found else _bare(text)


def _bare(text: str) -> str:
    return STATUS.sub("", text.partition("\n")[0])
