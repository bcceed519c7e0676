"""Random lives of jobs with PodGroups and with what an MPIJob needs, cut off between any two calls."""

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controller.plan import Obstacle
from controller.settings import Settings
from schemas import kinds


class AnyLife(RuleBasedStateMachine):
    """Random lives of a job: pods come, run, end, vanish; the clock jumps; the controller is cut off anywhere."""

    def __init__(self):
        super().__init__()
        self.ended = None

    @initialize(
        kind=st.sampled_from([kinds.PYTORCH_JOB, kinds.MPI_JOB]),
        gang=st.sampled_from(["none", "volcano", "scheduler-plugins"]),
    )
    def begins(self, kind, gang):
        from controller_world import World

        leader = kind.leaders[0]
        self.world = World(kind, Settings(gang_scheduler=gang)).type(leader, 1, "OnFailure")
        self.world.type("Worker", 2, "ExitCode").policy(backoffLimit=5)

    @rule()
    def reconciles(self):
        self.world.step()

    @rule()
    def comes_to_rest(self):
        self.world.settle()
        writes = self.world.writes
        assert not self.world.step()
        assert self.world.writes == writes
        groups = [name for name in self.world.extra_names if name.startswith("PodGroup")]
        if self.world.state == "Suspended":
            assert not self.world.pods
            assert not self.world.services
            assert not self.world.extra_names
        elif self.world.state in ("Succeeded", "Failed"):
            assert not groups
        else:
            assert bool(groups) is (self.world.settings.gang_scheduler != "none")

    @rule(seconds=st.sampled_from([1, 10, 60, 700]))
    def time_passes(self, seconds):
        self.world.later(seconds)

    @rule(calls=st.integers(1, 12))
    def is_cut_off_before_the_status_write(self, calls):
        """The first creates, updates and deletes of a plan are done, and nobody hears of it."""
        for action in self.world.plan().actions[:calls]:
            self.world._act(action)

    @rule(data=st.data())
    def an_extra_child_vanishes(self, data):
        keys = [(key, name) for key, held in self.world.extras.items() for name in held]
        if keys:
            key, name = data.draw(st.sampled_from(keys))
            del self.world.extras[key][name]

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
