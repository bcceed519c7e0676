"""What pods ask for, as exact numbers: the larger of requests and limits, as the scheduler adds containers up."""

from fractions import Fraction
from typing import Any

from schemas.demand import effective
from schemas.job import Job, Replica, mapping
from schemas.quantities import larger, parse, quantity

Amounts = dict[str, Fraction]


def of_job(job: Job) -> Amounts:
    """All pods of a job together."""
    total: Amounts = {}
    for entry in job.replicas:
        for name, amount in of_pod(entry).items():
            total[name] = total.get(name, Fraction(0)) + amount * max(entry.count, 0)
    return total


def of_pod(entry: Replica) -> Amounts:
    """One pod of a type, its overhead included."""
    asked = larger(effective(entry.pod_spec, "requests"), effective(entry.pod_spec, "limits"))
    total = {name: exact(amount) or Fraction(0) for name, amount in asked.items()}
    for name, value in mapping(entry.pod_spec.get("overhead")).items():
        total[name] = total.get(name, Fraction(0)) + (exact(value) or Fraction(0))
    return total


def exact(value: Any) -> Fraction | None:
    """The amount that a JSON value writes, None when it is no quantity."""
    found = quantity(value)
    return None if found is None else parse(found)
