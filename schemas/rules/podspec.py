"""Rules about what a pod has once: DNS, host namespaces, security."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

from schemas import names
from schemas.faults import FORBIDDEN, NOTHING, REQUIRED
from schemas.job import Replica, mapping, sequence, text
from schemas.rules.base import Flaw, Flaws, Segments, container_rule, distinct, pod_rule

SEARCH = re.compile(r"[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?([.][a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*[.]?|[.]", re.ASCII)
SEARCH_LIST = 2048  # characters, libc's limit


@pod_rule(source="Kubernetes: ephemeral containers are added to running pods only", of=("ephemeralContainers",))
def no_ephemeral_containers(entry: Replica) -> Flaws:
    """A template has no ephemeralContainers: no pod can be created with them."""
    found = sequence(entry.pod_spec.get("ephemeralContainers"))
    if found:
        yield Flaw(("spec", "ephemeralContainers"), "must be absent from a template", len(found), FORBIDDEN)


@pod_rule(source="Kubernetes: pod DNS", of=("dnsPolicy", "dnsConfig"))
def dns_can_be_set_up(entry: Replica) -> Flaws:
    """Name servers are addresses; dnsPolicy None needs one; search paths are DNS names."""
    config = mapping(entry.pod_spec.get("dnsConfig"))
    servers, searches = sequence(config.get("nameservers")), sequence(config.get("searches"))
    at: Segments = ("spec", "dnsConfig")
    if entry.pod_spec.get("dnsPolicy") == "None" and not servers:
        yield Flaw((*at, "nameservers"), "must hold one at least: dnsPolicy is None", NOTHING, REQUIRED)
    for index, server in enumerate(servers):
        if isinstance(server, str) and not is_address(server):
            yield Flaw((*at, "nameservers", index), "must be an IP address", server)
    for index, search in enumerate(searches):
        if isinstance(search, str) and (len(search) > names.LONGEST_SUBDOMAIN or not SEARCH.fullmatch(search)):
            yield Flaw((*at, "searches", index), "must be a DNS name in lower case", search)
    if len(" ".join(map(str, searches))) > SEARCH_LIST:
        yield Flaw((*at, "searches"), f"must have at most {SEARCH_LIST} characters in all", len(searches))


@pod_rule(source="Kubernetes: host aliases", of=("hostAliases",))
def host_aliases_have_addresses(entry: Replica) -> Flaws:
    """A host alias has an IP address."""
    for index, item in enumerate(sequence(entry.pod_spec.get("hostAliases"))):
        address = mapping(item).get("ip")
        if isinstance(address, str) and not is_address(address):
            yield Flaw(("spec", "hostAliases", index, "ip"), "must be an IP address", address)


def is_address(value: str) -> bool:
    """Whether ``value`` is an IPv4 or IPv6 address without a zone."""
    try:
        return ipaddress.ip_address(value) is not None and "%" not in value
    except ValueError:
        return False


@pod_rule(
    source="Kubernetes: host namespaces and user namespaces",
    of=("hostUsers", "hostnameOverride", "shareProcessNamespace"),
)
def namespaces_go_together(entry: Replica) -> Flaws:
    """Own users exclude the host's processes and IPC; an overriding host name excludes the host's network."""
    spec = entry.pod_spec
    for name in ("hostPID", "hostIPC") if spec.get("hostUsers") is False else ():
        if spec.get(name) is True:
            yield Flaw(("spec", name), "must be absent where hostUsers is false", value_of(spec, name), FORBIDDEN)
    for name in ("hostNetwork", "setHostnameAsFQDN") if spec.get("hostnameOverride") is not None else ():
        if spec.get(name) is True:
            yield Flaw(("spec", "hostnameOverride"), f"must be absent where {name} is true", spec["hostnameOverride"])
    if spec.get("shareProcessNamespace") is True and spec.get("hostPID") is True:
        yield Flaw(("spec", "shareProcessNamespace"), "must be false where hostPID is true", value_of(spec, "hostPID"))


def value_of(spec: Mapping[str, Any], name: str) -> Any:
    return spec.get(name, NOTHING)


@pod_rule(source="Kubernetes: pod security context", of=("securityContext",))
def pod_security_makes_sense(entry: Replica) -> Flaws:
    """Sysctls differ; a Localhost profile is named, any other is not."""
    context = mapping(entry.pod_spec.get("securityContext"))
    at: Segments = ("spec", "securityContext")
    sysctls = enumerate(sequence(context.get("sysctls")))
    yield from distinct((((*at, "sysctls", n, "name"), mapping(item).get("name")) for n, item in sysctls), "sysctl")
    yield from _profiles(context, at)


@container_rule(source="Kubernetes: security context", of=("securityContext",))
def security_makes_sense(container: Mapping[str, Any], entry: Replica) -> Flaws:
    """A privileged container may escalate; only pods with users of their own may unmask /proc."""
    context = mapping(container.get("securityContext"))
    if not context:
        return
    at: Segments = ("securityContext",)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged") is True:
            yield Flaw((*at, "allowPrivilegeEscalation"), "must not be false for a privileged container", got=False)
        elif "CAP_SYS_ADMIN" in sequence(mapping(context.get("capabilities")).get("add")):
            yield Flaw((*at, "allowPrivilegeEscalation"), "must not be false beside CAP_SYS_ADMIN", got=False)
    if context.get("procMount") == "Unmasked" and entry.pod_spec.get("hostUsers") is not False:
        yield Flaw((*at, "procMount"), "must be Default unless hostUsers is false", context["procMount"])
    yield from _profiles(context, at)


def _profiles(context: Mapping[str, Any], at: Segments) -> Flaws:
    for name in ("seccompProfile", "appArmorProfile"):
        profile = mapping(context.get(name))
        file = profile.get("localhostProfile")
        if profile.get("type") == "Localhost" and file is None:
            yield Flaw((*at, name, "localhostProfile"), "must be set: the type is Localhost", NOTHING, REQUIRED)
        elif profile and profile.get("type") != "Localhost" and file is not None:
            yield Flaw((*at, name, "localhostProfile"), "must be absent unless the type is Localhost", text(file))
