"""What is allowed but probably not meant: shown by kubectl as a warning, never refused."""

from collections import Counter
from collections.abc import Iterator

from schemas import env, names
from schemas.faults import NOTHING, Fault
from schemas.job import Job, mapping, sequence, text
from schemas.loader import job_schema
from schemas.rules.base import rule

LONGEST_WARNING = 120


@rule(source="kubeflow/trainer#1241")
def moved_fields(job: Job) -> Iterator[Fault]:
    """Run policy fields have moved to spec.runPolicy; in their old place they have no effect."""
    for name, schema in job_schema(job.kind)["properties"]["spec"]["properties"].items():
        if "x-signalbox-moved-to" in schema and job.spec.get(name) is not None:
            yield Fault(job.path(name), f"has no effect: use {schema['x-signalbox-moved-to']}", job.spec[name])


@rule(source="kubeflow/trainer#2200")
def template_restart_policy(job: Job) -> Iterator[Fault]:
    """The replica's restartPolicy wins over the one in its pod template."""
    for entry in job.replicas:
        written = text(entry.pod_spec.get("restartPolicy"))
        if written and written != entry.restart_policy:
            path = job.replica_path(entry, "template", "spec", "restartPolicy")
            yield Fault(path, f"is not used: the replica's {entry.restart_policy} wins", written)


@rule(source="kubeflow/common#200")
def template_labels(job: Job) -> Iterator[Fault]:
    """Labels that Signalbox sets on the pods win over the template's."""
    for entry in job.replicas:
        ours = names.replica_labels(job.kind, job.name, entry.type, 0).keys() | {
            names.JOB_UID,
            names.role_label(job.kind),
        }
        for key in sorted(ours & mapping(mapping(entry.template.get("metadata")).get("labels")).keys()):
            yield Fault(
                job.replica_path(entry, "template", "metadata", "labels", key), "is replaced by Signalbox's", NOTHING
            )


@rule(source="kubernetes/kubernetes#122126")
def repeated_env(job: Job) -> Iterator[Fault]:
    """Of two env entries with one name, the last wins."""
    for entry in job.replicas:
        for index, container in enumerate(entry.containers):
            counts = Counter(text(mapping(item).get("name")) for item in sequence(mapping(container).get("env")))
            for name in sorted(name for name, count in counts.items() if name and count > 1):
                path = job.replica_path(entry, "template", "spec", "containers", index, "env")
                yield Fault(path, f"holds {name} more than once: the last wins", NOTHING)


@rule(source="helm/helm#31529")
def users_env_wins(job: Job) -> Iterator[Fault]:
    """A variable that the user sets is not set by Signalbox."""
    for entry in job.replicas:
        for index in env.reached(entry):
            written = sequence(mapping(entry.containers[index]).get("env"))
            theirs = {name for item in written if (name := text(mapping(item).get("name"))).startswith(env.PREFIXES)}
            for name in sorted(theirs & env.variable_names(job, entry.type)) if theirs else ():
                path = job.replica_path(entry, "template", "spec", "containers", index, "env")
                yield Fault(path, f"sets {name} itself: Signalbox's value is not added", NOTHING)


@rule(source="intelligent-machine-learning/dlrover: chaos test examples")
def always_on_decider(job: Job) -> Iterator[Fault]:
    """Under Always a container that ends well is started again, so a type that decides success never succeeds."""
    for entry in job.deciding:
        if entry.restart_policy == "Always":
            yield Fault(
                job.replica_path(entry, "restartPolicy"), "restarts even a success: the job may never end", "Always"
            )


@rule(source="batch/v1 podFailurePolicy needs restartPolicy Never")
def exit_code_rules_in_place(job: Job) -> Iterator[Fault]:
    """Exit code rules see failed pods; a container that the kubelet restarts in place never becomes one."""
    if not sequence(job.run_policy.get("exitCodeRules")):
        return
    for entry in job.replicas:
        if entry.restart_policy in ("Always", "OnFailure"):
            path = job.replica_path(entry, "restartPolicy")
            yield Fault(path, "restarts in place: exitCodeRules do not see it", entry.restart_policy)


def as_text(fault: Fault) -> str:
    """A warning as kubectl shows it, at most 120 characters; a long path loses its middle."""
    line = f"{fault.path}: {fault.must}"
    if len(line) <= LONGEST_WARNING:
        return line
    room = LONGEST_WARNING - len(fault.must) - 5
    return f"{fault.path[: room // 2]}…{fault.path[-(room - room // 2) :]}: {fault.must}"[:LONGEST_WARNING]
