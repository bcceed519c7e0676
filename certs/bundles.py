"""The caBundle of both webhook configurations: what is published there, and putting it right."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from certs.secrets import Kube, Object, found
from kube.resources import OWN_CONFIGURATIONS

CONFIGURATIONS: Mapping[str, str] = {name: resource.path(name=name) for name, resource in OWN_CONFIGURATIONS.items()}
"""Path in the API of each webhook configuration that needs the bundle, by name."""
INJECTORS = ("cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret")
"""With one of these annotations the bundle is cert-manager's, and we keep our hands off."""


@dataclass(frozen=True, slots=True)
class Published:
    """One webhook configuration."""

    name: str
    version: str
    """resourceVersion."""
    stamp: str
    """Changes with every change of the configuration, and of nothing else."""
    bundles: tuple[bytes, ...]
    """PEM, one for each of its webhooks; empty where there is none."""
    is_ours: bool
    servers: tuple[Object, ...] = ()
    """Whom it calls: each webhook's clientConfig."""

    def lacks(self, bundle: bytes) -> bool:
        """Whether some webhook that is ours to configure has another bundle."""
        return self.is_ours and any(held != bundle for held in self.bundles)


def read_published(kube: Kube) -> dict[str, Published | None]:
    """Both configurations by name; None where there is none."""
    seen = {name: found(kube, path) for name, path in CONFIGURATIONS.items()}
    return {name: None if each is None else published(each) for name, each in seen.items()}


def published(configuration: Object) -> Published:
    metadata = configuration["metadata"]
    clients = tuple(webhook["clientConfig"] for webhook in configuration.get("webhooks") or ())
    return Published(
        name=metadata["name"],
        version=metadata["resourceVersion"],
        stamp=f"{metadata.get('uid', '')}:{metadata.get('generation', 0)}",
        bundles=tuple(base64.b64decode(client.get("caBundle") or "") for client in clients),
        is_ours=not set(INJECTORS) & set(metadata.get("annotations") or {}),
        servers=clients,
    )


def publish(kube: Kube, seen: Published, bundle: bytes) -> None:
    """Put ``bundle`` into every webhook of the configuration that has another one.

    Conflict when the configuration is no longer as it was seen: its webhooks are addressed by their position.
    """
    text = base64.b64encode(bundle).decode()
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": seen.version}
    fields = [
        f"/webhooks/{position}/clientConfig/caBundle" for position, held in enumerate(seen.bundles) if held != bundle
    ]
    body = [version, *({"op": "add", "path": field, "value": text} for field in fields)]
    kube.patch(CONFIGURATIONS[seen.name], body, kind="json")


def inject(kube: Kube, bundle: bytes) -> list[str]:
    """Put ``bundle`` (PEM) into both configurations; the names of those that had to be changed."""
    wrong = [each for each in read_published(kube).values() if each is not None and each.lacks(bundle)]
    for each in wrong:
        publish(kube, each, bundle)
    return [each.name for each in wrong]


def mark(bundle: bytes, seen: Mapping[str, Published | None]) -> str:
    """A short name for this bundle in just these versions of the configurations."""
    stamps = "".join(f"{name}={each.stamp if each else None} " for name, each in sorted(seen.items()))
    return hashlib.sha256(stamps.encode() + bundle).hexdigest()[:16]


def published_bundles(kube: Kube) -> dict[str, list[bytes] | None]:
    """For each webhook configuration the caBundle of each of its webhooks; None when there is no such configuration."""
    return {name: None if each is None else list(each.bundles) for name, each in read_published(kube).items()}
