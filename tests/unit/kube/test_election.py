"""Who leads: a table of single decisions, and whole elections with lost, late and unanswered calls."""

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kube import election
from kube.election import Held, Step, Terms, View

TERMS = Terms()
OTHER = Held("other", "7", 15.0, 3)
MINE = Held("me", "7", 15.0, 3, "then")


@pytest.mark.parametrize(
    ("view", "now", "step"),
    [
        (View("me"), 0, Step.CREATE),
        (View("me", OTHER, seen=100), 100, Step.WAIT),
        (View("me", OTHER, seen=100), 114.9, Step.WAIT),
        (View("me", OTHER, seen=100), 115, Step.ACQUIRE),
        (View("me", replace(OTHER, duration=60), seen=100), 115, Step.WAIT),  # the holder counts on 60 s
        (View("me", replace(OTHER, duration=1), seen=100), 110, Step.WAIT),  # ours counts too
        (View("me", replace(OTHER, holder=""), seen=100), 100, Step.ACQUIRE),  # released
        (View("me", replace(OTHER, version=""), seen=100), 114.9, Step.WAIT),  # deleted under its holder
        (View("me", replace(OTHER, version=""), seen=100), 115, Step.CREATE),
        (View("me", MINE, seen=100, confirmed=100), 102, Step.RENEW),
        (View("me", MINE, seen=100, confirmed=100), 900, Step.RENEW),  # nobody took it: it is still ours to renew
        (View("me", MINE, seen=100), 100, Step.RENEW),  # our acquiring write was stored and not answered
    ],
)
def test_decisions(view, now, step):
    assert election.decide(view, now, TERMS) is step


@pytest.mark.parametrize(
    ("now", "leads", "seconds"), [(100, True, 15), (109.9, True, 5.1), (110, False, 0), (200, False, 0)]
)
def test_a_leader_stops_before_its_lease_can_be_taken(now, leads, seconds):
    view = View("me", MINE, seen=100, confirmed=100)
    assert election.leading(view, now, TERMS) is leads
    assert election.remaining(view, now, TERMS) == pytest.approx(seconds)


def test_nobody_leads_without_an_answer():
    assert not election.leading(View("me", MINE, seen=100), 100, TERMS)
    assert election.remaining(View("me", MINE, seen=100), 100, TERMS) == 0


def test_the_lease_ages_by_our_clock_from_the_first_sight_of_a_version():
    view = election.observed(View("me"), OTHER, 50)
    assert election.observed(view, OTHER, 60).seen == 50
    assert election.observed(view, replace(OTHER, version="8"), 60).seen == 60


@pytest.mark.parametrize("lease", [OTHER, None, replace(OTHER, holder="")])
def test_another_holder_ends_leadership_at_once(lease):
    view = election.observed(View("me", MINE, seen=100, confirmed=100), lease, 101)
    assert not election.leading(view, 101, TERMS)


def test_a_deleted_lease_is_held_by_its_holder_for_its_duration():
    seen = election.observed(View("me", OTHER, seen=100), None, 103)
    assert (seen.lease, seen.seen) == (replace(OTHER, version=""), 103)
    assert election.observed(seen, None, 110).seen == 103
    mine = election.observed(View("me", MINE, seen=100, confirmed=100), None, 103)
    assert election.decide(mine, 103, TERMS) is Step.CREATE


def test_the_next_look_is_when_the_lease_expires():
    view = View("me", OTHER, seen=100)
    assert election.pause(view, 105, TERMS) == TERMS.retry
    assert election.pause(view, 114, TERMS) == 1
    assert election.pause(View("me", MINE, seen=100, confirmed=100), 109, TERMS) == TERMS.retry


def test_what_is_written():
    taken = election.written(View("me", OTHER), "lease", "ns", "now", TERMS)
    assert taken["metadata"] == {"name": "lease", "namespace": "ns", "resourceVersion": "7"}
    assert taken["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "now",
        "renewTime": "now",
        "leaseTransitions": 4,
    }
    renewed = election.written(View("me", MINE), "lease", "ns", "now", TERMS)["spec"]
    assert (renewed["leaseTransitions"], renewed["acquireTime"]) == (3, "then")
    first = election.written(View("me"), "lease", "ns", "now", TERMS)
    assert "resourceVersion" not in first["metadata"]
    assert first["spec"]["leaseTransitions"] == 0


