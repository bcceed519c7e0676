"""One candidate and a stored Lease: what it writes, what it tells, and how it behaves when calls fail."""

import threading

import pytest

from kube import errors
from kube.lease import Election, Place

PLACE = Place("system", "controller")


class Server:
    """One Lease, with optimistic locking; ``fails`` is raised instead of an answer, ``loses`` after the write."""

    def __init__(self):
        self.lease = None
        self.version = 0
        self.fails = None
        self.loses = False

    def get(self, path):
        self._reached()
        if self.lease is None:
            raise errors.NotFound("no lease")
        return self.lease

    def create(self, path, body):
        self._reached()
        if self.lease is not None:
            raise errors.AlreadyExists("exists")
        return self._stored(body)

    def replace(self, path, body):
        self._reached()
        if body["metadata"].get("resourceVersion") != str(self.version):
            raise errors.Conflict("changed")
        return self._stored(body)

    def _stored(self, body):
        self.version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        if self.loses:
            raise errors.Unreachable("no answer")
        return self.lease

    def _reached(self):
        if self.fails:
            raise self.fails

    @property
    def holder(self):
        return self.lease["spec"]["holderIdentity"]


class Candidate:
    def __init__(self, server, me, time):
        self.told = []
        self.election = Election(server, PLACE, on_change=self.told.append, me=me, clock=lambda: time[0])


@pytest.fixture
def time():
    return [1000.0]


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def pair(server, time):
    return Candidate(server, "a", time), Candidate(server, "b", time)


def test_the_first_leads_and_the_second_waits(server, pair, time):
    first, second = pair
    for _ in range(20):
        first.election.round()
        second.election.round()
        time[0] += 2
    assert (first.told, second.told) == ([True], [])
    assert second.election.holder == "a"
    assert server.lease["spec"]["leaseTransitions"] == 0


def test_a_leader_that_is_silent_is_followed_after_the_duration(server, pair, time):
    first, second = pair
    first.election.round()
    second.election.round()
    time[0] += 14.9
    second.election.round()
    assert not second.election.leading()
    time[0] += 0.1
    second.election.round()
    assert second.election.leading()
    assert not first.election.leading()
    first.election.round()
    assert (first.told, second.told) == ([True, False], [True])
    assert server.lease["spec"]["leaseTransitions"] == 1


def test_a_released_lease_is_taken_at_the_next_look(server, pair):
    first, second = pair
    first.election.round()
    second.election.round()
    first.election.release()
    assert first.told == [True, False]
    second.election.round()
    assert second.election.leading()


def test_a_leader_cut_off_stops_by_itself_and_leads_again_later(server, pair, time):
    first, _ = pair
    first.election.round()
    server.fails = errors.Unreachable("cut off")
    for leads in (True, True, True, True, False, False):
        time[0] += 2
        first.election.round()
        assert first.election.leading() is leads
    assert first.election.remaining() == 0
    server.fails = None
    first.election.round()
    assert first.told == [True, False, True]


def test_an_acquisition_that_was_not_answered_is_found_and_confirmed(server, pair):
    first, _ = pair
    server.loses = True
    first.election.round()
    assert (server.holder, first.election.leading()) == ("a", False)
    server.loses = False
    first.election.round()
    first.election.round()
    assert first.election.leading()
    assert server.version == 2 + 1


def test_a_deleted_lease_is_made_again_by_its_holder_alone(server, pair, time):
    first, second = pair
    first.election.round()
    second.election.round()
    server.lease = None
    second.election.round()
    assert not second.election.leading()
    first.election.round()
    first.election.round()
    assert (server.holder, first.election.leading(), second.election.leading()) == ("a", True, False)


def test_a_lease_that_may_not_be_had_is_reported_and_tried_again(server, pair):
    first, _ = pair
    server.fails = errors.Forbidden("may not get leases")
    first.election.round()
    assert not first.election.leading()
    server.fails = None
    first.election.round()
    assert first.election.leading()


def test_run_releases_at_its_end(server, pair):
    first, _ = pair
    stop = threading.Event()
    running = threading.Thread(target=first.election.run, args=(stop,))
    running.start()
    while not first.told:
        stop.wait(0.01)
    stop.set()
    running.join(5)
    assert not running.is_alive()
    assert (server.holder, first.told) == ("", [True, False])


def test_nothing_is_released_that_another_holds(server, pair, time):
    first, second = pair
    first.election.round()
    second.election.round()
    second.election.release()
    assert server.holder == "a"
