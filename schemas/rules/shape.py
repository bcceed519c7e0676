"""Rules about the job's name and its map of replica types."""

from collections.abc import Iterator

from schemas import names
from schemas.faults import INVALID, NOTHING, REQUIRED, Fault
from schemas.job import MOST_REPLICAS, Job, Replica, text
from schemas.kinds import known_type
from schemas.rules.base import rule

DNS_1035 = (
    f"must be a DNS-1035 label, {names.DNS_1035_LABEL.pattern}: a letter first, then lower-case letters, digits, '-'"
)
GENERATED_SUFFIX = 5  # characters the API server adds to generateName


@rule(source="kubeflow/trainer#1745")
def name_is_a_service_name(job: Job) -> Iterator[Fault]:
    """The name must be a DNS-1035 label: Services are named after the job, and they allow no other."""
    if job.name:
        if not names.is_dns_1035_label(job.name):
            yield Fault("metadata.name", f"{DNS_1035}, at most {names.LONGEST_LABEL} characters", got=job.name)
    elif prefix := text(job.metadata.get("generateName")):
        if not names.DNS_1035_LABEL.fullmatch(prefix + "0"):
            yield Fault("metadata.generateName", DNS_1035, got=prefix)
    else:
        yield Fault("metadata.name", "must be set", got=NOTHING, reason=REQUIRED)


@rule(source="kubeflow/trainer#1101")
def child_names_fit(job: Job) -> Iterator[Fault]:
    """The longest child name, ``<job>-<type>-<index>``, must fit the 63 characters of a label."""
    last = (names.child(job.kind, "", entry.type, max(entry.count - 1, 0)) for entry in job.replicas)
    longest = max(map(len, last), default=0)
    room = names.LONGEST_LABEL - longest
    prefix = text(job.metadata.get("generateName"))
    if job.name and room < len(job.name) <= names.LONGEST_LABEL:
        yield Fault("metadata.name", f"must be at most {room} characters, so that pod names fit 63", got=job.name)
    if not job.name and len(prefix) + GENERATED_SUFFIX > room:
        most = room - GENERATED_SUFFIX
        yield Fault("metadata.generateName", f"must be at most {most} characters, so that pod names fit 63", got=prefix)


@rule(source="kubeflow/arena#291")
def has_types(job: Job) -> Iterator[Fault]:
    """A job must have at least one replica type."""
    if not job.replica_map:
        must = "must hold at least one replica type" + _one_of(job)
        yield Fault(job.path(job.kind.spec_key), must, got=job.spec.get(job.kind.spec_key, NOTHING), reason=REQUIRED)


@rule(source="kubeflow/trainer#25")
def types_are_known(job: Job) -> Iterator[Fault]:
    """Only the kind's own replica types run; a kind with an open set takes any name that fits a pod's name."""
    for entry in job.replicas:
        if job.kind.types and known_type(job.kind, entry.key) is None:
            yield Fault(job.replica_path(entry), "must be a known replica type" + _one_of(job), got=entry.key)
        elif not names.is_dns_1123_label(entry.type.lower()):
            yield Fault(job.replica_path(entry), "must be a DNS label when written in lower case", got=entry.key)


@rule(source="kubedl-io/kubedl#30")
def types_differ(job: Job) -> Iterator[Fault]:
    """Two keys must not be the same replica type in different spelling: their pods would have the same names."""
    seen: dict[str, str] = {}
    for key in job.replica_map:
        first = seen.setdefault(key.lower(), key)
        if first != key:
            yield Fault(job.path(job.kind.spec_key, key), f"must not be a second spelling of {first}", got=key)


@rule(source="kubeflow/trainer#25")
def one_leader(job: Job) -> Iterator[Fault]:
    """Two types that lead by their name leave open who decides, unless a successPolicy says it."""
    if len(job.leader_types) > 1 and not job.success_policy:
        got = sorted(job.leader_types)
        yield Fault(job.path(job.kind.spec_key), f"must hold at most one of {', '.join(got)}", got=got)


@rule(source="kubeflow/trainer#1188")
def someone_decides(job: Job) -> Iterator[Fault]:
    """Some replica must decide success, else the job could never end."""
    types = {entry.type for entry in job.replicas if known_type(job.kind, entry.key) and entry.count > 0}
    if not types or not job.kind.deciders or job.leader_types or types & set(job.kind.deciders):
        return
    first, *others = dict.fromkeys([*job.kind.leaders, *job.kind.deciders])
    why = "nothing else decides success"
    if others:
        must = f"must hold a replica of {' or '.join([first, *others])}: {why}"
        yield Fault(job.path(job.kind.spec_key), must, got=sorted(types))
    else:
        yield Fault(job.path(job.kind.spec_key, first), f"must be set: {why}", NOTHING, REQUIRED)


@rule(source="kubeflow/mpi-operator#833")
def leader_has_one_replica(job: Job) -> Iterator[Fault]:
    """A type that leads has exactly one replica."""
    for entry in job.replicas:
        if _leads(job, entry) and entry.count != 1:
            yield Fault(job.replica_path(entry, "replicas"), "must be 1: the leader is one pod", got=entry.count)


def _leads(job: Job, entry: Replica) -> bool:
    by_name = entry.type.lower() in {name.lower() for name in job.kind.leaders}
    return by_name or entry.type == job.leader_type


@rule(source="volcano-sh/volcano#2176")
def total_is_positive(job: Job) -> Iterator[Fault]:
    """A job of zero pods would neither run nor end."""
    if job.replicas and job.total_replicas == 0 and all(entry.count == 0 for entry in job.replicas):
        yield Fault(job.path(job.kind.spec_key), "must have at least 1 replica in all", got=0, reason=INVALID)


@rule(source="kubernetes/kubernetes#27997: nobody means to start tens of thousands of pods")
def total_is_bounded(job: Job) -> Iterator[Fault]:
    """A job has at most 10000 replicas in all."""
    largest = max(job.replicas, key=lambda entry: entry.count, default=None)
    if largest is not None and job.total_replicas > MOST_REPLICAS:
        room = max(MOST_REPLICAS - (job.total_replicas - largest.count), 0)
        must = f"must be at most {room}: a job has at most {MOST_REPLICAS} replicas in all"
        yield Fault(job.replica_path(largest, "replicas"), must, largest.count)


def _one_of(job: Job) -> str:
    types = ", ".join(row.name for row in job.kind.types)
    return f", one of {types}" if types else ""
