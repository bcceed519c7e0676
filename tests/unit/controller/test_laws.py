"""Laws of deciding: total on any snapshot, and true whatever happens in whatever order."""

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.decide import decide
from controller.extras import sorts
from controller.gang import SCHEDULERS
from controller.plan import Snapshot
from controller.settings import Settings
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
        "replicas": st.dictionaries(
            st.sampled_from(["Master", "Worker"]),
            JSON_VALUES | st.fixed_dictionaries({"replicas": st.integers(-1, 3), "template": JSON_VALUES}),
            max_size=2,
        )
    },
    optional={
        "runPolicy": JSON_VALUES
        | st.dictionaries(st.sampled_from(["suspend", "backoffLimit", "schedulingPolicy"]), JSON_VALUES)
    },
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


def spec_of(kind, spec):
    """The spec with its replica specs where the kind has them, and the first type as its leader."""
    if not isinstance(spec, dict) or not isinstance(entries := spec.get("replicas"), dict):
        return spec
    leader = {"Master": kind.leaders[0] if kind.leaders else "Master"}
    return {**spec, kind.spec_key: {leader.get(name, name): entry for name, entry in entries.items()}}


@settings(max_examples=300)
@given(SPEC, STATUS, st.lists(POD, max_size=3), st.booleans(), st.sampled_from(["none", *SCHEDULERS]), JSON_VALUES)
def test_any_snapshot_gives_a_plan(spec, status, pods, tried, gang, stored):
    for kind in kinds.KINDS:
        settings = Settings(gang_scheduler=gang)
        child = {"metadata": {"name": "job", "uid": "c"}, "spec": stored, "data": stored}
        extras = {sort.key: (child,) for sort in sorts((kind,), settings)}
        metadata = {"name": "job", "namespace": "ns", "uid": "j"}
        job = defaults.default(kind, {"metadata": metadata, "spec": spec_of(kind, spec)})
        seen = Snapshot(
            {**job, "status": status},
            pods=tuple(p for p in pods if isinstance(p, dict)),
            tried=tried,
            extras=extras,
            settings=settings,
        )
        plan = decide(kind, seen, NOW)
        if plan.status is not None and tried:
            again = decide(kind, Snapshot({**job, "status": plan.status}, pods=seen.pods, tried=True), NOW)
            assert again.status is not None


@settings(max_examples=25)
@given(st.permutations(["Master", "Worker", "PS"]), st.randoms(use_true_random=False))
def test_the_order_of_maps_and_pods_changes_nothing(order, random):
    """kubeflow/trainer#751: the leader has succeeded and a worker failed, seen in the same reconcile."""
    from controller_world import World

    def ended(types, shuffle):
        world = World(kinds.TRAINING_JOB)
        for name in types:
            world.type(name, 2 if name == "Worker" else 1, "Never")
        world.settle().runs().settle().ends("worker-1", 1).ends("master-0")
        pods = list(world.pods.items())
        shuffle(pods)
        world.pods = dict(pods)
        return world.settle().status

    plain = ended(["Master", "PS", "Worker"], lambda pods: None)
    assert plain["phase"] == "Succeeded"
    assert ended(order, random.shuffle) == plain
