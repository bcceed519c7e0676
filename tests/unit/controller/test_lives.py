"""Random lives of a job against an API server that fails and a controller that crashes: two laws.

``Twins`` lives one life twice: once undisturbed, once with a crash, an error or a lost answer at any API call. Both
must come to the same end. ``Interrupted`` lets anything happen between any two reconciles, and looks at every write.
``bench/laws.py`` runs both for as many steps as it is told.
"""

from copy import deepcopy

from controller_apiserver import FOREVER, Cluster, Crash
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kube import errors
from schemas import kinds, times

STEPS = {"taken": 0, "before the end": 0}
TERMINAL = ("Succeeded", "Failed")
LIVE = ("Pending", "Running")

CODES = st.sampled_from([0, 1, *[9, 40, 137] * 4])
POLICIES = st.sampled_from(["Never", *["OnFailure", "Always", "ExitCode", "ExitCode"] * 2])
RUN_POLICY = st.fixed_dictionaries(
    {},
    optional={
        "backoffLimit": st.sampled_from([0, 3, 9, 99]),
        "activeDeadlineSeconds": st.sampled_from([30, *[10**9] * 5]),
        "cleanPodPolicy": st.sampled_from(["All", "Running", "None"]),
        "ttlSecondsAfterFinished": st.sampled_from([60, *[10**6] * 3]),
    },
)
GANGS = st.sampled_from(["none", "none", "volcano", "scheduler-plugins"])
RULES = [{"codes": [9], "action": "RestartJob"}, {"range": "40-50", "action": "Ignore"}]
FAULTS = st.sampled_from(
    [
        (Crash(), "before"),
        (Crash(), "after"),
        (errors.ServerError("etcdserver: request timed out", status=500), "before"),
        (errors.Unreachable("the answer was lost"), "after"),
        (errors.Conflict("changed meanwhile", status=409), "before"),
    ]
)
DISRUPTED = [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]


def spec_of(kind, policies, run_policy):
    def entry(replicas, policy):
        containers = [{"name": kind.container, "image": "i"}, {"name": "proxy", "image": "i"}]
        pod = {"containers": containers, "initContainers": [{"name": "setup", "image": "i"}]}
        return {"replicas": replicas, "restartPolicy": policy, "template": {"spec": pod}}

    types = {kind.leaders[0]: entry(1, policies[0]), "Worker": entry(2, policies[1])}
    return {kind.spec_key: types, "runPolicy": {"exitCodeRules": RULES, **run_policy}}


def state_of(cluster):
    """The one true state; checks that there is exactly one, and that it is last."""
    status = cluster.job.get("status") or {}
    rows = [row for row in status.get("conditions", []) if row["status"] == "True"]
    states = [row["type"] for row in rows if row["type"] not in ("Created", "Blocked")]
    if status:
        assert len(states) == 1, rows
        assert status["conditions"][-1]["type"] == states[0] == status["phase"]
    return states[0] if states else ""


