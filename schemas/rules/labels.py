"""Rules about label keys, label values and selectors wherever a pod template has them."""

from collections.abc import Mapping
from typing import Any

from schemas import names
from schemas.faults import FORBIDDEN, NOTHING, REQUIRED
from schemas.job import Replica, mapping, sequence, text
from schemas.rules.base import Flaw, Flaws, Segments, pod_rule

KEY = "must have label keys such as tier or example.com/tier, the part after the '/' at most 63 characters"
VALUE = "must be a label value: letters, digits, '-', '_' and '.', at most 63 characters"
ANNOTATION_BYTES = 256 * 1024
BARE_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")
ONE_VALUE = ("Gt", "Lt")


@pod_rule(source="Kubernetes: syntax of labels")
def labels_are_well_formed(entry: Replica) -> Flaws:
    """Labels of the pods have the form that Kubernetes demands of label keys and values."""
    yield from label_flaws(mapping(entry.template.get("metadata")).get("labels"), ("metadata", "labels"))


@pod_rule(source="Kubernetes: syntax of annotations")
def annotations_are_well_formed(entry: Replica) -> Flaws:
    """Annotation keys are like label keys, in either case; all of them have at most 256 KiB."""
    written = mapping(mapping(entry.template.get("metadata")).get("annotations"))
    at = ("metadata", "annotations")
    for key in written:
        if not names.is_qualified_name(key.lower()):
            yield Flaw(at, KEY.replace("label", "annotation"), key)
    size = sum(len(key.encode()) + len(text(value).encode("utf-8", "replace")) for key, value in written.items())
    if size > ANNOTATION_BYTES:
        yield Flaw(at, f"must have at most {ANNOTATION_BYTES} bytes in all", size)


@pod_rule(source="Kubernetes: finalizers have qualified names")
def finalizers_are_named(entry: Replica) -> Flaws:
    """A finalizer is named domain/name."""
    for index, name in enumerate(sequence(mapping(entry.template.get("metadata")).get("finalizers"))):
        good = isinstance(name, str) and names.is_qualified_name(name) and ("/" in name or name in BARE_FINALIZERS)
        if isinstance(name, str) and not good:
            yield Flaw(("metadata", "finalizers", index), "must be a name such as example.com/keep", name)


@pod_rule(source="Kubernetes: syntax of labels", of=("nodeSelector",))
def node_selector_is_well_formed(entry: Replica) -> Flaws:
    """nodeSelector has label keys and label values."""
    yield from label_flaws(entry.pod_spec.get("nodeSelector"), ("spec", "nodeSelector"))


def label_flaws(labels: Any, at: Segments) -> Flaws:
    """What is wrong with a map of labels."""
    for key, value in mapping(labels).items():
        if not names.is_qualified_name(key):
            yield Flaw(at, KEY, key)
        elif isinstance(value, str) and not names.is_label_value(value):
            yield Flaw((*at, key), VALUE, value)


def selector_flaws(selector: Any, at: Segments) -> Flaws:
    """What is wrong with a label selector beyond the syntax of its single fields."""
    yield from label_flaws(mapping(selector).get("matchLabels"), (*at, "matchLabels"))
    for index, item in enumerate(sequence(mapping(selector).get("matchExpressions"))):
        yield from requirement_flaws(mapping(item), (*at, "matchExpressions", index))


def requirement_flaws(requirement: Mapping[str, Any], at: Segments) -> Flaws:
    """Whether the operator of a requirement has the values that it needs."""
    operator, values = requirement.get("operator"), sequence(requirement.get("values"))
    if operator in ("In", "NotIn") and not values:
        yield Flaw((*at, "values"), f"must hold a value: the operator is {operator}", NOTHING, REQUIRED)
    if operator in ("Exists", "DoesNotExist") and values:
        yield Flaw((*at, "values"), f"must be absent: the operator is {operator}", values, FORBIDDEN)
    if operator in ONE_VALUE and len(values) != 1:
        yield Flaw((*at, "values"), f"must hold one value: the operator is {operator}", values)
