"""Rules about the pod templates, as far as their schema cannot say them."""

from collections.abc import Iterator, Mapping
from typing import Any

from schemas.faults import NOTHING, REQUIRED, Fault
from schemas.job import Job, mapping, sequence, text
from schemas.rules.base import rule

CONTAINERS = ("template", "spec", "containers")


@rule(source="kubeflow/trainer#1135")
def has_containers(job: Job) -> Iterator[Fault]:
    """Each replica type needs at least one container."""
    for entry in job.replicas:
        if isinstance(entry.raw, Mapping) and not entry.containers:
            got = entry.pod_spec.get("containers", NOTHING)
            yield Fault(job.replica_path(entry, *CONTAINERS), "must hold at least one container", got, REQUIRED)


@rule(source="Kubernetes: image is required once a pod is made")
def images_are_named(job: Job) -> Iterator[Fault]:
    """Every container needs an image."""
    for entry in job.replicas:
        for at, container in entry.all_containers:
            if container.get("image") in (None, ""):
                got = container.get("image", NOTHING)
                yield Fault(job.replica_path(entry, "template", *at, "image"), "must be set to an image", got, REQUIRED)


@rule(source="Kubernetes: container names are unique DNS labels within a pod")
def container_names_differ(job: Job) -> Iterator[Fault]:
    """No two containers of a pod, init containers included, have the same name."""
    for entry in job.replicas:
        seen: set[str] = set()
        for at, container in entry.all_containers:
            name = text(container.get("name"))
            if name in seen:
                yield Fault(
                    job.replica_path(entry, "template", *at, "name"),
                    "must differ from every other container's name",
                    name,
                )
            seen |= {name} - {""}


@rule(source="kubeflow/trainer#563")
def main_container_is_there(job: Job) -> Iterator[Fault]:
    """The container that trains must be found: by the kind's name, or because it is the only one."""
    for entry in job.replicas:
        usable = entry.containers and all(isinstance(item, Mapping) for item in entry.containers)
        if usable and entry.main_container is None:
            must = f"must hold a container named {job.kind.container}, or just one container"
            got = [text(item.get("name")) for item in entry.containers]
            yield Fault(job.replica_path(entry, *CONTAINERS), must, got)


@rule(source="kubeflow/mpi-operator#224")
def mounts_name_volumes(job: Job) -> Iterator[Fault]:
    """Each volumeMount must name a volume of its pod: such a pod would be refused for ever."""
    for entry in job.replicas:
        volumes = {mapping(item).get("name") for item in sequence(entry.pod_spec.get("volumes"))}
        for at, container in entry.all_containers:
            for index, mount in enumerate(sequence(container.get("volumeMounts"))):
                name = mapping(mount).get("name")
                if isinstance(name, str) and name not in volumes:
                    path = job.replica_path(entry, "template", *at, "volumeMounts", index, "name")
                    yield Fault(path, "must name one of the pod's volumes" + _known(volumes), name)


def _known(volumes: set[Any]) -> str:
    known = sorted(name for name in volumes if isinstance(name, str))
    return f", one of {', '.join(known)}" if known else ", but it has none"
