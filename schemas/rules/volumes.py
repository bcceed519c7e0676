"""Rules about a pod's volumes and what containers do with them."""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from schemas import loader, names
from schemas.faults import FORBIDDEN, NOTHING, REQUIRED
from schemas.job import Replica, mapping, sequence, text
from schemas.quantities import parse, quantity
from schemas.rules.base import Flaw, Flaws, Segments, container_rule, distinct, one_of, pod_rule
from schemas.rules.fields import FILE_FIELDS, field_flaws, resource_flaws
from schemas.rules.labels import label_flaws, selector_flaws

POD_SPEC = loader.document("podtemplate.json")["properties"]["spec"]["properties"]
SOURCES = frozenset(name for name in POD_SPEC["volumes"]["items"]["properties"] if name != "name")
PROJECTED = tuple(
    POD_SPEC["volumes"]["items"]["properties"]["projected"]["properties"]["sources"]["items"]["properties"]
)
PLAIN = 2  # fields: a name and a source, or a path: most volumes and mounts have no more
RESERVED = re.compile(r"(.*[.])?(kubernetes[.]io|k8s[.]io)", re.IGNORECASE)


@pod_rule(source="Kubernetes: volume names are unique within a pod", of=("volumes",))
def volume_names_differ(entry: Replica) -> Flaws:
    """No two volumes of a pod have the same name."""
    found = ((("spec", "volumes", index, "name"), text(item.get("name"))) for index, item in _volumes(entry))
    yield from distinct(found, "volume's name")


@pod_rule(source="Kubernetes: a volume has one source, emptyDir where none is written", of=("volumes",))
def volumes_have_one_source_at_most(entry: Replica) -> Flaws:
    """A volume has one source, such as configMap or persistentVolumeClaim."""
    for index, item in _volumes(entry):
        found = [name for name in item if name in SOURCES and item[name] is not None] if len(item) > PLAIN else []
        for name in found[1:]:
            yield Flaw(("spec", "volumes", index, name), f"must not be set beside {found[0]}", item[name])


@pod_rule(source="Kubernetes: volume sources", of=("volumes",))
def volume_sources_make_sense(entry: Replica) -> Flaws:
    """The fields of a volume's source go together."""
    for index, item in _volumes(entry):
        for name in item:
            if name in CHECKS and isinstance(item[name], Mapping):
                yield from CHECKS[name](item[name], ("spec", "volumes", index, name))


def _empty_dir(source: Mapping[str, Any], at: Segments) -> Flaws:
    size = quantity(source.get("sizeLimit"))
    if size is not None and (parse(size) or 0) < 0:
        yield Flaw((*at, "sizeLimit"), "must not be negative", size)


def _azure_disk(source: Mapping[str, Any], at: Segments) -> Flaws:
    prefix = "/subscriptions/" if source.get("kind") == "Managed" else "https://"
    if not text(source.get("diskURI")).startswith(prefix):
        yield Flaw((*at, "diskURI"), f"must start with {prefix}", source.get("diskURI", NOTHING))


def _fibre_channel(source: Mapping[str, Any], at: Segments) -> Flaws:
    targets, wwids = sequence(source.get("targetWWNs")), sequence(source.get("wwids"))
    if bool(targets) == bool(wwids):
        yield Flaw(at, "must have one of targetWWNs, wwids", dict(source), REQUIRED)
    elif targets and source.get("lun") is None:
        yield Flaw((*at, "lun"), "must be set beside targetWWNs", NOTHING, REQUIRED)


def _iscsi(source: Mapping[str, Any], at: Segments) -> Flaws:
    chap = source.get("chapAuthDiscovery") is True or source.get("chapAuthSession") is True
    if chap and source.get("secretRef") is None:
        yield Flaw((*at, "secretRef"), "must be set for CHAP", NOTHING, REQUIRED)


def _flocker(source: Mapping[str, Any], at: Segments) -> Flaws:
    if bool(text(source.get("datasetName"))) == bool(text(source.get("datasetUUID"))):
        yield Flaw(at, "must have one of datasetName, datasetUUID", dict(source), REQUIRED)


