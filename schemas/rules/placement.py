"""Rules about where pods may run: tolerations, affinity, spread."""

import re
from collections.abc import Mapping
from typing import Any

from schemas import names
from schemas.faults import FORBIDDEN, NOTHING, REQUIRED
from schemas.job import Replica, mapping, sequence, text
from schemas.rules.base import Flaw, Flaws, Segments, distinct, pod_rule
from schemas.rules.labels import VALUE, requirement_flaws, selector_flaws

REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED_TERMS = "preferredDuringSchedulingIgnoredDuringExecution"
DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


@pod_rule(source="Kubernetes: tolerations", of=("tolerations",))
def tolerations_make_sense(entry: Replica) -> Flaws:
    """A toleration's fields must go together: Exists has no value, only Exists may have no key, only NoExecute ends."""
    for index, item in enumerate(sequence(entry.pod_spec.get("tolerations"))):
        yield from _toleration(mapping(item), ("spec", "tolerations", index))


def _toleration(item: Mapping[str, Any], at: Segments) -> Flaws:
    operator, value = text(item.get("operator")) or "Equal", text(item.get("value"))
    if not text(item.get("key")) and operator != "Exists":
        yield Flaw((*at, "operator"), "must be Exists where there is no key", operator)
    elif operator == "Exists" and value:
        yield Flaw((*at, "value"), "must be absent: the operator is Exists", value)
    elif operator == "Equal" and not names.is_label_value(value):
        yield Flaw((*at, "value"), VALUE, value)
    elif operator in ("Gt", "Lt"):
        yield Flaw((*at, "operator"), "must be Equal or Exists: comparisons are off in Kubernetes by default", operator)
    if item.get("tolerationSeconds") is not None and item.get("effect") != "NoExecute":
        yield Flaw((*at, "effect"), "must be NoExecute where tolerationSeconds is set", item.get("effect", NOTHING))


@pod_rule(source="Kubernetes: node affinity", of=("affinity",))
def node_affinity_can_be_read(entry: Replica) -> Flaws:
    """Every operator of a node affinity has as many values as it needs."""
    affinity = mapping(mapping(entry.pod_spec.get("affinity")).get("nodeAffinity"))
    if not affinity:
        return
    at: Segments = ("spec", "affinity", "nodeAffinity")
    required = mapping(affinity.get(REQUIRED_TERMS))
    if affinity.get(REQUIRED_TERMS) is not None and not sequence(required.get("nodeSelectorTerms")):
        must = "must hold at least 1 item"
        yield Flaw((*at, REQUIRED_TERMS, "nodeSelectorTerms"), must, required.get("nodeSelectorTerms"), REQUIRED)
    for index, term in enumerate(sequence(required.get("nodeSelectorTerms"))):
        yield from _node_term(mapping(term), (*at, REQUIRED_TERMS, "nodeSelectorTerms", index))
    for index, term in enumerate(sequence(affinity.get(PREFERRED_TERMS))):
        yield from _node_term(mapping(mapping(term).get("preference")), (*at, PREFERRED_TERMS, index, "preference"))


def _node_term(term: Mapping[str, Any], at: Segments) -> Flaws:
    for name in ("matchExpressions", "matchFields"):
        for index, item in enumerate(sequence(term.get(name))):
            yield from requirement_flaws(mapping(item), (*at, name, index))


@pod_rule(source="Kubernetes: pod affinity", of=("affinity",))
def pod_affinity_can_be_read(entry: Replica) -> Flaws:
    """The selectors of pod affinity and anti-affinity are well formed."""
    for name in ("podAffinity", "podAntiAffinity"):
        affinity = mapping(mapping(entry.pod_spec.get("affinity")).get(name))
        at: Segments = ("spec", "affinity", name)
        for index, term in enumerate(sequence(affinity.get(REQUIRED_TERMS))):
            yield from _pod_term(mapping(term), (*at, REQUIRED_TERMS, index), _labels(entry))
        for index, term in enumerate(sequence(affinity.get(PREFERRED_TERMS))):
            below = (*at, PREFERRED_TERMS, index, "podAffinityTerm")
            yield from _pod_term(mapping(mapping(term).get("podAffinityTerm")), below, _labels(entry))


def _labels(entry: Replica) -> Mapping[str, Any]:
    return mapping(mapping(entry.template.get("metadata")).get("labels"))


def _pod_term(term: Mapping[str, Any], at: Segments, labels: Mapping[str, Any]) -> Flaws:
    for name in ("labelSelector", "namespaceSelector"):
        yield from selector_flaws(term.get(name), (*at, name))
    yield from _label_keys(term, at, labels)


def _label_keys(term: Mapping[str, Any], at: Segments, labels: Mapping[str, Any]) -> Flaws:
    """Keys that the pod has as labels are added to the selector: none of them may be in it already."""
    matched, mismatched = (sequence(term.get(name)) for name in ("matchLabelKeys", "mismatchLabelKeys"))
    for name, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and term.get("labelSelector") is None:
            yield Flaw((*at, name), "must be absent without a labelSelector", keys, FORBIDDEN)
            return
    selected = _selected_keys(mapping(term.get("labelSelector")))
    for index, key in enumerate(matched):
        if key in mismatched:
            yield Flaw((*at, "matchLabelKeys", index), "must not be in mismatchLabelKeys too", key)
        elif key in selected and key in labels:
            yield Flaw((*at, "matchLabelKeys", index), "must not be selected by labelSelector too", key)


def _selected_keys(selector: Mapping[str, Any]) -> list[Any]:
    written = [mapping(item).get("key") for item in sequence(selector.get("matchExpressions"))]
    return [*mapping(selector.get("matchLabels")), *written]


@pod_rule(source="Kubernetes: topology spread constraints", of=("topologySpreadConstraints",))
def spread_can_be_kept(entry: Replica) -> Flaws:
    """Spread constraints differ, have well-formed selectors, and minDomains only with DoNotSchedule."""
    constraints = [mapping(item) for item in sequence(entry.pod_spec.get("topologySpreadConstraints"))]
    at: Segments = ("spec", "topologySpreadConstraints")
    keys = [f"{item.get('topologyKey')} {item.get('whenUnsatisfiable')}" for item in constraints]
    yield from distinct((((*at, index), key) for index, key in enumerate(keys)), "constraint")
    for index, item in enumerate(constraints):
        if item.get("minDomains") is not None and item.get("whenUnsatisfiable") != "DoNotSchedule":
            must = "must be absent unless whenUnsatisfiable is DoNotSchedule"
            yield Flaw((*at, index, "minDomains"), must, item["minDomains"])
        yield from selector_flaws(item.get("labelSelector"), (*at, index, "labelSelector"))
        yield from _label_keys(item, (*at, index), _labels(entry))


@pod_rule(source="Kubernetes: scheduling gates", of=("schedulingGates",))
def gates_differ(entry: Replica) -> Flaws:
    """Scheduling gates differ, and a pod that has one names no node."""
    gates = sequence(entry.pod_spec.get("schedulingGates"))
    at: Segments = ("spec", "schedulingGates")
    yield from distinct((((*at, index, "name"), mapping(gate).get("name")) for index, gate in enumerate(gates)), "gate")
    if gates and text(entry.pod_spec.get("nodeName")):
        yield Flaw(("spec", "nodeName"), "must be absent beside schedulingGates", entry.pod_spec["nodeName"], FORBIDDEN)
