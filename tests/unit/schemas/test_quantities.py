"""Quantities are added exactly."""

import pytest

from schemas.quantities import plus, quantity


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (1, 1, "2"),
        ("1Gi", "1Gi", "2Gi"),
        ("1k", 1, "1001"),
        ("100m", "1u", "100001u"),
        ("0.5", "1n", "500000001n"),
        ("1500m", "500m", "2"),
        ("1e3", "1E", "1000000000000001000"),
        ("1Ki", "0", "1Ki"),
    ],
)
def test_sums(one, other, both):
    assert plus({"r": one}, {"r": other}) == {"r": both}


@pytest.mark.parametrize("value", ["", "1K", "NaN", " 1", "\uff11", "1e999", "0x1", "1_0", None, [], True])
def test_no_quantities(value):
    assert quantity(value) is None
