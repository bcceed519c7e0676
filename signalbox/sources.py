"""Files of YAML or JSON documents, read so that every value keeps its place in the text.

Reading is total: a text gives documents or ``Unreadable`` with the place where it stops being YAML. A document is a
tree of nodes, kept apart from its JSON value, because the value forgets positions, repeated keys and merges.
"""

import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import yaml

from schemas import faults
from signalbox.composing import Composer, Mapping, Node, Sequence, TooMuch, pairs

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "<stdin>"
NOT_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
SURROGATES = re.compile(r"(\\\\)|\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file; both count from 1, columns in characters."""

    line: int
    column: int


class Unreadable(Exception):  # noqa: N818 - it reads as what it says
    """A file that cannot be read, or is not YAML from ``position`` on."""

    def __init__(self, file: str, message: str, position: Position | None = None) -> None:
        super().__init__(message)
        self.file, self.message, self.position = file, message, position


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its number in the file from 1, its tree, and its text with the comments before it."""

    number: int
    node: Node
    text: str
    explicit: bool
    """Whether the text has the ``---`` that separates it from what comes before."""

    @property
    def is_empty(self) -> bool:
        return self.node.is_null


@dataclass(frozen=True, eq=False)
class Source:
    """One file that was read."""

    file: str
    text: str
    documents: list[Document] = field(default_factory=list)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def position(self, offset: int) -> Position:
        """Line and column of a character of the text; the end of the text is its last line's."""
        line = bisect_right(self._starts, min(offset, len(self.text)))
        return Position(line, min(offset, len(self.text)) - self._starts[line - 1] + 1)

    def locate(self, node: Node, path: str) -> Position:
        """Where the deepest field of ``path`` that there is stands below ``node``: its key, or its list item."""
        return self.position(deepest(node, path))


def deepest(node: Node, path: str) -> int:
    """The offset of the deepest node on ``path``; a key that differs only in case counts, as type keys are folded."""
    at, rest = node.at, path if path.startswith("[") else f".{path}"
    while step := _step(node, rest):
        at, node, length = step
        rest = rest[length:]
    return at


def _step(node: Node, rest: str) -> tuple[int, Node, int] | None:
    """The child that ``rest`` goes through: where it stands, itself, and how much of ``rest`` names it."""
    steps = [(at, child, segment) for segment, at, child in _children(node) if _leads(segment, rest)]
    if not steps:
        return None
    at, child, segment = max(steps, key=lambda step: (rest.startswith(step[2]), len(step[2])))
    return at, child, len(segment)


def _children(node: Node) -> Iterator[tuple[str, int, Node]]:
    if isinstance(node, Mapping):
        for name, (key, value) in pairs(node).items():
            yield faults.path("x", name)[1:], key.at, value
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield f"[{index}]", item.at, item


def _leads(segment: str, rest: str) -> bool:
    return rest[: len(segment)].lower() == segment.lower() and rest[len(segment) :][:1] in ("", ".", "[")


def files(paths: Iterable[str]) -> list[str]:
    """The files that ``paths`` name, directories searched for manifests (hidden ones not); ``-`` stays itself."""
    found = (name for path in paths for name in (_below(path) if path != "-" and Path(path).is_dir() else [path]))
    return list(dict.fromkeys(found))


def _below(directory: str) -> Iterator[str]:
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (str(Path(folder, name)) for name in sorted(names) if name.endswith(SUFFIXES))


def read(path: str) -> Source:
    """The documents of a file, or of standard input for ``-``; raises ``Unreadable``."""
    name = STDIN if path == "-" else path
    try:
        content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise Unreadable(name, f"must be readable ({getattr(error, 'strerror', None) or error})") from None
    return parse(name, content)


def parse(file: str, content: bytes) -> Source:
    """The documents in ``content``; raises ``Unreadable`` with the place where it is not YAML."""
    source = Source(file, _paired(_text(file, content)))
    if found := NOT_TEXT.search(source.text):
        message = f"must be text (got the character U+{ord(found[0]):04X})"
        raise Unreadable(file, message, source.position(found.start()))
    try:
        source.documents.extend(_documents(source.text))
    except TooMuch as error:
        raise Unreadable(file, str(error), source.position(error.at)) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = mark.index if mark else 0
        raise Unreadable(file, _not_yaml(source.text, at, error), source.position(at)) from None
    return source


def _text(file: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = Source(file, content[: error.start].decode("utf-8-sig", errors="replace"))
        raise Unreadable(file, "must be UTF-8 text", good.position(len(good.text))) from None


def _paired(text: str) -> str:
    """JSON with its surrogate pairs as one escape, the only form that YAML knows; lines stay as they are."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    return SURROGATES.sub(lambda found: found[1] or f"\\U{_code_point(found[2], found[3]):08X}", text)


def _code_point(high: str, low: str) -> int:
    return 0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00)


def _documents(text: str) -> Iterator[Document]:
    end = 0
    for number, (node, stop, explicit) in enumerate(Composer(text).documents(), start=1):
        yield Document(number, node, text[end:stop], explicit)
        end = stop


def _not_yaml(text: str, at: int, error: yaml.MarkedYAMLError) -> str:
    if text[at : at + 1] == "\t":
        return "must be YAML (a tab cannot indent, use spaces)"
    said = [part for part in (error.problem, error.context) if part]
    return f"must be YAML ({', '.join(said)})"
