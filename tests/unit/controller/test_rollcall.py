"""What exists is told list by list; a list that cannot be had whole says nothing about what is gone."""

import threading

import pytest

from controller.rollcall import AGAIN_SECONDS, RollCall
from kube import errors
from kube.raw import Listing
from schemas import kinds
from schemas.records import NoRecorder

KINDS = (kinds.TRAINING_JOB, kinds.PYTORCH_JOB)


class Recorder(NoRecorder):
    keeps = True

    def __init__(self):
        self.told = []

    def live(self, found):
        self.told.append(found)

    def by_sort(self):
        return {found.kind or found.what: found for found in self.told}


class Server:
    """Two pages of each collection; the second one fails for ``failing``."""

    def __init__(self):
        self.failing, self.error = "", None
        self.asked = []

    def pages(self, path, *, label_selector, field_selector):
        self.asked.append((path, label_selector))
        yield Listing([{"metadata": {"uid": "a"}}], "7")
        if self.failing and self.failing in path:
            raise self.error
        yield Listing([{"metadata": {"uid": "b"}}], "9")


class Made:
    def __init__(self, namespace="", recorder=None):
        self.server, self.recorder, self.seconds = Server(), recorder or Recorder(), 0.0
        self.stop = threading.Event()
        self.roll = RollCall(self.server, KINDS, namespace, self.recorder, lambda: self.seconds)

    def call(self):
        self.roll.call(self.stop)


def test_each_sort_is_told_once_after_each_take_over():
    made = Made()
    made.call()
    assert made.recorder.told == []
    for times in (1, 2):
        made.roll.begin()
        made.call()
        made.call()
        assert len(made.recorder.told) == 3 * times
    found = made.recorder.by_sort()
    assert {sort: (one.what, one.uids) for sort, one in found.items()} == {
        "TrainingJob": ("job", {"a", "b"}),
        "PyTorchJob": ("job", {"a", "b"}),
        "pod": ("pod", {"a", "b"}),
    }


def test_what_is_newer_than_the_first_page_may_be_missing():
    """When the server has forgotten the version of the first page, later pages show a later one."""
    made = Made()
    made.roll.begin()
    made.call()
    assert {found.version for found in made.recorder.told} == {"7"}


@pytest.mark.parametrize("sort", ["TrainingJob", "PyTorchJob", "pod"])
@pytest.mark.parametrize(
    "error",
    [errors.NotFound("no such CRD"), errors.Forbidden("may not list"), errors.Gone("expired"), errors.KubeError("?")],
)
def test_what_cannot_be_listed_whole_is_not_told(sort, error):
    """A missing CRD, missing rights, an API server that ends half way: tried again, and told once it can be."""
    made = Made()
    made.server.failing, made.server.error = f"/{sort.lower()}s", error
    made.roll.begin()
    made.call()
    assert sort not in made.recorder.by_sort()
    assert len(made.recorder.told) == 2

    made.server.failing = ""
    made.call()
    assert len(made.recorder.told) == 2, "not before a while has passed"
    made.seconds += AGAIN_SECONDS
    made.call()
    assert len(made.recorder.told) == 3
    assert made.recorder.by_sort()[sort].uids == {"a", "b"}


def test_one_namespace_is_told_as_one():
    made = Made("team")
    made.roll.begin()
    made.call()
    assert {found.namespace for found in made.recorder.told} == {"team"}
    assert all("/namespaces/team/" in path for path, _ in made.server.asked)


def test_only_pods_of_jobs_are_listed():
    made = Made()
    made.roll.begin()
    made.call()
    assert {(path, label) for path, label in made.server.asked if label} == {("/api/v1/pods", "signalbox.dev/job-uid")}


def test_without_a_history_nothing_is_listed():
    made = Made(recorder=NoRecorder())
    made.roll.begin()
    made.call()
    assert made.server.asked == []
