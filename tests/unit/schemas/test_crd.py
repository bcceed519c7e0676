"""The generated CRDs: structural by construction, small enough for kubectl, and as committed."""

from pathlib import Path

import orjson
import pytest

from schemas import crd, kinds
from signalbox.manifests import generated

ROOT = Path(__file__).parents[3]
LARGEST = 200_000
KINDS = pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.kind)


def nodes(schema, at=""):
    yield at, schema
    for name, value in schema.get("properties", {}).items():
        yield from nodes(value, f"{at}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{at}.{key}")


@KINDS
def test_every_node_is_typed_and_holds_types_only(kind):
    allowed = {"description", "type", "format", "required", "properties", "items", "additionalProperties", "default"}
    for at, node in nodes(crd.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
        assert "type" in node or node.get("x-kubernetes-int-or-string"), at
        assert {key for key in node if not key.startswith("x-kubernetes-")} <= allowed, at


@KINDS
def test_only_the_protocol_has_a_default(kind):
    """The API server fills a CRD's defaults before any policy could."""
    schema = crd.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    defaulted = {at.rsplit(".", 1)[-1]: node["default"] for at, node in nodes(schema) if "default" in node}
    assert defaulted == {"protocol": "TCP"}


@KINDS
def test_names_columns_and_subresources(kind):
    spec = crd.crd(kind)["spec"]
    [version] = spec["versions"]
    assert (spec["names"]["categories"], spec["names"]["shortNames"]) == (["all"], list(kind.short_names))
    assert [column["name"] for column in version["additionalPrinterColumns"]] == [
        "State",
        "Replicas",
        "Restarts",
        "Age",
    ]
    assert version["subresources"]["status"] == {}
    assert version["subresources"]["scale"]["specReplicasPath"] == f".spec.{kind.spec_key}.Worker.replicas"


def test_committed_files_are_fresh():
    for path, content in generated():
        assert (ROOT / path).read_bytes() == content, f"{path} is stale: run make generate"


@KINDS
def test_crds_are_small(kind):
    """kubectl apply keeps a copy in an annotation, and annotations end at 256 KiB."""
    content = (ROOT / "deploy" / "crds" / f"{kind.kind.lower()}.yaml").read_bytes()
    assert len(content) <= LARGEST
    assert orjson.loads(content) == crd.crd(kind)


def test_policies_are_cluster_wide_and_have_no_default():
    found = crd.policy_crd()["spec"]
    assert (found["scope"], found["names"]["shortNames"]) == ("Cluster", ["tpol"])
    schema = found["versions"][0]["schema"]["openAPIV3Schema"]
    assert not [at for at, node in nodes(schema) if "default" in node]
    assert found["versions"][0]["subresources"] == {"status": {}}
