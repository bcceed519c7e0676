"""The difference between two JSON documents as an RFC 6902 patch, smallest where it is cheap.

Only ``add``, ``replace`` and ``remove``; lists of equal length are compared item by item, others are replaced whole,
so the result never depends on indexes that an earlier operation moved. A missing parent is added whole, because
an operation is made at the highest place where the documents differ in having a value (knative/pkg#162).
"""

from typing import Any

JSON = dict[str, Any]


def diff(old: Any, new: Any, at: str = "") -> list[JSON]:
    """The operations that turn ``old`` into ``new``, applicable in order by a strict library."""
    if type(old) is not type(new):  # 1, 1.0 and True are equal in Python and different in JSON
        return [{"op": "replace", "path": at, "value": new}]
    if isinstance(old, dict):
        return _diff_objects(old, new, at)
    if isinstance(old, list) and len(old) == len(new):
        return [op for index, (a, b) in enumerate(zip(old, new, strict=True)) for op in diff(a, b, f"{at}/{index}")]
    return [] if old == new else [{"op": "replace", "path": at, "value": new}]


def escape(key: str) -> str:
    """One reference token of RFC 6901."""
    return key.replace("~", "~0").replace("/", "~1")


def _diff_objects(old: JSON, new: JSON, at: str) -> list[JSON]:
    operations: list[JSON] = [{"op": "remove", "path": f"{at}/{escape(key)}"} for key in old if key not in new]
    for key, value in new.items():
        path = f"{at}/{escape(key)}"
        if key not in old:
            operations.append({"op": "add", "path": path, "value": value})
        elif old[key] is not value:
            operations += diff(old[key], value, path)
    return operations
