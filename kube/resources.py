"""Where resources live in the API server's URL space."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

PLAIN = re.compile(r"[-._~A-Za-z0-9]+")
"""What needs no quoting, as nearly every name."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One served resource, e.g. ``Resource("apps", "v1", "deployments", "Deployment")``; the core group is ``""``."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """``apiVersion`` of its objects: ``v1`` or ``group/version``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path of the collection, one object or its subresource; no namespace means all of them.

        Every segment is quoted, so a name can never address another resource. ValueError for a path that does not
        exist: a namespaced object without its namespace, a namespace for a cluster-wide resource, a subresource
        without a name, or a name that is empty.
        """
        self._check(namespace, name, subresource)
        segments = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace is not None:
            segments += ["namespaces", namespace]
        segments += [self.plural, *(part for part in (name, subresource) if part is not None)]
        return "/" + "/".join(_segment(part) for part in segments)

    def _check(self, namespace: str | None, name: str | None, subresource: str | None) -> None:
        if namespace is not None and not self.namespaced:
            raise ValueError(f"{self.plural} are not namespaced")
        if name is not None and self.namespaced and namespace is None:
            raise ValueError(f"{self.plural} {name!r} needs a namespace")
        if subresource is not None and name is None:
            raise ValueError(f"{self.plural}/{subresource} needs a name")


def _segment(text: str) -> str:
    if text in ("", ".", ".."):  # would be dropped or resolved away by the URL parser
        raise ValueError(f"a path segment must not be {text!r}")
    return text if PLAIN.fullmatch(text) else quote(text, safe="")


PODS = Resource("", "v1", "pods", "Pod")
SERVICES = Resource("", "v1", "services", "Service")
EVENTS = Resource("", "v1", "events", "Event")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
SECRETS = Resource("", "v1", "secrets", "Secret")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
TRAINING_POLICIES = Resource("signalbox.dev", "v1", "trainingpolicies", "TrainingPolicy", namespaced=False)
MUTATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
OWN_CONFIGURATIONS: Mapping[str, Resource] = {
    "signalbox-mutating": MUTATING_WEBHOOKS,
    "signalbox-validating": VALIDATING_WEBHOOKS,
}
"""Our own webhook configurations, by name."""
