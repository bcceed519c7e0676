"""Rules about run policy, success policy and elasticity."""

import re
from collections.abc import Iterator
from typing import Any

from schemas import names
from schemas.faults import NOTHING, REQUIRED, Fault
from schemas.job import Job, integer, mapping, sequence, text
from schemas.rules.base import rule

RUN_POLICY = "runPolicy"
PROCESSES = re.compile(r"auto|cpu|gpu|[1-9][0-9]{0,5}", re.ASCII)
PATH_PART = re.compile(r"[A-Za-z0-9/_.~!$&'()*+,;=:@%-]+", re.ASCII)
LONGEST_MANAGER = 63


@rule(source="kubeflow/trainer#1188")
def success_type_is_there(job: Job) -> Iterator[Fault]:
    """successPolicy must name a type of this job; Leader needs one."""
    wanted = job.success_policy.get("type")
    if isinstance(wanted, str) and job.replica(wanted) is None:
        types = ", ".join(entry.type for entry in job.replicas)
        yield Fault(job.path("successPolicy", "type"), f"must be one of the job's types: {types}", wanted)
    if job.success_policy.get("policy") == "Leader" and wanted in (None, ""):
        yield Fault(job.path("successPolicy", "type"), "must name the leading type", NOTHING, REQUIRED)


@rule(source="volcano-sh/volcano: example invalid_jobs minAvailable")
def gang_fits(job: Job) -> Iterator[Fault]:
    """minAvailable must not exceed the job's replicas: such a gang can never start."""
    wanted, total = job.min_available, job.total_replicas
    if wanted is not None and wanted > total:
        path = job.path(RUN_POLICY, "schedulingPolicy", "minAvailable")
        yield Fault(path, f"must be at most {total}, the sum of all replicas", wanted)


@rule(source="Kubernetes: queues are objects, and objects have DNS names")
def queue_is_a_dns_name(job: Job) -> Iterator[Fault]:
    """The scheduler's queue must be a DNS name."""
    queue = text(mapping(job.run_policy.get("schedulingPolicy")).get("queue"))
    if queue and (len(queue) > 253 or not names.DNS_1123_SUBDOMAIN.fullmatch(queue)):
        yield Fault(job.path(RUN_POLICY, "schedulingPolicy", "queue"), "must be a DNS name in lower case", queue)


@rule(source="kubeflow/trainer#2203")
def manager_is_a_path(job: Job) -> Iterator[Fault]:
    """managedBy must be a domain-prefixed path, such as example.com/controller."""
    manager = text(job.run_policy.get("managedBy"))
    domain, _, rest = manager.partition("/")
    good = len(manager) <= LONGEST_MANAGER and names.DNS_1123_SUBDOMAIN.fullmatch(domain) and PATH_PART.fullmatch(rest)
    if manager and not good:
        must = f"must be a domain-prefixed path such as example.com/controller, at most {LONGEST_MANAGER} characters"
        yield Fault(job.path(RUN_POLICY, "managedBy"), must, manager)


@rule(source="batch/v1 podFailurePolicy: a rule without a condition is a mistake")
def exit_code_rules_match_something(job: Job) -> Iterator[Fault]:
    """An exit code rule needs codes or a range that can match, and types of this job."""
    for index, item in enumerate(sequence(job.run_policy.get("exitCodeRules"))):
        rule_of = mapping(item)
        at = (RUN_POLICY, "exitCodeRules", index)
        if rule_of and not sequence(rule_of.get("codes")) and not text(rule_of.get("range")):
            yield Fault(job.path(*at), "must have codes or a range", dict(rule_of), REQUIRED)
        yield from _range_faults(job, at, text(rule_of.get("range")))
        for position, name in enumerate(sequence(rule_of.get("replicaTypes"))):
            if isinstance(name, str) and job.replica(name) is None:
                types = ", ".join(entry.type for entry in job.replicas)
                yield Fault(job.path(*at, "replicaTypes", position), f"must be one of the job's types: {types}", name)


def _range_faults(job: Job, at: tuple[str | int, ...], written: str) -> Iterator[Fault]:
    found = re.fullmatch(r"([0-9]{1,3})-([0-9]{1,3})", written, re.ASCII)
    if found and not 1 <= int(found[1]) <= int(found[2]) <= 255:
        yield Fault(job.path(*at, "range"), "must run upward within 1-255", written)


@rule(source="kubeflow/trainer#2278")
def elastic_needs_workers(job: Job) -> Iterator[Fault]:
    """Only Workers scale, so an elasticPolicy needs some."""
    if job.elastic_policy is not None and job.replica("Worker") is None:
        yield Fault(job.path(job.kind.spec_key, "Worker"), "must be set: elasticPolicy scales it", NOTHING, REQUIRED)


@rule(source="kubedl-io/kubedl#267")
def elastic_range_holds_replicas(job: Job) -> Iterator[Fault]:
    """minReplicas ≤ Worker.replicas ≤ maxReplicas."""
    policy, worker = job.elastic_policy, job.replica("Worker")
    if policy is None or worker is None:
        return
    low, high = integer(policy.get("minReplicas")), integer(policy.get("maxReplicas"))
    if low is not None and high is not None and low > high:
        yield Fault(job.path("elasticPolicy", "minReplicas"), f"must be at most maxReplicas, {high}", low)
    elif (low is not None and worker.count < low) or (high is not None and worker.count > high):
        must = f"must be within elasticPolicy's minReplicas {low} and maxReplicas {high}"
        yield Fault(job.replica_path(worker, "replicas"), must, worker.count)


@rule(source="torchrun: --nproc-per-node")
def processes_per_node_are_countable(job: Job) -> Iterator[Fault]:
    """nprocPerNode is auto, cpu, gpu or a positive number."""
    written: Any = job.spec.get("nprocPerNode")
    if isinstance(written, str) and not PROCESSES.fullmatch(written):
        yield Fault(job.path("nprocPerNode"), "must be auto, cpu, gpu or a number ≥ 1", written)
