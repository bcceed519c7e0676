"""The jobs in a set of files and what is to be said about them: shared by ``check``, ``default`` and ``explain``."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import click

from schemas import defaults, faults, kinds
from schemas.faults import Fault
from schemas.job import Job, mapping, text
from schemas.kinds import JobKind
from schemas.rules import WARNINGS
from schemas.rules.warnings import as_text
from schemas.unknown import unknown_fields
from signalbox import sources
from signalbox.composing import Node, Problem, Scalar, Sequence, child, scalar, value_of
from signalbox.sources import Document, Position, Source, Unreadable
from webhook.validate import judged

JSON = dict[str, Any]
ERROR, WARNING = "error", "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say about a manifest; ``position`` is None for a file that could not be read at all."""

    file: str
    severity: str
    message: str
    path: str = ""
    position: Position | None = None
    document: int | None = None
    kind: str = ""
    namespace: str = ""
    name: str = ""

    def as_json(self) -> JSON:
        """Flat, each field always there."""
        line, column = (self.position.line, self.position.column) if self.position else (None, None)
        return {
            "file": self.file,
            "document": self.document,
            "line": line,
            "column": column,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "severity": self.severity,
            "path": self.path,
            "message": self.message,
        }

    def __str__(self) -> str:
        """As compilers write it: ``file:line:column: error: path: message``."""
        place = f"{self.file}:{self.position.line}:{self.position.column}" if self.position else self.file
        return plain(f"{place}: {self.severity}: {self.said}")

    @property
    def said(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True, eq=False)
class Manifest:
    """One object of a document: the document itself, or an item of the List that it is."""

    source: Source
    document: Document
    node: Node
    api_version: str
    kind_name: str

    @cached_property
    def kind(self) -> JobKind | None:
        """The row of the kind; None when Signalbox does not serve it in this version."""
        row = kinds.find(self.kind_name, self.api_version.rpartition("/")[0])
        return row if row is not None and row.api_version == self.api_version else None

    @cached_property
    def _read(self) -> tuple[Any, list[Problem]]:
        problems: list[Problem] = []
        return value_of(self.node, problems), problems

    @property
    def value(self) -> Any:
        """The object as JSON."""
        return self._read[0]

    @property
    def problems(self) -> list[Problem]:
        """What JSON cannot hold."""
        return self._read[1]

    @property
    def metadata(self) -> Mapping[str, Any]:
        return mapping(mapping(self.value).get("metadata"))

    @property
    def identity(self) -> JSON:
        """Where the object comes from and what it is called."""
        return {
            "file": self.source.file,
            "document": self.document.number,
            "kind": self.kind_name,
            "namespace": text(self.metadata.get("namespace")),
            "name": text(self.metadata.get("name")) or text(self.metadata.get("generateName")),
        }

    @property
    def title(self) -> str:
        """For people: ``PyTorchJob ns/name``."""
        identity = self.identity
        return " ".join((self.kind_name, "/".join(filter(None, (identity["namespace"], identity["name"])))))

    def finding(self, severity: str, fault_path: str, message: str, at: int | None = None) -> Finding:
        """A finding at the place of ``fault_path`` in the source, or at the offset ``at``."""
        place = self.source.locate(self.node, fault_path) if at is None else self.source.position(at)
        return Finding(severity=severity, message=message, path=fault_path, position=place, **self.identity)


@dataclass
class Reading:
    """All files that were asked for, as far as they could be read."""

    sources: list[Source] = field(default_factory=list)
    unreadable: list[Finding] = field(default_factory=list)

    @cached_property
    def contents(self) -> list[tuple[Document, list[Manifest]]]:
        """Each document with its objects."""
        documents = ((source, document) for source in self.sources for document in source.documents)
        return [(document, list(unpacked(source, document))) for source, document in documents]

    @property
    def manifests(self) -> list[Manifest]:
        return [item for _, objects in self.contents for item in objects]

    @property
    def jobs(self) -> list[Manifest]:
        return [manifest for manifest in self.manifests if manifest.kind is not None]

    def skipped(self) -> Counter[str]:
        """How many objects of each kind that Signalbox does not serve there are."""
        return Counter(item.kind_name or "without kind" for item in self.manifests if item.kind is None)


def read_all(paths: Iterable[str]) -> Reading:
    """Reads files, directories and ``-``; what cannot be read becomes a finding and the rest is read all the same."""
    reading = Reading()
    for path in sources.files(paths):
        try:
            reading.sources.append(sources.read(path))
        except Unreadable as error:
            reading.unreadable.append(Finding(error.file, ERROR, error.message, position=error.position))
    return reading


