"""The store only moves forward, whatever the order in which it hears of things."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube.store import Change, Store


@pytest.mark.parametrize(("second", "news"), [(1, False), (2, False), (3, True), (10, True)])
def test_versions_are_compared_as_integers(make_object, second, news):
    store = Store()
    assert store.observe(make_object(version=2))
    assert store.observe(make_object(version=second)) is news
    assert store.get("ns", "a") == make_object(version=max(2, second))


def test_swap_answers_what_was_held(make_object):
    store = Store()
    first, second = make_object(version=1), make_object(version=2)
    assert store.swap(first) == Change(first, None)
    assert store.swap(second) == Change(second, first)
    assert store.swap(first) is None


def test_managed_fields_are_left_out_and_the_argument_is_untouched(make_object):
    store = Store()
    obj = make_object(managedFields=[{"manager": "kubectl"}])
    store.observe(obj)
    assert store.get("ns", "a") == make_object()
    assert "managedFields" in obj["metadata"]


def test_owner_index_follows_changes(make_object):
    store = Store()
    for name in ("b", "a"):
        store.observe(make_object(name, owner="job"))
    assert [obj["metadata"]["name"] for obj in store.owned_by("job")] == ["a", "b"]
    store.observe(make_object("a", 2, owner="other"))
    store.forget(make_object("b"), resource_version=3)
    assert store.owned_by("job") == []
    assert store.owned_by("other") == [make_object("a", 2, owner="other")]


def test_owner_that_is_not_the_controller_owns_nothing(make_object):
    store = Store()
    store.observe(make_object(owner="job"))
    assert store.owned_by("someone") == []


def test_forget_answers_the_last_state(make_object):
    store = Store()
    store.observe(make_object(version=2))
    assert store.forget(make_object(version=5), resource_version="5") == make_object(version=2)
    assert store.forget(make_object(version=5), resource_version="5") is None
    assert len(store) == 0


def test_late_answer_of_a_writer_does_not_bring_a_deleted_object_back(make_object):
    store = Store()
    store.observe(make_object(version=2))
    store.forget(make_object(version=5), resource_version=5)
    assert not store.observe(make_object(version=4))
    assert store.observe(make_object(version=6, uid="recreated"))


def test_deletions_told_in_the_wrong_order(make_object):
    store = Store()
    for version in (5, 2):
        store.forget(make_object(version=version), resource_version=version)
    assert not store.observe(make_object(version=4))


def test_recreated_object_survives_the_deletion_of_its_predecessor(make_object):
    store = Store()
    store.observe(make_object(version=7, uid="recreated"))
    assert store.forget(make_object(version=5), resource_version=5) is None
    assert store.get("ns", "a") == make_object(version=7, uid="recreated")


def test_relist(make_object):
    store = Store()
    for name, version in (("same", 1), ("old", 2), ("gone", 3), ("ours", 21)):
        store.observe(make_object(name, version))
    diff = store.replace_all([make_object("same", 1), make_object("old", 12), make_object("new", 15)], "20")
    assert diff.changed == [
        Change(make_object("old", 12), make_object("old", 2)),
        Change(make_object("new", 15), None),
    ]
    assert diff.gone == [make_object("gone", 3)]
    assert sorted(obj["metadata"]["name"] for obj in store.values()) == ["new", "old", "ours", "same"]


def test_answer_older_than_the_list_that_lacks_it_is_stale(make_object):
    store = Store()
    store.replace_all([], 20)
    assert not store.observe(make_object(version=19))
    assert store.observe(make_object(version=21))


def test_tombstones_are_bounded(make_object):
    store = Store(tombstones=2)
    for name, version in (("a", 10), ("b", 11), ("c", 12)):
        store.forget(make_object(name, version), resource_version=version)
    assert store.observe(make_object("a", 9))  # forgotten
    assert not store.observe(make_object("b", 9))


NAMES = ("a", "b", "c")


@st.composite
def histories(draw):
    """States of a collection by version, and messages about them in any order, with repetitions."""
    state, states = {}, [{}]
    for version, name in enumerate(draw(st.lists(st.sampled_from(NAMES), max_size=12)), start=1):
        state = dict(state)
        if name in state and draw(st.booleans()):
            del state[name]
        else:
            state[name] = version
        states.append(state)
    versions = st.tuples(st.integers(0, len(states) - 1), st.sampled_from(("list", *NAMES)))
    return states, draw(st.lists(versions, max_size=30))


def tell(store, states, make_object, version, about):
    """One message: the list as of a version, or what happened to one object in it; the names it says something of."""
    if about == "list":
        store.replace_all([make_object(name, of) for name, of in states[version].items()], version)
        return NAMES
    if about in states[version]:
        store.observe(make_object(about, states[version][about]))
    elif version and about in states[version - 1]:
        store.forget(make_object(about, version), resource_version=version)
    else:
        return ()
    return (about,)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories())
def test_store_holds_each_object_as_of_the_latest_message_about_it(make_object, history):
    states, messages = history
    store, latest = Store(), dict.fromkeys(NAMES, 0)
    for version, about in messages:
        for name in tell(store, states, make_object, version, about):
            # an observed object speaks for the version it was written in, a list or deletion for its own
            spoken = states[version].get(name, version) if about != "list" else version
            latest[name] = max(latest[name], spoken)
        held = {obj["metadata"]["name"]: int(obj["metadata"]["resourceVersion"]) for obj in store.values()}
        expected = {name: states[latest[name]][name] for name in NAMES if name in states[latest[name]]}
        assert held == expected