class Life(RuleBasedStateMachine):
    """What may happen to a job; ``clusters`` are those to which it happens."""

    clusters: list[Cluster]

    @initialize(
        kind=st.sampled_from([*[kinds.PYTORCH_JOB] * 3, kinds.MPI_JOB]),
        policies=st.tuples(POLICIES, POLICIES),
        run_policy=RUN_POLICY,
        options=st.fixed_dictionaries({"force_delete_after": st.sampled_from([None, 60.0]), "gang_scheduler": GANGS}),
    )
    def begins(self, kind, policies, run_policy, options):
        spec = spec_of(kind, policies, run_policy)
        self.clusters = [Cluster(kind, deepcopy(spec), **options) for _ in range(self.copies)]
        self.kind = kind
        self.ready()

    copies = 1

    def ready(self):
        pass

    def names(self, *phases):
        pods = self.clusters[0].server.pods
        return sorted(name for name, pod in pods.items() if pod["status"]["phase"] in phases)

    def happens(self, data, phases, change):
        """``change(cluster, name, old status)`` to one pod, drawn from those in ``phases``, in every cluster."""
        if names := self.names(*phases):
            name = data.draw(st.sampled_from(names))
            for cluster in self.clusters:
                change(cluster, name, cluster.server.pods[name]["status"])

    def stamp(self):
        return times.written(self.clusters[0].server.now)

    @rule(data=st.data(), everyone=st.booleans())
    def pods_run(self, data, everyone):
        status = {"phase": "Running", "containerStatuses": [self.container({"running": {"startedAt": self.stamp()}})]}
        for _ in self.names("Pending")[: None if everyone else 1]:
            self.happens(data, ("Pending",), lambda c, name, old: c.server.set_status(name, **status))

    def container(self, state, count=0, name=None):
        return {"name": name or self.kind.container, "state": state, "restartCount": count}

    @rule(data=st.data(), code=CODES, sidecar=st.booleans())
    def a_pod_ends(self, data, code, sidecar):
        """Its main container does; a sidecar may keep the pod alive."""
        ended = {
            "terminated": {"exitCode": code, "finishedAt": self.stamp(), "reason": "Error" if code else "Completed"}
        }
        phase = "Running" if sidecar else "Failed" if code else "Succeeded"

        def change(cluster, name, old):
            count = (old.get("containerStatuses") or [{}])[0].get("restartCount", 0)
            rows = [self.container(ended, count), self.container({"running": {}}, name="proxy")]
            kept = {"conditions": old["conditions"]} if "conditions" in old else {}
            cluster.server.set_status(name, phase=phase, containerStatuses=rows, **kept)

        self.happens(data, ("Running",), change)

    @rule(data=st.data())
    def a_pod_restarts_in_place(self, data):
        def change(cluster, name, old):
            rows = deepcopy(old.get("containerStatuses") or [self.container({"running": {}})])
            rows[0]["restartCount"] += 1
            cluster.server.set_status(name, **{**old, "containerStatuses": rows})

        self.happens(data, ("Running",), change)

    @rule(data=st.data(), code=st.sampled_from([1, 137]))
    def an_init_container_fails(self, data, code):
        failed = self.container({"terminated": {"exitCode": code}}, name="setup")
        status = {"phase": "Failed", "initContainerStatuses": [failed]}
        self.happens(data, ("Pending",), lambda c, name, old: c.server.set_status(name, **status))

    @rule(data=st.data(), reason=st.sampled_from(["UnexpectedAdmissionError", "OutOfcpu", "Evicted", "NodeShutdown"]))
    def a_pod_is_refused_or_evicted(self, data, reason):
        self.happens(data, LIVE, lambda c, name, old: c.server.set_status(name, phase="Failed", reason=reason))

    @rule(data=st.data())
    def a_pod_is_drained(self, data):
        def change(cluster, name, old):
            cluster.server.set_status(name, **{**old, "conditions": DISRUPTED})
            cluster.server.leave(name)

        self.happens(data, LIVE, change)

    @rule(data=st.data())
    def a_pod_is_deleted_by_hand(self, data):
        self.happens(data, LIVE, lambda c, name, old: c.server.leave(name))

    @rule(data=st.data())
    def a_pod_vanishes(self, data):
        self.happens(data, (*LIVE, "Succeeded", "Failed"), lambda c, name, old: c.server.drop("pods", name))

    @rule(data=st.data())
    def an_extra_child_vanishes(self, data):
        if found := self.clusters[0].extras:
            plural, name = data.draw(st.sampled_from(found))
            for cluster in self.clusters:
                cluster.server.drop(plural, name)

    @rule(data=st.data(), lost=st.booleans())
    def a_node_is_lost_or_found(self, data, lost):
        def change(cluster, name, old):
            rest = {key: value for key, value in old.items() if key != "reason"}
            cluster.server.set_status(name, **rest, **({"reason": "NodeLost"} if lost else {}))

        self.happens(data, ("Running",), change)

    @rule()
    def kubelets_carry_out_deletions(self):
        for cluster in self.clusters:
            pods = cluster.server.pods.items()
            for name in [name for name, pod in pods if "deletionTimestamp" in pod["metadata"]]:
                cluster.server.drop("pods", name)

    @rule(seconds=st.sampled_from([1, 10, 60, 700, -1, -3600]))
    def the_clock_moves(self, seconds):
        for cluster in self.clusters:
            cluster.server.move_clock(seconds)

    @rule(suspend=st.booleans())
    def is_suspended_or_resumed(self, suspend):
        self.edits(lambda spec: spec["runPolicy"].update(suspend=suspend))

    @rule(workers=st.integers(0, 3))
    def is_scaled(self, workers):
        self.edits(lambda spec: spec[self.kind.spec_key]["Worker"].update(replicas=workers))

    @rule(changes=RUN_POLICY)
    def the_run_policy_is_edited(self, changes):
        self.edits(lambda spec: spec["runPolicy"].update(changes))

    def edits(self, change):
        for cluster in self.clusters:
            cluster.edit(change)

    @rule(on=st.booleans(), slow=st.booleans())
    def a_quota_and_slow_nodes(self, on, slow):
        for cluster in self.clusters:
            cluster.server.refused = "exceeded quota: few" if on else ""
            cluster.server.slow = slow
            cluster.server.move_clock(61)  # no longer held back, whatever a process remembers

    @invariant()
    def one_state_whatever_happens(self):
        STEPS["taken"] += 1
        states = [state_of(cluster) for cluster in getattr(self, "clusters", [])]
        STEPS["before the end"] += not {*states} & {*TERMINAL, ""}


def essence(cluster):
    """What must not depend on crashes: all but the way there."""
    status = cluster.job.get("status") or {}
    ends = ("Created", "Blocked")
    rows = [row for row in status.get("conditions", []) if row["status"] == "True" and row["type"] not in ends]
    keys = ("restarts", "restartsCounted", "round", "replicaStatuses", "startTime", "completionTime", "pendingRestarts")
    pods = {
        name: (pod["status"]["phase"], "deletionTimestamp" in pod["metadata"], pod["metadata"].get("annotations"))
        for name, pod in cluster.server.pods.items()
    }
    return {
        "state": [(row["type"], row["reason"]) for row in rows],
        "status": {key: status.get(key) for key in keys},
        "restartHistory": [{**entry, "uid": None} for entry in status.get("restartHistory", [])],
        "pods": pods,
        "made": sorted(cluster.server.creations),
        "services": sorted(cluster.server.objects["services"]),
        "extras": cluster.extras,
    }