def _flex_volume(source: Mapping[str, Any], at: Segments) -> Flaws:
    for key in mapping(source.get("options")):
        if RESERVED.fullmatch(key.partition("/")[0]):
            yield Flaw((*at, "options"), "must not use the names of kubernetes.io and k8s.io", key)


def _downward(source: Mapping[str, Any], at: Segments) -> Flaws:
    for index, item in enumerate(sequence(source.get("items"))):
        file, below = mapping(item), (*at, "items", index)
        yield from one_of(file, ("fieldRef", "resourceFieldRef"), below)
        yield from field_flaws(file.get("fieldRef"), (*below, "fieldRef"), FILE_FIELDS)
        yield from resource_flaws(file.get("resourceFieldRef"), (*below, "resourceFieldRef"))


def _projected(source: Mapping[str, Any], at: Segments) -> Flaws:
    parts = [(index, mapping(item)) for index, item in enumerate(sequence(source.get("sources")))]
    for index, part in parts:
        found = [name for name in PROJECTED if part.get(name) is not None]
        for name in found[1:]:
            yield Flaw((*at, "sources", index, name), f"must not be set beside {found[0]}", part[name])
        yield from _downward(mapping(part.get("downwardAPI")), (*at, "sources", index, "downwardAPI"))
        if isinstance(part.get("clusterTrustBundle"), Mapping):
            yield from _trust_bundle(part["clusterTrustBundle"], (*at, "sources", index, "clusterTrustBundle"))
    paths = (found for index, part in parts for found in _projected_paths(part, (*at, "sources", index)))
    yield from distinct(paths, "path of the volume")


def _projected_paths(part: Mapping[str, Any], at: Segments) -> Iterator[tuple[Segments, str]]:
    """Where a part puts files. Kubernetes does not compare the path of a serviceAccountToken."""
    for name in ("secret", "configMap", "downwardAPI"):
        for index, item in enumerate(sequence(mapping(part.get(name)).get("items"))):
            yield (*at, name, "items", index, "path"), text(mapping(item).get("path"))
    yield (*at, "clusterTrustBundle", "path"), text(mapping(part.get("clusterTrustBundle")).get("path"))
    for name in ("credentialBundlePath", "keyPath", "certificateChainPath"):
        yield (*at, "podCertificate", name), text(mapping(part.get("podCertificate")).get(name))


def _trust_bundle(source: Mapping[str, Any], at: Segments) -> Flaws:
    yield from one_of(source, ("name", "signerName"), at)
    if source.get("name") is not None and source.get("labelSelector") is not None:
        yield Flaw((*at, "labelSelector"), "must be absent beside name", source["labelSelector"], FORBIDDEN)
    signer = source.get("signerName")
    domain, _, rest = text(signer).partition("/")
    named = names.is_dns_1123_subdomain(domain) and "." in domain and names.is_dns_1123_subdomain(rest)
    if signer is not None and not named:
        yield Flaw((*at, "signerName"), "must be a name such as example.com/signer", signer)
    elif signer is not None:
        yield from selector_flaws(source.get("labelSelector"), (*at, "labelSelector"))


def _ephemeral(source: Mapping[str, Any], at: Segments) -> Flaws:
    template = mapping(source.get("volumeClaimTemplate"))
    spec, below = mapping(template.get("spec")), (*at, "volumeClaimTemplate")
    metadata = mapping(template.get("metadata"))
    for name in metadata:
        if name not in ("labels", "annotations", "creationTimestamp") and metadata[name]:
            yield Flaw((*below, "metadata", name), "must be absent: only labels and annotations count", metadata[name])
    yield from label_flaws(metadata.get("labels"), (*below, "metadata", "labels"))
    yield from selector_flaws(spec.get("selector"), (*below, "spec", "selector"))
    modes = sequence(spec.get("accessModes"))
    if "ReadWriteOncePod" in modes and any(mode != "ReadWriteOncePod" for mode in modes):
        yield Flaw((*below, "spec", "accessModes"), "must not mix ReadWriteOncePod with other modes", modes)
    origin = mapping(spec.get("dataSource"))
    if origin and not text(origin.get("apiGroup")) and origin.get("kind") != "PersistentVolumeClaim":
        must = "must be PersistentVolumeClaim where there is no apiGroup"
        yield Flaw((*below, "spec", "dataSource", "kind"), must, origin.get("kind", NOTHING))
    storage = quantity(mapping(mapping(spec.get("resources")).get("requests")).get("storage"))
    if storage is not None and (parse(storage) or Fraction(0)) <= 0:
        yield Flaw((*below, "spec", "resources", "requests", "storage"), "must be more than 0", storage)


