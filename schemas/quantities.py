"""Sums of Kubernetes quantities, exact, in the user's own spelling where there is nothing to add."""

import math
import re
from fractions import Fraction
from typing import Any

Quantity = str | int | float
Amounts = dict[str, Quantity]
"""Resource name to quantity, spelled as the user did ("10Gi", 2, 0.5)."""

DECIMAL = {
    unit: Fraction(1000) ** power for power, unit in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
}
BINARY = {unit: Fraction(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
UNITS = DECIMAL | BINARY
SPELLING = re.compile(
    r"([+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}))([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?", re.ASCII
)


def parse(quantity: Quantity) -> Fraction | None:
    """The exact amount; None when it is no quantity."""
    match = SPELLING.fullmatch(str(quantity))
    if not match:
        return None
    digits, unit = match[1], match[2] or ""
    return Fraction(digits) * (UNITS[unit] if unit in UNITS else Fraction(f"1{unit}"))


def spell(amount: Fraction, *, binary: bool) -> str:
    """The canonical spelling, in units of 1024 if asked; exact down to the billionth that Kubernetes goes to."""
    if binary:
        for unit, size in reversed(BINARY.items()):
            if amount and (amount / size).denominator == 1:
                return f"{amount / size}{unit}"
    for unit in ("", "m", "u"):
        if (amount / DECIMAL[unit]).denominator == 1:
            return f"{amount / DECIMAL[unit]}{unit}"
    return f"{math.ceil(amount / DECIMAL['n'])}n"


def plus(one: Amounts, other: Amounts) -> Amounts:
    """Both together, resource by resource."""
    return {
        name: _sum(one[name], other[name]) if name in one and name in other else amount
        for name, amount in (one | other).items()
    }


def times(amounts: Amounts, count: int) -> Amounts:
    """``amounts``, ``count`` times."""
    return amounts if count == 1 else {name: _scaled(amount, count) for name, amount in amounts.items()}


def equal(one: Any, other: Any) -> bool:
    """Whether two spellings are the same amount: a typed client writes 0.5 back as 500m."""
    if one == other:
        return True
    first, second = quantity(one), quantity(other)
    return first is not None and second is not None and parse(first) == parse(second)


def larger(one: Amounts, other: Amounts) -> Amounts:
    """The larger of both, resource by resource."""
    return one | {name: amount for name, amount in other.items() if name not in one or _size(amount) > _size(one[name])}


def quantity(value: Any) -> Quantity | None:
    """A raw JSON value if it can be a quantity: a short string or a number of ordinary size."""
    ordinary = isinstance(value, str | int | float) and not isinstance(value, bool)
    if isinstance(value, int) and abs(value) >= 2**63:
        return None
    return value if ordinary and parse(value) is not None else None


def _size(amount: Quantity) -> Fraction:
    return parse(amount) or Fraction(0)


def _scaled(amount: Quantity, count: int) -> Quantity:
    return spell(_size(amount) * count, binary=str(amount).endswith("i"))


def _sum(one: Quantity, other: Quantity) -> Quantity:
    binary = str(one).endswith("i") or str(other).endswith("i")
    return spell(_size(one) + _size(other), binary=binary)
