"""Laws of deciding: total on any snapshot, and true whatever happens in whatever order."""

from datetime import UTC, datetime

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controller.decide import decide
from controller.plan import Obstacle, Snapshot
from schemas import defaults, kinds

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
TIMES = st.sampled_from(["2026-01-01T00:00:00Z", "2025-12-31T23:59:00Z", "x", None])
CONDITION = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["Created", "Running", "Failed", "Suspended", "Blocked", 3]),
        "status": st.sampled_from(["True", "False", None]),
        "lastTransitionTime": TIMES,
    },
)
STATUS = JSON_VALUES | st.fixed_dictionaries(
    {},
    optional={
        "conditions": st.lists(CONDITION | JSON_VALUES, max_size=3),
        "startTime": TIMES,
        "completionTime": TIMES,
        "pendingRestarts": st.lists(st.sampled_from(["u", 3])),
        "replicaStatuses": st.dictionaries(
            st.sampled_from(["Worker", "X"]),
            JSON_VALUES
            | st.fixed_dictionaries({"createdIndexes": st.sampled_from(["0-2", "x", 1]), "retries": JSON_VALUES}),
        ),
    },
)
SPEC = JSON_VALUES | st.fixed_dictionaries(
    {
        "pytorchReplicaSpecs": st.dictionaries(
            st.sampled_from(["Master", "Worker"]),
            JSON_VALUES | st.fixed_dictionaries({"replicas": st.integers(-1, 3), "template": JSON_VALUES}),
            max_size=2,
        )
    },
    optional={"runPolicy": JSON_VALUES | st.dictionaries(st.sampled_from(["suspend", "backoffLimit"]), JSON_VALUES)},
)
LABELS = st.just(
    {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "0"}
) | st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=2)
POD = JSON_VALUES | st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"uid": st.just("u"), "name": st.just("p"), "labels": LABELS}),
        "status": JSON_VALUES,
    },
    optional={"spec": JSON_VALUES},
)


@settings(max_examples=300)
@given(SPEC, STATUS, st.lists(POD, max_size=3), st.booleans())
def test_any_snapshot_gives_a_plan(spec, status, pods, tried):
    for kind in kinds.KINDS:
        job = defaults.default(kind, {"metadata": {"name": "job", "namespace": "ns", "uid": "j"}, "spec": spec})
        seen = Snapshot({**job, "status": status}, pods=tuple(p for p in pods if isinstance(p, dict)), tried=tried)
        plan = decide(kind, seen, NOW)
        if plan.status is not None and tried:
            again = decide(kind, Snapshot({**job, "status": plan.status}, pods=seen.pods, tried=True), NOW)
            assert again.status is not None


class AnyLife(RuleBasedStateMachine):
    """Random lives of a job: pods come, run, end, vanish; the clock jumps; the controller is cut off anywhere."""

    def __init__(self):
        super().__init__()
        from controller_world import World

        self.world = World(kinds.PYTORCH_JOB).type("Master", 1, "OnFailure").type("Worker", 2, "ExitCode")
        self.world.policy(backoffLimit=5)
        self.ended = None

    @rule()
    def reconciles(self):
        self.world.step()

    @rule()
    def comes_to_rest(self):
        self.world.settle()
        writes = self.world.writes
        assert not self.world.step()
        assert self.world.writes == writes
        if self.world.state == "Suspended":
            assert not self.world.pods
            assert not self.world.services

    @rule(seconds=st.sampled_from([1, 10, 60, 700]))
    def time_passes(self, seconds):
        self.world.later(seconds)

    @rule()
    def is_cut_off_before_the_status_write(self):
        """The creates and deletes of a plan are done, and nobody hears of it."""
        for action in self.world.plan().actions:
            self.world._act(action)

    @rule(data=st.data(), code=st.sampled_from([0, 0, 1, 137]))
    def a_pod_ends(self, data, code):
        running = [n for n in self.world.names if self.world.pod(n)["status"]["phase"] == "Running"]
        if running:
            self.world.ends(data.draw(st.sampled_from(running)), code)

    @rule(data=st.data())
    def a_pod_runs(self, data):
        pending = [n for n in self.world.names if self.world.pod(n)["status"]["phase"] == "Pending"]
        if pending:
            self.world.runs(data.draw(st.sampled_from(pending)))

    @rule(data=st.data())
    def a_pod_vanishes(self, data):
        if self.world.names:
            self.world.vanishes(data.draw(st.sampled_from(self.world.names)))

    @rule(data=st.data())
    def a_pod_is_evicted(self, data):
        if self.world.names:
            name = data.draw(st.sampled_from(self.world.names))
            if self.world.pod(name)["status"]["phase"] in ("Pending", "Running"):
                self.world.fails(name, reason="Evicted")

    @rule(suspend=st.booleans())
    def is_suspended_or_resumed(self, suspend):
        self.world.policy(suspend=suspend)

    @rule(workers=st.integers(0, 3))
    def is_scaled(self, workers):
        self.world.scale("Worker", workers)

    @rule(on=st.booleans())
    def an_obstacle(self, on):
        self.world.obstacle = Obstacle("QuotaExceeded", "exceeded quota") if on else None

    @invariant()
    def exactly_one_state_is_true_and_last(self):
        if self.world.status:
            assert self.world.state

    @invariant()
    @precondition(lambda self: self.ended is None and self.world.status)
    def remembers_its_end(self):
        if self.world.state in ("Succeeded", "Failed"):
            kept = ("conditions", "completionTime", "restarts", "restartHistory")
            self.ended = {key: self.world.status.get(key) for key in kept}, len(self.world.created)

    @invariant()
    def the_end_is_for_ever_and_nothing_is_created_after_it(self):
        if self.ended:
            status, created = self.ended
            assert {key: self.world.status.get(key) for key in status} == status
            assert len(self.world.created) == created

    @invariant()
    def counts_are_bounded_by_what_happened(self):
        status = self.world.status
        if status:
            assert status.get("restartsCounted", 0) <= status["restarts"]
            assert status.get("restartsCounted", 0) <= 5


TestAnyLife = AnyLife.TestCase
# without shrinking, which can take minutes here: the steps are printed as they were
TestAnyLife.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
