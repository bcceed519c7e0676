"""Policies in files: read for the offline commands and for a webhook without a cluster."""

from collections.abc import Iterable

import click

from policy.compile import API_VERSION, KIND, compiled
from policy.model import Invalid, Policy, PolicySet
from signalbox.findings import ERROR, Manifest, read_some
from signalbox.findings import Finding as Found


def read_policies(paths: Iterable[str]) -> PolicySet:
    """The policies in files and directories, other objects aside. A usage error names every fault, with its line."""
    reading = read_some(paths)
    faults: list[Found] = list(reading.unreadable)
    policies: dict[str, Policy] = {}
    for manifest in filter(is_policy, reading.manifests):
        found = compiled(manifest.value)
        if isinstance(found, Invalid):
            faults += faults_of(manifest, found)
        elif found.name in policies:
            faults.append(manifest.finding(ERROR, "metadata.name", f"must be the only policy {found.name}"))
        else:
            policies[found.name] = found
    if faults:
        raise click.UsageError("\n".join(map(str, faults)))
    return PolicySet(policies.values())


def is_policy(manifest: Manifest) -> bool:
    return (manifest.kind_name, manifest.api_version) == (KIND, API_VERSION)


def faults_of(manifest: Manifest, invalid: Invalid) -> list[Found]:
    return [manifest.finding(ERROR, fault.path, fault.message) for fault in invalid.faults]
