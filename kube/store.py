"""A local copy of one collection that only ever moves forward.

Two parties write to it: the reflector, in the order of the watch, and whoever just wrote to the API server and puts
the answer in at once to read its own writes. Either may be late. resourceVersions decide: they are integers that
grow with every change of the collection, as the API documents since Kubernetes 1.35.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

Object: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str]

TOMBSTONES = 4096
"""Names of deleted objects remembered: a late answer is taken for news only after this many other deletions."""


class Change(NamedTuple):
    """What is held now, and what it replaced (None: the object is new)."""

    new: Object
    old: Object | None


@dataclass(frozen=True, slots=True)
class Diff:
    """What a relist found out: upserts, and objects that are gone in their last known state."""

    changed: list[Change]
    gone: list[Object]


class Store:
    """Objects by (namespace, name) and by the UID of their controller owner; for any number of threads.

    What it returns is shared: never change it. ``metadata.managedFields`` (a third of many objects) is left out.
    """

    def __init__(self, *, tombstones: int = TOMBSTONES) -> None:
        self._lock = threading.Lock()
        self._objects: dict[Key, Object] = {}
        self._owned: dict[str, set[Key]] = {}
        self._tombstones: OrderedDict[Key, int] = OrderedDict()
        self._most_tombstones = tombstones
        self._listed = 0

    def observe(self, obj: Object) -> bool:
        """Hold ``obj`` if it is newer than what is known of it; False when it is stale."""
        return self.swap(obj) is not None

    def swap(self, obj: Object) -> Change | None:
        """``observe``, answering with what was held before; None when ``obj`` is stale."""
        slim = without_managed_fields(obj)
        with self._lock:
            return self._put(slim)

    def forget(self, obj: Object, *, resource_version: str | int) -> Object | None:
        """Drop ``obj``, deleted at ``resource_version``, and answer what was held of it.

        None when nothing is held, or something newer: an object of the same name that was created afterwards.
        """
        version = int(resource_version)
        with self._lock:
            self._bury(key_of(obj), version)
            held = self._objects.get(key_of(obj))
            if held is None or version_of(held) > version:
                return None
            self._drop(held)
            return held

    def replace_all(self, items: Iterable[Object], resource_version: str | int) -> Diff:
        """Take over a list of the whole collection as of ``resource_version``.

        What is newer than that list stays, whether it is in the list or not: the list is older than our knowledge.
        """
        version = int(resource_version)
        slim = [without_managed_fields(item) for item in items]
        listed = {key_of(item) for item in slim}
        with self._lock:
            changed = [change for item in slim if (change := self._put(item)) is not None]
            gone = [held for key, held in self._objects.items() if key not in listed and version_of(held) <= version]
            for held in gone:
                self._drop(held)
            self._listed = max(self._listed, version)
        return Diff(changed, gone)

    def get(self, namespace: str, name: str) -> Object | None:
        """The object, or None; cluster-wide objects have the namespace ``""``."""
        with self._lock:
            return self._objects.get((namespace, name))

    def owned_by(self, uid: str) -> list[Object]:
        """Objects whose controller owner reference has ``uid``, sorted by name."""
        with self._lock:
            return [self._objects[key] for key in sorted(self._owned.get(uid, ()))]

    def values(self) -> list[Object]:
        """All objects, in no order."""
        with self._lock:
            return list(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def _put(self, obj: Object) -> Change | None:
        held = self._objects.get(key_of(obj))
        if version_of(obj) <= self._known_until(obj, held):
            return None
        if held is not None:
            self._drop(held)
        self._objects[key_of(obj)] = obj
        if owner := owner_uid(obj):
            self._owned.setdefault(owner, set()).add(key_of(obj))
        return Change(obj, held)

    def _known_until(self, obj: Object, held: Object | None) -> int:
        """The version up to which this store knows better than ``obj``.

        What is not held and not newer than the last list had already been deleted when that list was made.
        """
        if held is not None:
            return version_of(held)
        return max(self._listed, self._tombstones.get(key_of(obj), 0))

    def _drop(self, obj: Object) -> None:
        key = key_of(obj)
        del self._objects[key]
        if owner := owner_uid(obj):
            self._owned[owner].discard(key)
            if not self._owned[owner]:
                del self._owned[owner]

    def _bury(self, key: Key, version: int) -> None:
        self._tombstones[key] = max(version, self._tombstones.pop(key, 0))
        if len(self._tombstones) > self._most_tombstones:
            self._tombstones.popitem(last=False)


def key_of(obj: Object) -> Key:
    """(namespace, name)."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def version_of(obj: Object) -> int:
    """The resourceVersion as the integer it is."""
    return int(obj["metadata"]["resourceVersion"])


def owner_uid(obj: Object) -> str | None:
    """The UID of the controller owner reference, or None."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((reference["uid"] for reference in references if reference.get("controller")), None)


def without_managed_fields(obj: Object) -> Object:
    """``obj`` itself when it has none, otherwise a copy that shares the rest."""
    metadata = obj["metadata"]
    if "managedFields" not in metadata:
        return obj
    return obj | {"metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}
