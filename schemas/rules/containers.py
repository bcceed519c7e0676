"""Rules about a container's ports, variables, probes and handlers."""

from collections.abc import Mapping
from typing import Any

from schemas.faults import FORBIDDEN, NOTHING, REQUIRED
from schemas.job import Replica, integer, mapping, sequence, text
from schemas.rules.base import Flaw, Flaws, Segments, container_rule, distinct, one_of, pod_rule
from schemas.rules.fields import VARIABLE_FIELDS, field_flaws, resource_flaws

VARIABLE_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
GRACE_SECONDS = 30  # what Kubernetes fills in


@container_rule(source="Kubernetes: port names are unique within a container", of=("ports",))
def port_names_differ(container: Mapping[str, Any], _: Replica) -> Flaws:
    """No two ports of a container have the same name."""
    ports = sequence(container.get("ports"))
    if len(ports) > 1:
        found = ((("ports", n, "name"), text(mapping(port).get("name"))) for n, port in enumerate(ports))
        yield from distinct(found, "port name of the container")


@pod_rule(source="Kubernetes: host ports are taken once")
def host_ports_differ(entry: Replica) -> Flaws:
    """No two containers take the same host port; with hostNetwork it is the container's own port."""
    host = entry.pod_spec.get("hostNetwork") is True
    taken: list[tuple[Segments, Any]] = []
    for at, container in entry.all_containers:
        if "ports" not in container:
            continue
        ports = [(n, mapping(port)) for n, port in enumerate(sequence(container["ports"]))]
        ours = [((*at, "ports", n, "hostPort"), key) for n, port in ports if (key := _host_port(port, host=host))]
        if at[1] == "initContainers":
            yield from distinct(ours, "host port")
        else:
            taken += ours
            yield from _unlike_container_port(ports, (*at, "ports")) if host else ()
    yield from distinct(taken, "host port")


def _host_port(port: Mapping[str, Any], *, host: bool) -> str:
    number = port.get("hostPort") or (port.get("containerPort") if host else None)
    return f"{text(port.get('protocol')) or 'TCP'} {text(port.get('hostIP'))} {number}" if number else ""


def _unlike_container_port(ports: list[tuple[int, Mapping[str, Any]]], at: Segments) -> Flaws:
    for index, port in ports:
        if port.get("hostPort") not in (None, 0, port.get("containerPort")):
            must = "must be the containerPort: the pod uses the host's network"
            yield Flaw((*at, index, "hostPort"), must, port["hostPort"])


@container_rule(source="Kubernetes: env", of=("env",))
def variables_have_one_source(container: Mapping[str, Any], entry: Replica) -> Flaws:
    """A variable has a value or one source."""
    for index, item in enumerate(sequence(container.get("env"))):
        if isinstance(item, dict) and item.get("valueFrom") is not None:
            yield from _variable(item, mapping(item["valueFrom"]), ("env", index, "valueFrom"), entry)


def _variable(item: Mapping[str, Any], source: Mapping[str, Any], at: Segments, entry: Replica) -> Flaws:
    yield from one_of(source, VARIABLE_SOURCES, at)
    if text(item.get("value")):
        yield Flaw(at, "must be absent beside value", dict(source))
    yield from field_flaws(source.get("fieldRef"), (*at, "fieldRef"), VARIABLE_FIELDS)
    yield from resource_flaws(source.get("resourceFieldRef"), (*at, "resourceFieldRef"))
    if source.get("fileKeyRef") is not None:
        wanted = mapping(source["fileKeyRef"]).get("volumeName")
        volumes = [mapping(volume) for volume in sequence(entry.pod_spec.get("volumes"))]
        if not any(volume.get("name") == wanted and volume.get("emptyDir") is not None for volume in volumes):
            yield Flaw((*at, "fileKeyRef", "volumeName"), "must name an emptyDir volume of the pod", wanted)


@container_rule(source="Kubernetes: envFrom", of=("envFrom",))
def imported_variables_have_one_source(container: Mapping[str, Any], _: Replica) -> Flaws:
    """An entry of envFrom has a configMapRef or a secretRef."""
    for index, item in enumerate(sequence(container.get("envFrom"))):
        yield from one_of(mapping(item), ("configMapRef", "secretRef"), ("envFrom", index))


@container_rule(source="Kubernetes: probes", of=PROBES)
def probes_do_one_thing(container: Mapping[str, Any], _: Replica) -> Flaws:
    """A probe has exactly one handler; a readiness probe ends nothing, so it has no grace period."""
    for name in PROBES:
        if container.get(name) is not None:
            yield from one_of(mapping(container[name]), PROBE_HANDLERS, (name,))
    grace = mapping(container.get("readinessProbe")).get("terminationGracePeriodSeconds")
    if grace is not None:
        at = ("readinessProbe", "terminationGracePeriodSeconds")
        yield Flaw(at, "must be absent: this probe ends nothing", grace, FORBIDDEN)


@container_rule(source="Kubernetes: lifecycle hooks", of=("lifecycle",))
def hooks_do_one_thing(container: Mapping[str, Any], entry: Replica) -> Flaws:
    """A hook has exactly one handler; its sleep fits the pod's grace period."""
    hooks = mapping(container.get("lifecycle"))
    for name in ("postStart", "preStop"):
        if hooks.get(name) is not None:
            hook = mapping(hooks[name])
            yield from one_of(hook, HOOK_HANDLERS, ("lifecycle", name))
            yield from _sleep(hook, ("lifecycle", name), entry)


def _sleep(hook: Mapping[str, Any], at: Segments, entry: Replica) -> Flaws:
    seconds = integer(mapping(hook.get("sleep")).get("seconds"))
    grace = integer(entry.pod_spec.get("terminationGracePeriodSeconds"))
    most = max(GRACE_SECONDS if grace is None else grace, 1)
    if seconds is not None and not 0 <= seconds <= most:
        yield Flaw((*at, "sleep", "seconds"), f"must be from 0 to {most}, the pod's grace period", seconds)


@pod_rule(source="Kubernetes: init containers run to their end", of=("initContainers",))
def init_containers_are_not_probed(entry: Replica) -> Flaws:
    """An init container has probes and hooks only if it runs on as a sidecar: restartPolicy Always."""
    for at, container in entry.all_containers:
        if at[1] == "initContainers" and container.get("restartPolicy") != "Always":
            for name in (*PROBES, "lifecycle"):
                if container.get(name) is not None:
                    must = "must be absent unless the init container's restartPolicy is Always"
                    yield Flaw((*at, name), must, container[name], FORBIDDEN)


@container_rule(source="Kubernetes: restart rules of containers", of=("restartPolicyRules",))
def restart_rules_have_a_policy(container: Mapping[str, Any], _: Replica) -> Flaws:
    """A container with restartPolicyRules has a restartPolicy."""
    if sequence(container.get("restartPolicyRules")) and container.get("restartPolicy") is None:
        yield Flaw(("restartPolicy",), "must be set beside restartPolicyRules", NOTHING, REQUIRED)
