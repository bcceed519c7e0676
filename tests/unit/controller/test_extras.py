"""Lives of jobs with further children: when they come, change and go, and what a crash in between does."""

import pytest

from controller.plan import Create, Obstacle
from controller.settings import Settings
from schemas import kinds

VOLCANO = Settings(gang_scheduler="volcano")
FOUR = ["ConfigMap/job-config", "Role/job-launcher", "RoleBinding/job-launcher", "ServiceAccount/job-launcher"]
ALL = sorted(["PodGroup/job", *FOUR])


@pytest.fixture
def mpi(new_world):
    """A gang of a launcher and two workers that has come to rest."""
    world = new_world(kinds.MPI_JOB, VOLCANO).type("Launcher", 1, "OnFailure").type("Worker", 2, "OnFailure")
    return world.settle()


def test_they_come_before_services_and_pods(new_world):
    world = new_world(kinds.PYTORCH_JOB, VOLCANO).type("Worker", 2)
    created = [action.resource for action in world.plan().actions if isinstance(action, Create)]
    assert created == ["podgroups.scheduling.volcano.sh", "services", "services", "pods", "pods"]


def test_all_pods_of_a_gang_come_at_once(mpi):
    """kubeflow/pytorch-operator#186"""
    assert mpi.names == ["launcher", "worker-0", "worker-1"]
    assert mpi.extra_names == ALL


def test_idle_means_silent(mpi):
    writes, updated = mpi.writes, len(mpi.updated)
    for _ in range(3):
        assert not mpi.later(600).step()
    assert (mpi.writes, len(mpi.updated)) == (writes, updated)


def test_running_workers_are_discovered(mpi):
    mpi.runs().settle()
    assert mpi.updated == ["job-config"]
    script = mpi.extras["configmaps"]["job-config"]["data"]["discover_hosts.sh"]
    assert script.splitlines()[1:] == ["echo job-worker-0:1", "echo job-worker-1:1"]


def test_scaling_changes_the_gang_and_the_host_file(mpi):
    mpi.scale("Worker", 3).settle()
    assert mpi.extras["podgroups.scheduling.volcano.sh"]["job"]["spec"]["minMember"] == 4
    assert "job-worker-2" in mpi.extras["configmaps"]["job-config"]["data"]["hostfile"]
    assert len(mpi.extras["roles.rbac.authorization.k8s.io"]["job-launcher"]["rules"][1]["resourceNames"]) == 3
    assert mpi.extras["podgroups.scheduling.volcano.sh"]["job"]["spec"]["queue"] == "default"


def test_suspension_takes_all_and_resuming_brings_them_back(mpi):
    mpi.runs().settle().policy(suspend=True).settle()
    assert (mpi.state, mpi.names, mpi.extra_names) == ("Suspended", [], [])
    mpi.policy(suspend=False).settle()
    assert (mpi.names, mpi.extra_names) == (["launcher", "worker-0", "worker-1"], ALL)


@pytest.mark.parametrize("policy", ["All", "Running", "None"])
def test_the_end_takes_the_pod_group(mpi, policy):
    mpi.policy(cleanPodPolicy=policy).runs().settle().ends("launcher").settle()
    assert (mpi.state, mpi.extra_names) == ("Succeeded", FOUR)


def test_one_that_vanishes_is_made_again(mpi):
    del mpi.extras["podgroups.scheduling.volcano.sh"]["job"]
    assert mpi.settle().extra_names == ALL


def test_one_that_is_leaving_is_waited_for(mpi):
    group = mpi.extras["podgroups.scheduling.volcano.sh"]["job"]
    group["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    group["spec"]["minMember"] = 1
    assert not mpi.settle().step()
    assert group["spec"]["minMember"] == 1


@pytest.mark.parametrize(("settings", "events"), [(Settings(), ["NoGangScheduler"]), (VOLCANO, [])])
def test_a_wish_that_nothing_fulfils_is_told(new_world, settings, events):
    world = new_world(kinds.TRAINING_JOB, settings).type("a", 1).policy(schedulingPolicy={"minAvailable": 1}).settle()
    assert [reason for _, reason, _ in world.events] == events


def test_a_gang_that_cannot_be_made_is_blocked(new_world):
    world = new_world(kinds.TRAINING_JOB, VOLCANO).type("a", 1)
    world.obstacle = Obstacle("PodGroupNotInstalled", "its CRD is not installed")
    world.refused = "podgroups.scheduling.volcano.sh"
    world.settle()
    assert (world.state, world.condition("Blocked")["reason"], world.names) == ("Pending", "PodGroupNotInstalled", [])
    world.obstacle = None
    assert world.settle().names == ["a-0"]
    assert world.condition("Blocked")["status"] == "False"


class CutOff(Exception):  # noqa: N818 - not an error
    """The controller is killed."""


def life(world, cut=None):
    """A life with a suspension and a scale-up; the controller is cut off after ``cut`` calls and starts again."""
    calls = iter(range(10_000))
    act = world._act

    def counted(action):
        if next(calls) == cut:
            raise CutOff
        return act(action)

    world._act = counted

    def settle():
        try:
            world.settle()
        except CutOff:
            world.settle()

    world.type("Launcher", 1).type("Worker", 2)
    settle()
    world.policy(suspend=True)
    settle()
    world.policy(suspend=False)
    settle()
    world.scale("Worker", 3)
    settle()
    world.runs()
    settle()
    world.ends("launcher")
    settle()
    return next(calls), (world.state, world.names, world.extra_names, world.status.get("restarts"))


def test_a_cut_between_any_two_calls_changes_no_outcome(new_world):
    total, outcome = life(new_world(kinds.MPI_JOB, VOLCANO))
    assert outcome[0] == "Succeeded"
    for cut in range(total):
        assert life(new_world(kinds.MPI_JOB, VOLCANO), cut)[1] == outcome, cut