def read_some(paths: Iterable[str]) -> Reading:
    """As ``read_all``; a usage error when there is no document at all and nothing that was unreadable."""
    reading = read_all(paths)
    if not reading.manifests and not reading.unreadable:
        raise click.UsageError(f"no documents in {', '.join(paths)}")
    return reading


def unpacked(source: Source, document: Document) -> Iterator[Manifest]:
    """The objects of a document: those of a List one by one, none for an empty document."""
    waiting = [] if document.is_empty else [document.node]
    while waiting:
        node = waiting.pop()
        items = listed(node)
        if items is not None:
            waiting += reversed(items.items)
        else:
            yield Manifest(source, document, node, _said(node, "apiVersion"), _said(node, "kind"))


def listed(node: Node) -> Sequence | None:
    """The items of a List, None for any other object."""
    items = child(node, "items")
    return items if isinstance(items, Sequence) and _said(node, "kind").endswith("List") else None


def _said(node: Node, name: str) -> str:
    value = child(node, name)
    return text(scalar(value)) if isinstance(value, Scalar) else ""


def judge(manifest: Manifest, old: Any = None) -> list[Finding]:
    """Everything to say about a job, in the order of its lines; ``old`` is the stored object on an update."""
    assert manifest.kind is not None
    verdict = judged(manifest.kind, manifest.value, old)
    filled = defaulted(manifest.kind, manifest.value, old)
    misread = {problem.fault.path for problem in manifest.problems}
    errors = [*unknown_fields(manifest.kind, filled), *_metadata_faults(manifest.metadata), *verdict.faults]
    warnings = warned(Job(manifest.kind, filled), verdict.warnings)
    findings = [
        *(manifest.finding(ERROR, item.fault.path, item.fault.message, item.at) for item in manifest.problems),
        *(manifest.finding(ERROR, item.path, item.message) for item in errors if item.path not in misread),
        *(manifest.finding(WARNING, item.path, item.must) for item in warnings),
    ]
    return sorted(findings, key=_place)


def _place(finding: Finding) -> tuple[int, int]:
    return (finding.position.line, finding.position.column) if finding.position else (0, 0)


def defaulted(kind: JobKind, value: Any, old: Any = None) -> Any:
    """``value`` with its defaults; what is no object comes back as it is."""
    return defaults.default(kind, value, mapping(old)) if isinstance(value, dict) else value


def warned(job: Job, said: Iterable[str]) -> list[Fault]:
    """The warnings ``said`` with their whole paths, which their short form for kubectl may have lost."""
    known = {as_text(fault): fault for rule in WARNINGS for fault in rule(job)}
    return [known[line] if line in known else _parted(line) for line in said]


def _parted(line: str) -> Fault:
    path, _, must = line.partition(": ")
    return Fault(path, must)


def stray(manifest: Manifest) -> Finding | None:
    """A warning about an object that has a served kind's name, but in a group or version that is not served."""
    named = [row for row in kinds.KINDS if row.kind.lower() == manifest.kind_name.lower()]
    if manifest.kind is not None or not named:
        return None
    served = " or ".join(f"{row.api_version} {row.kind}" for row in named)
    got = f"{manifest.api_version} {manifest.kind_name}".strip()
    path = "apiVersion" if any(row.kind == manifest.kind_name for row in named) else "kind"
    return manifest.finding(WARNING, path, f"is not checked: Signalbox serves {served} (got {faults.shown(got)})")


def _metadata_faults(metadata: Mapping[str, Any]) -> Iterator[Fault]:
    """Labels and annotations hold strings. The API server refuses others before any webhook sees the object."""
    for name in ("labels", "annotations"):
        fields = metadata.get(name)
        if fields is not None and not isinstance(fields, Mapping):
            yield Fault(faults.path("metadata", name), "must be an object", fields, faults.TYPE_INVALID)
        for key, value in mapping(fields).items():
            if not isinstance(value, str):
                yield Fault(faults.path("metadata", name, key), "must be a string", value, faults.TYPE_INVALID)


def plain(said: str) -> str:
    """``said`` without characters that steer a terminal."""
    return "".join(char if char.isprintable() else " " for char in said)


def counted(number: int, noun: str) -> str:
    """``1 job``, ``2 jobs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
