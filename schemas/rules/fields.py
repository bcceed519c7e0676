"""References to the pod's own fields and resources, as variables and files have them."""

import re
from fractions import Fraction
from typing import Any

from schemas import names
from schemas.job import mapping, text
from schemas.quantities import DECIMAL, UNITS, parse, quantity
from schemas.rules.base import Flaw, Flaws, Segments

COMMON = ("metadata.name", "metadata.namespace", "metadata.uid")
POD = ("spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
VARIABLE_FIELDS = (*COMMON, *POD)
FILE_FIELDS = (*COMMON, "metadata.labels", "metadata.annotations")
SUBSCRIPT = re.compile(r"metadata[.](labels|annotations)\['(.*)'\]", re.DOTALL)
SIZES = frozenset(unit for unit in UNITS.values() if unit >= 1)
DIVISORS = {"cpu": frozenset({Fraction(1), Fraction(1, 1000)})}
UNWRITTEN = Fraction(0)


def field_flaws(reference: Any, at: Segments, known: tuple[str, ...]) -> Flaws:
    """What is wrong with a fieldRef, when ``known`` are the paths it may have."""
    version, path = mapping(reference).get("apiVersion"), text(mapping(reference).get("fieldPath"))
    if version not in (None, "", "v1"):
        yield Flaw((*at, "apiVersion"), "must be v1", version)
    if not path:
        return
    found = SUBSCRIPT.fullmatch(path)
    if found is None and path not in known:
        must = f"must be one of {', '.join(known)}, metadata.labels['<key>'], metadata.annotations['<key>']"
        yield Flaw((*at, "fieldPath"), must, path)
    elif found and not names.is_qualified_name(found[2].lower() if found[1] == "annotations" else found[2]):
        yield Flaw((*at, "fieldPath"), "must name a label or an annotation by its key", path)


def resource_flaws(reference: Any, at: Segments) -> Flaws:
    """What is wrong with the divisor of a resourceFieldRef."""
    divisor = quantity(mapping(reference).get("divisor"))
    if divisor is None:
        return
    name, amount = text(mapping(reference).get("resource")).partition(".")[2], parse(divisor)
    if amount != UNWRITTEN and not _divides(name, str(divisor), amount):
        units = "1m or 1" if name == "cpu" else "1 or one unit, such as 1k, 1Mi or 1G"
        yield Flaw((*at, "divisor"), f"must be {units}", divisor)


def _divides(name: str, spelling: str, amount: Fraction | None) -> bool:
    """Whether a divisor is one unit; 1024 is none though Ki is, since Kubernetes compares the canonical spelling."""
    if name == "cpu":
        return amount in DIVISORS["cpu"]
    return amount in (SIZES if spelling.endswith("i") else SIZES & frozenset(DECIMAL.values()))
