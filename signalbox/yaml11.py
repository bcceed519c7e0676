"""YAML as kubectl reads it: which plain scalar is which JSON value, and how to write one that is read back the same.

kubectl turns YAML into JSON with sigs.k8s.io/yaml, whose scalars are YAML 1.1's with Go's numbers: ``on`` is true,
``017`` is fifteen, ``1e3`` is a thousand, and a date or ``1:30`` is a string.
"""

import re
from typing import Any

import yaml

JSON = dict[str, Any]
Scalar = str | int | float | bool | None

WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
NUMBER_START = frozenset("+-.0123456789")
INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
BASES = (16, 2, 8, 10)
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
LONGEST_NUMBER = 400  # characters; Go calls a longer one out of range too, and so a string
INT64 = range(-(2**63), 2**63)


def resolve(text: str) -> Scalar:
    """The value of a plain scalar. Integers may be of any size and floats not finite: JSON has neither."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in NUMBER_START or len(text) > LONGEST_NUMBER:
        return text
    plain = text if text[0] == "." else text.replace("_", "")
    found = INTEGER.fullmatch(plain)
    number = _integer(found) if found else _float(plain)
    return text if number is None else number


def _integer(found: re.Match[str]) -> int:
    sign, *digits = found.groups()
    return next(int(sign + part, base) for part, base in zip(digits, BASES, strict=True) if part)


def _float(plain: str) -> int | float | None:
    """A float that is whole becomes an integer, as it does in Go's JSON; one out of range is none."""
    if not FLOAT.fullmatch(plain):
        return None
    number = float(plain)
    if number in (float("inf"), float("-inf")):
        return None
    return int(number) if number.is_integer() and int(number) in INT64 else number


class _Dumper(yaml.SafeDumper):
    """Writes JSON values so that kubectl reads them back: PyYAML alone leaves ``y``, ``0o17`` and ``1e3`` unquoted."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _string(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    if not isinstance(resolve(value), str) or value == "<<":
        style = "'"
    if not value.replace("\n", "").isprintable():  # other line breaks survive as escapes only
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _string)


def dump(value: Any) -> str:
    """``value`` as one YAML document, keys in their order, nothing folded."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100_000)
