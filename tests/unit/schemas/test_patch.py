"""The patch between two documents applies strictly and says nothing too much."""

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.patch import diff

LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.text(st.sampled_from("a/~"), max_size=3)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.sampled_from("ab/~"), max_size=2), inner),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("old", "new", "operations"),
    [
        ({}, {"a": {"b": 1}}, [{"op": "add", "path": "/a", "value": {"b": 1}}]),
        ({"a": None}, {"a": {}}, [{"op": "replace", "path": "/a", "value": {}}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a": 1}, {"a": 1.0}, [{"op": "replace", "path": "/a", "value": 1.0}]),
        (
            {"a/b": 1, "c~d": 1},
            {"c~d": 2},
            [{"op": "remove", "path": "/a~1b"}, {"op": "replace", "path": "/c~0d", "value": 2}],
        ),
        ({"a": [1, 2]}, {"a": [1, 3]}, [{"op": "replace", "path": "/a/1", "value": 3}]),
        ({"a": [1]}, {"a": [1, 3]}, [{"op": "replace", "path": "/a", "value": [1, 3]}]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1}]}, []),
    ],
)
def test_operations(old, new, operations):
    assert diff(old, new) == operations


@given(DOCUMENTS, DOCUMENTS)
def test_the_patch_turns_one_into_the_other(old, new):
    applied = jsonpatch.JsonPatch(diff(old, new)).apply(old) if diff(old, new) else old
    assert applied == new
    assert diff(applied, new) == []
