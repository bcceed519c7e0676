"""Names, labels and annotations of what Signalbox creates: every literal key of the wire stands here once."""

import re
from collections.abc import Mapping

from schemas.kinds import JobKind, known_type

LONGEST_LABEL = 63
LONGEST_SUBDOMAIN = 253
LONGEST_KEY = LONGEST_SUBDOMAIN + 1 + LONGEST_LABEL

# RFC 1123 and RFC 1035 labels as Kubernetes reads them; ASCII only, used with fullmatch.
DNS_1123_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
DNS_1035_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
DNS_1123_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

JOB_UID = "signalbox.dev/job-uid"
ROUND = "signalbox.dev/round"
ATTEMPT = "signalbox.dev/attempt"

OWN = "signalbox.dev/"
KUBEFLOW = "training.kubeflow.org/"


def child(kind: JobKind, job: str, replica_type: str, index: int) -> str:
    """The name of a replica's pod, and of its Service where it has one."""
    known = known_type(kind, replica_type)
    name = f"{job}-{replica_type.lower()}"
    return name if known and not known.indexed else f"{name}-{index}"


def prefix(kind: JobKind) -> str:
    """What the keys of the kind's label scheme begin with."""
    return KUBEFLOW if kind.labels == "kubeflow" else OWN


def type_labels(kind: JobKind, job: str, replica_type: str) -> dict[str, str]:
    """The labels that all pods of one type share, in the kind's label scheme: also the selector of the type."""
    if kind.labels == "kubeflow":
        return {
            KUBEFLOW + "job-name": job,
            KUBEFLOW + "operator-name": f"{kind.kind.lower()}-controller",
            KUBEFLOW + "replica-type": replica_type.lower(),
        }
    return {
        OWN + "group-name": kind.group,
        OWN + "job-name": job,
        OWN + "replica-type": replica_type.lower(),
    }


def replica_labels(kind: JobKind, job: str, replica_type: str, index: int) -> dict[str, str]:
    """The labels of one replica: also the selector of its Service."""
    return {**type_labels(kind, job, replica_type), prefix(kind) + "replica-index": str(index)}


def role_label(kind: JobKind) -> str:
    """The label that marks the replica the others look for."""
    return prefix(kind) + "job-role"


def selector(labels: Mapping[str, str]) -> str:
    """Equality selector text, keys in order."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def is_dns_1035_label(value: str) -> bool:
    return len(value) <= LONGEST_LABEL and DNS_1035_LABEL.fullmatch(value) is not None


def is_dns_1123_label(value: str) -> bool:
    return len(value) <= LONGEST_LABEL and DNS_1123_LABEL.fullmatch(value) is not None


def is_dns_1123_subdomain(value: str) -> bool:
    return len(value) <= LONGEST_SUBDOMAIN and DNS_1123_SUBDOMAIN.fullmatch(value) is not None


def is_qualified_name(value: str) -> bool:
    """Whether ``value`` can be a label key: ``tier``, or with a DNS name before it, ``example.com/tier``."""
    domain, slash, name = value.rpartition("/")
    return LABEL_NAME.fullmatch(name) is not None and (not slash or is_dns_1123_subdomain(domain))


def is_label_value(value: str) -> bool:
    return value == "" or LABEL_NAME.fullmatch(value) is not None
