"""Gang scheduling: the PodGroup of a job, and what tells the scheduler that a pod belongs to it. Pure.

All pods of a job are created right away: a gang whose pods wait for each other never starts
(kubeflow/pytorch-operator#186).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from controller import owned
from schemas import demand, quantities
from schemas.job import Job, Replica, integer, mapping, text

JSON = dict[str, Any]

VOLCANO_GROUP = "scheduling.k8s.io/group-name"
VOLCANO_TASK = "volcano.sh/task-spec"
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One row: where its PodGroup lives, what it calls the fields, and how a pod names its group."""

    group: str
    version: str
    scheduler_name: str
    """What pods ask for when the template does not name a scheduler."""
    fields: Mapping[str, str]
    """Fields of ``schedulingPolicy`` by what the PodGroup's spec calls them."""
    marks: Callable[[str, str], JSON]
    """Labels and annotations of a pod, from the job's name and the replica type."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"


SCHEDULERS: dict[str, Scheduler] = {
    "volcano": Scheduler(
        "scheduling.volcano.sh",
        "v1beta1",
        "volcano",
        {"queue": "queue", "priorityClassName": "priorityClass"},
        lambda job, replica_type: {"annotations": {VOLCANO_GROUP: job, VOLCANO_TASK: replica_type.lower()}},
    ),
    # its Helm chart gives the second scheduler this name
    "scheduler-plugins": Scheduler(
        "scheduling.x-k8s.io",
        "v1alpha1",
        "scheduler-plugins-scheduler",
        {"scheduleTimeoutSeconds": "scheduleTimeoutSeconds"},
        lambda job, replica_type: {"labels": {COSCHEDULING_GROUP: job}},  # noqa: ARG005
    ),
}


def pod_group(job: Job, scheduler: Scheduler, specs: Mapping[str, Mapping[str, Any]]) -> JSON:
    """The job's one PodGroup, from the pod specs by type; what the user did not say is left to the scheduler."""
    policy = mapping(job.run_policy.get("schedulingPolicy"))
    said = {field: policy.get(ours) for field, ours in scheduler.fields.items()}
    spec = {
        "minMember": min_member(job),
        "minResources": dict(mapping(policy.get("minResources"))) or min_resources(job, specs),
        **{field: value for field, value in said.items() if value not in (None, "")},
    }
    return {
        "apiVersion": scheduler.api_version,
        "kind": "PodGroup",
        "metadata": owned.metadata(job, job.name, owned.job_labels(job)),
        "spec": spec,
    }


def min_member(job: Job) -> int:
    """How many pods must fit at once: never more than there will be."""
    policy = mapping(job.run_policy.get("schedulingPolicy"))
    wanted = integer(policy.get("minAvailable"))
    return min(job.total_replicas if wanted is None else wanted, job.total_replicas)


def min_resources(job: Job, specs: Mapping[str, Mapping[str, Any]]) -> quantities.Amounts:
    """The requests of the first ``min_member`` pods, the leader's first, then by type: an exact sum."""
    left = min_member(job)
    total: quantities.Amounts = {}
    for entry in job.replicas:
        count = min(max(entry.count, 0), left)
        left -= count
        if count:
            total = quantities.plus(total, quantities.times(demand.effective(specs[entry.type], "requests"), count))
    return total


def joined(pod: JSON, job: Job, entry: Replica, scheduler: Scheduler, scheduler_name: str = "") -> JSON:
    """The pod as a member of its job's gang; a scheduler that the template names stays."""
    metadata = pod["metadata"]
    marks = scheduler.marks(job.name, entry.type)
    marked = {key: {**metadata[key], **values} for key, values in marks.items()}
    spec = dict(pod["spec"])
    if not text(spec.get("schedulerName")):
        spec["schedulerName"] = scheduler_name or scheduler.scheduler_name
    return {**pod, "metadata": {**metadata, **marked}, "spec": spec}
