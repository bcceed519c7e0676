"""From OpenAPI to the pod template's schema."""

import pytest

from schemas import loader, podtemplate

PREFIX = podtemplate.PREFIX


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("", ""),
        ("One. Two.", "One."),
        ("No end", "No end"),
        ("Uses e.g. a name. More.", "Uses e.g. a name."),
        ("First\nline.\n\nPossible enum values: x.", "First line."),
    ],
)
def test_first_sentence(text, first):
    assert podtemplate.first_sentence(text) == first


def document(properties, **types):
    root = {"type": "object", "properties": properties}
    return {"info": {"version": "v1"}, "components": {"schemas": {podtemplate.ROOT: root, **types}}}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"type": "string", "default": ""}, {"type": "string"}),
        ({"description": "A. B.", "allOf": [{"$ref": PREFIX + "T"}]}, {"description": "A.", "type": "string"}),
        (
            {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
            {"x-kubernetes-int-or-string": True},
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "number"}]},
            {"x-kubernetes-int-or-string": True, "$ref": "common.json#/$defs/Quantity"},
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"},
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
        ),
        ({"type": "object"}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    ],
)
def test_properties(source, expected):
    schema = podtemplate.from_openapi(document({"x": source}, T={"type": "string", "description": "T."}))
    assert schema["properties"]["x"] == expected


def test_the_committed_schema_knows_pods():
    pod = loader.resolved("podtemplate.json")["properties"]["spec"]["properties"]
    assert pod["containers"]["x-kubernetes-list-type"] == "map"
    assert pod["containers"]["items"]["properties"]["env"]["x-kubernetes-list-type"] == "atomic"
    assert pod["containers"]["items"]["required"] == ["name"]
