"""Starting: what can be listed is served, and what cannot be had at all holds nobody up."""

import queue
import threading

import pytest

from controller.loop import Loop
from controller.run import Run
from controller.settings import Settings
from kube import errors
from kube.raw import Listing, WatchEvent
from schemas import kinds
from schemas.records import NoRecorder


class Server:
    """Lists nothing of what it serves, refuses the rest, and watches until told to end."""

    def __init__(self, refused, error):
        self.refused = refused
        self.error = error
        self.ended = threading.Event()

    def pages(self, path, *, label_selector, field_selector):
        if any(plural in path for plural in self.refused):
            raise self.error
        yield Listing([], "1")

    def get(self, path, **query):
        raise errors.NotFound("no such CRD")

    def metadata(self, path):
        raise errors.NotFound("no such CRD")

    def watch(self, path, *, resource_version, label_selector, field_selector, timeout_seconds):
        yield WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "2"}})
        self.ended.wait(10)

    def stop_watches(self):
        self.ended.set()


@pytest.mark.parametrize("error", [errors.NotFound("no such resource"), errors.Forbidden("may not list")])
def test_a_kind_that_cannot_be_had_holds_nobody_up(error):
    """An installation without the overlay of Kubeflow's kinds still serves its own."""
    server = Server(("pytorchjobs",), error)
    run = Run(Loop(server, (kinds.TRAINING_JOB, kinds.PYTORCH_JOB), NoRecorder(), Settings(workers=1)))
    run.start()
    assert run.is_ready()
    assert run.is_healthy(run.reflectors[0].last_progress + 1)
    run.stop()


def test_the_roll_is_called_by_the_leader_only():
    told = queue.Queue()

    class Recorder(NoRecorder):
        keeps = True

        def live(self, found):
            told.put((found.what, found.kind))

    run = Run(Loop(Server((), None), (kinds.TRAINING_JOB,), Recorder(), Settings(workers=1)))
    run.start()
    run.stand_by()
    assert told.empty()
    run.lead()
    assert {told.get(timeout=20), told.get(timeout=20)} == {("pod", ""), ("job", "TrainingJob")}
    run.stop()


@pytest.mark.parametrize("error", [errors.NotFound("404 page not found"), errors.Forbidden("may not list")])
def test_extra_children_that_cannot_be_had_hold_nobody_up(error):
    """A PodGroup whose CRD is missing, or an MPIJob's rights that were not given: the jobs say so, one by one."""
    server = Server(("podgroups", "rolebindings"), error)
    settings = Settings(workers=1, gang_scheduler="volcano")
    run = Run(Loop(server, (kinds.TRAINING_JOB, kinds.MPI_JOB), NoRecorder(), settings))
    run.start()
    assert run.is_ready()
    run.measure(run.reflectors[0].last_progress)
    run.stop()


@pytest.mark.parametrize(
    ("served", "gang", "watched"),
    [
        ((kinds.TRAINING_JOB,), "none", []),
        ((kinds.TRAINING_JOB,), "volcano", ["podgroups.scheduling.volcano.sh"]),
        ((kinds.TRAINING_JOB, kinds.MPI_JOB), "none", ["configmaps", "serviceaccounts", "roles", "rolebindings"]),
    ],
)
def test_only_what_is_needed_is_watched(served, gang, watched):
    loop = Loop(Server((), None), served, NoRecorder(), Settings(gang_scheduler=gang))
    found = [key.removesuffix(".rbac.authorization.k8s.io") for key in loop.extras]
    assert found == watched


def test_children_that_cannot_be_listed_hold_everything_up():
    server = Server(("pods",), errors.Forbidden("may not list"))
    run = Run(Loop(server, (kinds.TRAINING_JOB,), NoRecorder(), Settings(workers=1)))
    starting = threading.Thread(target=run.start)
    starting.start()
    starting.join(0.5)
    assert starting.is_alive()
    assert not run.is_ready()
    run.stop()
    starting.join(5)
    assert not starting.is_alive()
