"""The shipped webhook configurations for a webhook that runs beside the API server, not in the cluster."""

import base64
from typing import Any

import yaml

from signalbox.local.paths import deploy_dir

CONFIGURATIONS_FILE = "base/webhook-configurations.yaml"
RULES_FILES = {
    "MutatingWebhookConfiguration": ("overlays/kubeflow/webhook-rules.yaml",),
    "ValidatingWebhookConfiguration": (
        "overlays/kubeflow/webhook-rules.yaml",
        "overlays/kubeflow/webhook-scale-rules.yaml",
    ),
}


def local_configurations(url_base: str, ca_pem: bytes) -> list[dict[str, Any]]:
    """Both configurations as shipped, but calling ``url_base`` (``https://127.0.0.1:9443``) and trusting ``ca_pem``.

    The path of each webhook stays; the rules are those of every kind, overlays included. OSError when the manifests
    are missing.
    """
    bundle = base64.b64encode(ca_pem).decode()
    configurations = list(yaml.safe_load_all((deploy_dir() / CONFIGURATIONS_FILE).read_bytes()))
    for configuration in configurations:
        configuration["webhooks"][0]["rules"] += _overlay_rules(configuration["kind"])
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": url_base.rstrip("/") + path, "caBundle": bundle}
    return configurations


def _overlay_rules(kind: str) -> list[dict[str, Any]]:
    """What the overlays' JSON patches append to the rules of the first webhook of a configuration of this kind."""
    patches = (yaml.safe_load((deploy_dir() / file).read_bytes()) for file in RULES_FILES[kind])
    return [operation["value"] for patch in patches for operation in patch]
