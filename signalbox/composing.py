"""From YAML's events to trees of nodes with positions, and from a tree to the JSON that kubectl would send.

Aliases share their nodes, so size and depth are counted: a few lines of aliases can stand for billions of values.
"""

import base64
import binascii
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from schemas import faults
from schemas.faults import Fault
from signalbox import yaml11

DEEPEST = 200
"""Levels of nesting; validation recurses, and no job comes near."""
MOST_ALIASED = 200_000
"""Values that all aliases of a document may stand for."""
TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value: ``text`` as written, ``tag`` if one is written, ``plain`` when it has no quotes."""

    at: int
    text: str
    tag: str | None
    plain: bool
    size: int = 1
    height: int = 1

    @property
    def is_null(self) -> bool:
        return self.tag is None and self.plain and yaml11.resolve(self.text) is None


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list of nodes."""

    at: int
    items: tuple["Node", ...]
    size: int
    height: int
    is_null: bool = False


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys and values in the order of the text, repeated keys and merges as written."""

    at: int
    entries: tuple[tuple["Node", "Node"], ...]
    size: int
    height: int
    is_null: bool = False


Node = Scalar | Sequence | Mapping


class TooMuch(Exception):  # noqa: N818 - it reads as what it says
    """A document too deep, too large, or with an alias of itself; ``at`` is the offset."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet."""

    at: int
    anchor: str | None
    is_mapping: bool
    nodes: list[Node]

    def closed(self) -> Node:
        size = 1 + sum(node.size for node in self.nodes)
        height = 1 + max((node.height for node in self.nodes), default=0)
        if not self.is_mapping:
            return Sequence(self.at, tuple(self.nodes), size, height)
        entries = tuple(zip(self.nodes[::2], self.nodes[1::2], strict=True))
        return Mapping(self.at, entries, size, height)