@pytest.mark.parametrize("lease", [{}, {"spec": None, "metadata": None}, {"spec": {"holderIdentity": None}}])
def test_an_odd_lease_is_held_by_nobody(lease):
    assert election.held(lease) == Held("", "", 0.0)


@pytest.mark.parametrize("terms", [(10, 10, 2), (15, 2, 2), (15, 10, 0), (5, 10, 2)])
def test_terms_that_could_give_two_leaders_are_refused(terms):
    with pytest.raises(ValueError, match="0 < retry < renew < duration"):
        Terms(*terms)


@pytest.mark.parametrize("late", [0.0, 0.5, 1.0, 1.9, 2.0])
def test_nobody_follows_a_silent_leader_while_its_writes_may_be_under_way(late):
    """``late``: seconds from the last renewal to the standby's next look; the clocks differ by an hour."""
    leader = View("a", Held("a", "7", 15.0), seen=0.0, confirmed=0.0)
    standby, now = View("b"), late
    while True:
        standby = election.observed(standby, leader.lease, now + 3600)
        if election.decide(standby, now + 3600, TERMS) is not Step.WAIT:
            break
        now += election.pause(standby, now + 3600, TERMS)
    assert election.remaining(leader, now, TERMS) == 0
    assert now == pytest.approx(15 + late)


CANDIDATES = st.sampled_from(["a", "b", "c"])


class Elections(RuleBasedStateMachine):
    """One Lease and three candidates whose clocks have nothing in common. Each write is begun, stored and answered at
    times of its own, or never: cut-offs, hanging calls and deaths are all made of that.
    """

    def __init__(self):
        super().__init__()
        self.time = 0.0
        self.version = 0
        self.lease = None
        self.views = {name: View(name) for name in "abc"}
        self.offsets = {"a": 0.0, "b": 1e6, "c": -500.0}
        self.under_way = {}
        self.stored = {}

    def now(self, name):
        return self.time + self.offsets[name]

    @rule(seconds=st.sampled_from([1.0, 2.0, 4.9, 9.9, 15.0]))
    def time_passes(self, seconds):
        self.time += seconds

    @rule(name=CANDIDATES)
    def looks(self, name):
        self.views[name] = election.observed(self.views[name], self.lease, self.now(name))

    @rule(name=CANDIDATES)
    def does_a_whole_round(self, name):
        self.looks(name)
        if name not in self.under_way and name not in self.stored:
            self.begins_a_write(name)
            if name in self.under_way:
                self.store(name)
                self.answer(name)

    @precondition(lambda self: len(self.under_way) < 3)
    @rule(name=CANDIDATES)
    def begins_a_write(self, name):
        view = self.views[name]
        step = election.decide(view, self.now(name), TERMS)
        if name not in self.under_way and step is not Step.WAIT:
            body = election.written(view, "lease", "ns", "", TERMS)
            self.under_way[name] = (step, election.held(body), self.now(name))

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def a_write_is_stored(self, data):
        self.store(data.draw(st.sampled_from(sorted(self.under_way))))

    def store(self, name):
        step, body, begun = self.under_way.pop(name)
        fits = self.lease is None if step is Step.CREATE else self.lease and self.lease.version == body.version
        if fits:
            self.version += 1
            self.lease = replace(body, version=str(self.version))
            self.stored[name] = (self.lease, begun)

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), arrives=st.booleans())
    def an_answer_comes_or_not(self, data, arrives):
        name = data.draw(st.sampled_from(sorted(self.stored)))
        if arrives:
            self.answer(name)
        else:
            del self.stored[name]

    def answer(self, name):
        lease, begun = self.stored.pop(name, (None, 0.0))
        if lease is not None and self.now(name) - begun < 5:  # later the call has timed out
            self.views[name] = election.confirmed(self.views[name], lease, begun)

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def a_write_is_lost(self, data):
        self.under_way.pop(data.draw(st.sampled_from(sorted(self.under_way))))

    @rule(name=CANDIDATES)
    def dies_and_comes_back(self, name):
        if not election.leading(self.views[name], self.now(name), TERMS):
            self.views[name] = View(name)
            self.under_way.pop(name, None)
            self.stored.pop(name, None)

    @invariant()
    def nobody_writes_while_another_leads(self):
        busy = {name for name, view in self.views.items() if election.remaining(view, self.now(name), TERMS) > 0}
        assert len(busy) <= 1, busy


TestElections = Elections.TestCase
TestElections.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