class Twins(Life):
    """A crash, an error or a lost answer at any API call changes no outcome."""

    copies = 2

    def ready(self):
        self.rest(FOREVER, (Crash(), "before"), [])

    @rule(fuse=st.integers(1, 5), fault=FAULTS, more=st.lists(st.integers(1, 6), max_size=2))
    def rest(self, fuse, fault, more):
        calm, hit = self.clusters
        if calm.server.refused:  # only a process that lives on remembers how long to hold creates back
            calm.server.move_clock(61)
            hit.server.move_clock(61)
        calm.settle()
        hit.server.fault = fault
        for at in [fuse, *more]:
            hit.server.fuse = at
            hit.settle()
        hit.server.fuse = FOREVER
        hit.settle()
        was, should = essence(hit), essence(calm)
        differences = {key: (was[key], should[key]) for key in was if was[key] != should[key]}
        assert not differences, differences

    def happens(self, data, phases, change):
        """Pods change only once both worlds have come to rest, so that they change alike."""
        self.rest(data.draw(st.integers(1, 5)), data.draw(FAULTS), [])
        super().happens(data, phases, change)


class Interrupted(Life):
    """Anything may happen between any two reconciles, and the caches may lag behind."""

    def ready(self):
        self.end = None
        self.restarts = 0
        self.round = 0

    @rule(fuse=st.integers(1, 5), fault=FAULTS)
    def something_will_go_wrong(self, fuse, fault):
        self.clusters[0].server.fuse, self.clusters[0].server.fault = fuse, fault

    @rule(watched=st.booleans())
    def is_reconciled(self, watched):
        [cluster] = self.clusters
        if watched:
            cluster.watch()
        known = cluster.loop.jobs[cluster.kind].get("ns", "job") or {}
        self.reconciled(cluster.reconcile, known.get("spec"))

    @rule()
    def comes_to_rest(self):
        [cluster] = self.clusters
        self.reconciled(cluster.settle, cluster.job.get("spec"))
        version, calls = cluster.server.version, cluster.server.calls
        for _ in range(3):
            cluster.reconcile()
        assert cluster.server.version == version, "an idle job is written"
        groups = [name for plural, name in cluster.extras if plural == "podgroups"]
        if state_of(cluster) == "Suspended":
            assert not cluster.server.pods
            assert not cluster.server.objects["services"]
            assert not cluster.extras
        elif state_of(cluster) in TERMINAL:
            assert not groups
        elif cluster.job and not cluster.server.refused and not cluster.leaving:
            assert len(groups) == (cluster.settings.gang_scheduler != "none")
        assert cluster.server.calls >= calls

    def reconciled(self, act, known):
        """Acts, and checks what was created meanwhile by a controller that knows the spec ``known``."""
        [cluster] = self.clusters
        made = len(cluster.server.creations)
        held = self.end is not None or (known or {}).get("runPolicy", {}).get("suspend")
        act()
        assert not held or cluster.server.creations[made:] == [], "a child is created after the end or while suspended"

    @invariant()
    def the_end_is_for_ever(self):
        if not getattr(self, "clusters", None) or not self.clusters[0].job:
            return
        status = self.clusters[0].job["status"]
        kept = {key: status.get(key) for key in ("conditions", "completionTime", "restarts", "restartHistory", "round")}
        if self.end is None and state_of(self.clusters[0]) in TERMINAL:
            self.end = deepcopy(kept)
        assert self.end is None or kept == self.end

    @invariant()
    def restarts_are_never_lost_or_doubled(self):
        if not getattr(self, "clusters", None) or not self.clusters[0].job.get("status"):
            return
        status = self.clusters[0].job["status"]
        if status.get("startTime") is None:
            self.restarts = 0
        assert status["restarts"] >= self.restarts or "Resumed" in str(status["conditions"])
        assert status.get("restartsCounted", 0) <= status["restarts"]
        assert status.get("round", 0) >= self.round
        self.restarts, self.round = status["restarts"], status.get("round", 0)
        uids = [entry["uid"] for entry in status.get("restartHistory", []) if "uid" in entry]
        assert len(uids) == len({*uids}), "one pod's failure is counted twice"
        pending = status.get("pendingRestarts", [])
        assert len(pending) == len({*pending})


SETTINGS = {"deadline": None, "phases": [Phase.explicit, Phase.reuse, Phase.generate]}
"""Without shrinking, which can take minutes here: the steps are printed as they were."""

TestTwins = Twins.TestCase
TestInterrupted = Interrupted.TestCase
# the same lives in every run: new ones are what bench/laws.py is for
TestTwins.settings = TestInterrupted.settings = settings(
    max_examples=15, stateful_step_count=30, derandomize=True, **SETTINGS
)