class Composer:
    """Builds the documents of one text. Without recursion, so depth is ours to bound."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._reset()

    def _reset(self) -> None:
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._root: Node | None = None
        self._aliased = 0

    def documents(self) -> Iterator[tuple[Node, int, bool]]:
        """Each document: its node, the offset of its end, and whether it begins with ``---``.

        Raises ``TooMuch`` and ``yaml.MarkedYAMLError``.
        """
        explicit = False
        for event in _events(self._text):
            if isinstance(event, yaml.DocumentStartEvent):
                self._reset()
                explicit = bool(event.explicit)
            elif isinstance(event, yaml.DocumentEndEvent) and self._root is not None:
                yield self._root, _offset(event.end_mark), explicit
            else:
                self._take(event)

    def _take(self, event: yaml.Event) -> None:
        at = _offset(event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            self._bound(len(self._stack) + 1, at)
            self._stack.append(_Open(at, event.anchor, isinstance(event, yaml.MappingStartEvent), []))
        elif isinstance(event, yaml.CollectionEndEvent):
            closing = self._stack.pop()
            self._add(closing.closed(), closing.anchor)
        elif isinstance(event, yaml.ScalarEvent):
            # "! 12" is a string to kubectl; libyaml's event no longer tells
            plain = not event.style and event.implicit[0] and not self._text.startswith("!", at)
            self._add(Scalar(at, event.value, event.tag, plain), event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._alias(str(event.anchor), at), None)

    def _add(self, node: Node, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if self._stack:
            self._stack[-1].nodes.append(node)
        else:
            self._root = node

    def _alias(self, name: str, at: int) -> Node:
        if any(open_.anchor == name for open_ in self._stack):
            raise TooMuch(f"must not contain itself (the anchor {name})", at)
        if name not in self._anchors:
            raise TooMuch(f"must name an anchor that is set before (got {faults.shown(name)})", at)
        node = self._anchors[name]
        self._aliased += node.size
        if self._aliased > MOST_ALIASED:
            raise TooMuch(f"must not stand for more than {MOST_ALIASED:,} values through its aliases", at)
        self._bound(len(self._stack) + node.height, at)
        return node

    def _bound(self, depth: int, at: int) -> None:
        if depth > DEEPEST:
            raise TooMuch(f"must not be nested deeper than {DEEPEST} levels", at)


def _events(text: str) -> Iterator[yaml.Event]:
    """libyaml's parser: PyYAML's own refuses the tabs that JSON may be indented with."""
    yield from yaml.parse(text, Loader=yaml.CSafeLoader)


def _offset(mark: Any) -> int:
    return int(mark.index)


def pairs(node: Mapping, problems: list[tuple[Node, str]] | None = None) -> dict[str, tuple[Node, Node]]:
    """The fields of a mapping: key and value node by name, merges applied.

    A merge key sets what comes before it and yields to what comes after, which is what kubectl makes of it.
    ``problems`` receives what is wrong with a key: the node and the demand.
    """
    found: dict[str, tuple[Node, Node]] = {}
    own: dict[str, Node] = {}
    for key, value in node.entries:
        if isinstance(key, Scalar) and key.plain and key.tag is None and key.text == "<<":
            found |= _merged(key, value, problems)
            continue
        name = key_text(key)
        if name is None:
            _note(problems, key, "must be a string")
            continue
        if name in own:
            _note(problems, key, "must be set only once in its mapping")
        own[name] = key
        found[name] = (key, value)
    return found


def _merged(key: Node, value: Node, problems: list[tuple[Node, str]] | None) -> dict[str, tuple[Node, Node]]:
    parts = value.items if isinstance(value, Sequence) else (value,)
    merged: dict[str, tuple[Node, Node]] = {}
    for part in reversed(parts):  # the first of a list wins
        if isinstance(part, Mapping):
            merged |= pairs(part)
        else:
            _note(problems, key, "must merge a mapping or a list of mappings")
    return merged


def _note(problems: list[tuple[Node, str]] | None, node: Node, must: str) -> None:
    if problems is not None:
        problems.append((node, must))


def key_text(key: Node) -> str | None:
    """A key as JSON has it: numbers and booleans become strings; None for null and collections."""
    value = scalar(key) if isinstance(key, Scalar) else None
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def scalar(node: Scalar) -> yaml11.Scalar:
    """The value of a scalar: quotes and ``!!str`` make a string, other tags but YAML's own do too."""
    if node.tag == TAG + "binary":
        return _decoded(node.text)
    if node.plain or node.tag in (TAG + "int", TAG + "float", TAG + "bool", TAG + "null"):
        return yaml11.resolve(node.text)
    return node.text


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return text


def child(node: Node, name: str) -> Node | None:
    """The value of the field ``name``, when ``node`` is a mapping that has it."""
    return pairs(node).get(name, (None, None))[1] if isinstance(node, Mapping) else None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that YAML can say and JSON cannot: the fault, and the offset of its own place."""

    fault: Fault
    at: int


def value_of(node: Node, problems: list[Problem] | None = None, at: tuple[str | int, ...] = ()) -> Any:
    """The JSON value of a tree; ``problems`` receives repeated keys and numbers that JSON cannot hold."""
    noted: list[Problem] = [] if problems is None else problems
    if isinstance(node, Sequence):
        return [value_of(item, noted, (*at, index)) for index, item in enumerate(node.items)]
    if isinstance(node, Scalar):
        return _number(node, scalar(node), noted, at)
    wrong: list[tuple[Node, str]] = []
    fields = pairs(node, wrong)
    for key, must in wrong:
        noted.append(_key_problem(key, must, at))
    return {name: value_of(value, noted, (*at, name)) for name, (_, value) in fields.items()}


def _key_problem(key: Node, must: str, at: tuple[str | int, ...]) -> Problem:
    name = key_text(key)
    got = value_of(key)
    return Problem(Fault(faults.path(*at, *([] if name is None else [name])), must, got), key.at)


def _number(node: Scalar, value: yaml11.Scalar, noted: list[Problem], at: tuple[str | int, ...]) -> yaml11.Scalar:
    """``value``, or None with a problem for a number that is not one in JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        must = "must be a finite number"
    elif isinstance(value, int) and value not in yaml11.INT64:
        must = "must be an integer that fits 64 bits"
    else:
        return value
    noted.append(Problem(Fault(faults.path(*at), must, node.text), node.at))
    return None
