"""The manifests of an installation as one wants it: rendered by kustomize, then changed by pure functions."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from schemas.kinds import KINDS, JobKind
from signalbox.local.paths import deploy_dir

JSON = dict[str, Any]

NAMESPACE = "signalbox-system"
OUR_NAMESPACE = re.compile(rf"(?<![-\w]){NAMESPACE}(?![-\w])")
IMAGE_NAME = "signalbox"
HISTORY_SECRET = "signalbox-history"  # noqa: S105 - its name
PROXY = "proxy-header"
PROXY_FLAG = f"--auth={PROXY}"
OVERLAYS = {"kubeflow.org": "overlays/kubeflow"}
OWN = tuple(kind for kind in KINDS if kind.group not in OVERLAYS)
STRONG = "overlays/mpi"
"""The one above, and the rights that kinds with children of their own sort need."""
CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
ROLES = ("Role", "ClusterRole")


class RenderError(Exception):
    """kubectl could not render the manifests; the message is what it said."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an installation is to look like."""

    kinds: tuple[JobKind, ...]
    namespace: str = NAMESPACE
    image: str = ""
    gang_scheduler: str = ""
    history_secret: str = HISTORY_SECRET
    history_page: bool = False
    history_volume: bool = False
    history_auth: str = "token"
    cert_manager: bool = False
    monitoring: bool = False


def manifests(wanted: Wanted) -> list[JSON]:
    """All objects, in an order in which they can be applied. Raises RenderError."""
    return list(adapted(rendered(*parts(wanted)), wanted))


def parts(wanted: Wanted) -> tuple[list[str], list[str]]:
    """Directories below deploy/: what is rendered, and the components it is rendered with."""
    strong = any(kind.extras for kind in wanted.kinds)
    bases = [overlay for group, overlay in OVERLAYS.items() if any(kind.group == group for kind in wanted.kinds)]
    bases = [STRONG] if strong else bases
    extra = [f"overlays/gang-{wanted.gang_scheduler}"] if wanted.gang_scheduler else []
    extra = [each for each in extra if (deploy_dir() / each).is_dir()]
    monitoring = ["overlays/monitoring"] if wanted.monitoring else []
    return (bases or ["."]) + extra + monitoring, components(wanted)


def components(wanted: Wanted) -> list[str]:
    """The volume comes with the page."""
    history = "components/sqlite" if wanted.history_volume else "components/history" if wanted.history_page else ""
    return [each for each in (history, "components/cert-manager" if wanted.cert_manager else "") if each]


def rendered(bases: Iterable[str], components: Iterable[str] = ()) -> list[JSON]:
    """What ``kubectl kustomize`` makes of directories below deploy/. Raises RenderError."""
    with tempfile.TemporaryDirectory() as directory:
        own = Path(directory).resolve()
        content = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [os.path.relpath(deploy_dir() / base, own) for base in bases],
            "components": [os.path.relpath(deploy_dir() / component, own) for component in components],
        }
        (own / "kustomization.yaml").write_text(yaml.safe_dump(content))
        done = subprocess.run(["kubectl", "kustomize", str(own)], check=False, capture_output=True, text=True)
    if done.returncode:
        raise RenderError(done.stderr.strip())
    return list(yaml.load_all(done.stdout, Loader=yaml.CSafeLoader))


def adapted(objects: Iterable[JSON], wanted: Wanted) -> Iterator[JSON]:
    """The objects for these kinds, in this namespace, with this image and these arguments."""
    for each in objects:
        if not _is_wanted(each, wanted.kinds):
            continue
        _narrow(each, wanted.kinds)
        for pod in _pod_specs(each):
            _fill(pod, wanted)
        yield _moved(each, wanted.namespace) if wanted.namespace != NAMESPACE else each


def _is_wanted(each: Mapping[str, Any], kinds: tuple[JobKind, ...]) -> bool:
    if each["kind"] != "CustomResourceDefinition":
        return True
    spec = each["spec"]
    served = {(kind.group, kind.plural) for kind in KINDS}
    mine = (spec["group"], spec["names"]["plural"])
    return mine not in served or mine in {(kind.group, kind.plural) for kind in kinds}


def _narrow(each: JSON, kinds: tuple[JobKind, ...]) -> None:
    """Roles and webhook rules without the kinds that are not wanted; a rule that is left empty goes."""
    lists = [each] if each["kind"] in ROLES else each["webhooks"] if each["kind"] in CONFIGURATIONS else []
    for holder in lists:
        for rule in holder["rules"]:
            rule["resources"] = [found for found in rule["resources"] if _is_ours(rule["apiGroups"], found, kinds)]
            if rule["resources"] == ["customresourcedefinitions"]:
                rule["resourceNames"] = [name for name in rule["resourceNames"] if _is_kept(name, kinds)]
                rule["resources"] *= bool(rule["resourceNames"])
        holder["rules"] = [rule for rule in holder["rules"] if rule["resources"]]


def _is_ours(groups: list[str], resource: str, kinds: tuple[JobKind, ...]) -> bool:
    plural = resource.partition("/")[0]
    if not any(kind.group in groups and kind.plural == plural for kind in KINDS):
        return True
    return any(kind.group in groups and kind.plural == plural for kind in kinds)


def _is_kept(crd: str, kinds: tuple[JobKind, ...]) -> bool:
    plural, _, group = crd.partition(".")
    return _is_ours([group], plural, kinds)


def _pod_specs(each: JSON) -> Iterator[JSON]:
    if each["kind"] == "Deployment":
        yield each["spec"]["template"]["spec"]
    elif each["kind"] == "CronJob":
        yield each["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def _fill(pod: JSON, wanted: Wanted) -> None:
    for container in pod["containers"]:
        if wanted.image and container["image"].partition(":")[0] == IMAGE_NAME:
            container["image"] = wanted.image
        if wanted.gang_scheduler and container["args"][0] == "controller":
            container["args"].append(f"--gang-scheduler={wanted.gang_scheduler}")
        if wanted.history_auth == PROXY and container["args"][:2] == ["history", "serve"]:
            container["args"] = [PROXY_FLAG if each.startswith("--token-file=") else each for each in container["args"]]
    for volume in pod.get("volumes", ()):
        if volume.get("secret", {}).get("secretName") == HISTORY_SECRET:
            volume["secret"]["secretName"] = wanted.history_secret


def _moved(value: Any, namespace: str) -> Any:
    """The value with our namespace's name replaced, alone or as a part between dots or slashes."""
    if isinstance(value, dict):
        return {key: _moved(item, namespace) for key, item in value.items()}
    if isinstance(value, list):
        return [_moved(item, namespace) for item in value]
    return OUR_NAMESPACE.sub(namespace, value) if isinstance(value, str) else value
