"""Is it ready? Small HTTP questions to servers on this machine."""

import json
import ssl
import urllib.error
import urllib.request
from typing import Any


def answers_ok(url: str, *, token: str = "", ca_pem: bytes | None = None) -> bool:
    """Whether ``url`` answers 200 within two seconds. Without ``ca_pem``, whoever answers is not verified."""
    try:
        return _get(url, token, ca_pem) is not None
    except (OSError, urllib.error.HTTPError):
        return False


def document(url: str) -> dict[str, Any]:
    """The JSON object at ``url``; empty when it cannot be had."""
    try:
        found = json.loads(_get(url, "", None))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def nodes_ready(server: str, *, token: str, ca_pem: bytes, wanted: int) -> bool:
    """Whether at least ``wanted`` nodes are Ready and carry no taint, so that the scheduler uses them."""
    try:
        nodes = json.loads(_get(f"{server}/api/v1/nodes", token, ca_pem))["items"]
    except (OSError, ValueError):
        return False
    return sum(map(_is_ready, nodes)) >= wanted


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    return not node["spec"].get("taints") and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _get(url: str, token: str, ca_pem: bytes | None) -> bytes:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})  # noqa: S310
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=_context(ca_pem))
    )
    with opener.open(request, timeout=2) as answer:
        body: bytes = answer.read()
    return body


def _context(ca_pem: bytes | None) -> ssl.SSLContext:
    if ca_pem is None:
        return ssl._create_unverified_context()  # noqa: S323  # nosec B323
    return ssl.create_default_context(cadata=ca_pem.decode())