CHECKS = {
    "emptyDir": _empty_dir,
    "downwardAPI": _downward,
    "projected": _projected,
    "ephemeral": _ephemeral,
    "azureDisk": _azure_disk,
    "fc": _fibre_channel,
    "iscsi": _iscsi,
    "flocker": _flocker,
    "flexVolume": _flex_volume,
}


@container_rule(source="Kubernetes: volume mounts", of=("volumeMounts",))
def mounts_make_sense(container: Mapping[str, Any], _: Replica) -> Flaws:
    """No two mounts of a container have one path; subPath and subPathExpr exclude each other."""
    mounts = sequence(container.get("volumeMounts"))
    if len(mounts) > 1:
        found = ((("volumeMounts", n, "mountPath"), mapping(item).get("mountPath")) for n, item in enumerate(mounts))
        yield from distinct(found, "mountPath of the container")
    for index, item in enumerate(mounts):
        if len(mapping(item)) > PLAIN:
            yield from _mount(item, ("volumeMounts", index), container)


def _mount(mount: Mapping[str, Any], at: Segments, container: Mapping[str, Any]) -> Flaws:
    privileged = mapping(container.get("securityContext")).get("privileged") is True
    propagation = mount.get("mountPropagation")
    if text(mount.get("subPathExpr")) and text(mount.get("subPath")):
        yield Flaw((*at, "subPathExpr"), "must not be set beside subPath", mount["subPathExpr"])
    if propagation == "Bidirectional" and not privileged:
        yield Flaw((*at, "mountPropagation"), "must not be Bidirectional unless privileged", propagation, FORBIDDEN)
    if mount.get("recursiveReadOnly") in ("Enabled", "IfPossible"):
        if mount.get("readOnly") is not True:
            yield Flaw(
                (*at, "recursiveReadOnly"), "must be Disabled unless readOnly is true", mount["recursiveReadOnly"]
            )
        elif propagation not in (None, "None"):
            must = "must be Disabled unless mountPropagation is None"
            yield Flaw((*at, "recursiveReadOnly"), must, mount["recursiveReadOnly"])


@container_rule(source="Kubernetes: raw block volumes", of=("volumeDevices",))
def devices_make_sense(container: Mapping[str, Any], entry: Replica) -> Flaws:
    """volumeDevices name claims of the pod, each once, and nothing that is mounted too."""
    devices = [mapping(item) for item in sequence(container.get("volumeDevices"))]
    if not devices:
        return
    mounts = [mapping(item) for item in sequence(container.get("volumeMounts"))]
    claims = [
        item.get("name") for _, item in _volumes(entry) if item.get("persistentVolumeClaim") or item.get("ephemeral")
    ]
    for key, theirs in (("name", "name"), ("devicePath", "mountPath")):
        taken = [((key,), mount.get(theirs)) for mount in mounts]
        ours = [(("volumeDevices", n, key), device.get(key)) for n, device in enumerate(devices)]
        yield from (flaw for flaw in distinct([*taken, *ours], f"{key} of the container") if len(flaw.at) > 1)
    for index, device in enumerate(devices):
        if device.get("name") not in claims:
            must = "must name one of the pod's volumes that is a persistentVolumeClaim or ephemeral"
            yield Flaw(("volumeDevices", index, "name"), must, device.get("name", NOTHING))


def _volumes(entry: Replica) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, item in enumerate(sequence(entry.pod_spec.get("volumes"))):
        if isinstance(item, Mapping):
            yield index, item
