"""An MPIJob's further children, its scripts as /bin/sh runs them, and what its pods are given."""

import subprocess

import pytest

from controller import build, extras
from controller.settings import Settings
from schemas import defaults, kinds
from schemas.job import Job


@pytest.fixture
def make():
    """``make(workers, worker={...}, launcher={...}, **spec)``: container and pod fields of either type."""

    def job(workers=2, worker=None, launcher=None, pod=None, **spec):
        def entry(count, fields):
            container = {"name": "mpi", "image": "img", **(fields or {})}
            return {"replicas": count, "template": {"spec": {"containers": [container], **(pod or {})}}}

        entries = {"Launcher": entry(1, launcher), "Worker": entry(workers, worker)}
        metadata = {"name": "job", "namespace": "ns", "uid": "u"}
        raw = {"metadata": metadata, "spec": {"mpiReplicaSpecs": entries, **spec}}
        return Job(kinds.MPI_JOB, defaults.default(kinds.MPI_JOB, raw))

    return job


def child(job, kind, running=()):
    [found] = [extra for extra in extras.wanted(job, Settings(), running) if extra.sort.kind == kind]
    return found


def spec_of(job, replica_type):
    return build.pod(job, job.replica(replica_type), 0, attempt=0, round_=0)["spec"]


def test_they_come_in_the_order_in_which_they_are_needed(make):
    found = [extra.sort.kind for extra in extras.wanted(make(), Settings(gang_scheduler="volcano"), ())]
    assert found == ["PodGroup", "ConfigMap", "ServiceAccount", "Role", "RoleBinding"]


@pytest.mark.parametrize(("spec", "slots"), [({}, 1), ({"slotsPerWorker": 4}, 4), ({"slotsPerWorker": "x"}, 1)])
def test_the_host_file(make, spec, slots):
    data = child(make(**spec), "ConfigMap").manifest["data"]
    assert data["hostfile"] == f"job-worker-0 slots={slots}\njob-worker-1 slots={slots}\n"


def test_discovery_names_running_workers(make, tmp_path):
    data = child(make(3, slotsPerWorker=2), "ConfigMap", {"job-worker-2", "job-worker-0", "job-launcher"}).manifest[
        "data"
    ]
    script = tmp_path / "discover_hosts.sh"
    script.write_text(data["discover_hosts.sh"])
    assert subprocess.check_output(["sh", script], text=True) == "job-worker-0:2\njob-worker-2:2\n"


def run_kubexec(job, tmp_path, *arguments, hosts=None):
    """The script with a kubectl that tells how it was called, one argument to a line."""
    (tmp_path / "kubectl").write_text('#!/bin/sh\nprintf "[%s]" "$@"; echo; [ "$2" = -i ] && cat; exit "${CODE:-0}"\n')
    (tmp_path / "kubectl").chmod(0o755)
    if hosts:
        (tmp_path / "hosts").write_text(hosts)
    script = child(job, "ConfigMap").manifest["data"]["kubexec.sh"].replace("/opt/kube", str(tmp_path))
    (tmp_path / "kubexec.sh").write_text(script)
    return subprocess.run(["sh", tmp_path / "kubexec.sh", *arguments], capture_output=True, text=True, check=False)


def test_a_command_is_run_in_the_worker(make, tmp_path):
    done = run_kubexec(make(), tmp_path, "-x", "job-worker-1", "PATH=/opt:$PATH ;", "orted", "-mca", "a b")
    assert done.stdout == "[exec][job-worker-1][-c][mpi][--][/bin/sh][-c][PATH=/opt:$PATH ; orted -mca a b]\n"
    assert done.returncode == 0


def test_a_worker_learns_the_addresses_first(make, tmp_path):
    done = run_kubexec(make(), tmp_path, "job-worker-0", "orted", hosts="10.0.0.1 job-worker-0\n")
    assert done.stdout.startswith("[exec][-i][job-worker-0][-c][mpi][--]")
    assert "10.0.0.1 job-worker-0\n[exec][job-worker-0]" in done.stdout


def test_the_commands_exit_code_is_the_scripts(make, tmp_path, monkeypatch):
    monkeypatch.setenv("CODE", "7")
    assert run_kubexec(make(), tmp_path, "job-worker-0", "false").returncode == 7


@pytest.mark.parametrize(
    ("spec", "worker", "expected"),
    [
        ({}, {}, "[-c][mpi]"),
        ({"mainContainer": "other"}, {}, "[-c][other]"),
        ({"mainContainer": "$(rm -rf /)"}, {}, ""),
        ({}, {"name": "only"}, "[-c][only]"),
    ],
)
def test_in_which_container(make, tmp_path, spec, worker, expected):
    done = run_kubexec(make(worker=worker, **spec), tmp_path, "job-worker-0", "true")
    assert done.stdout == f"[exec][job-worker-0]{expected}[--][/bin/sh][-c][true]\n"


def test_the_launcher_may_run_commands_in_these_workers_alone(make):
    rules = child(make(2), "Role").manifest["rules"]
    assert [rule.get("resourceNames") for rule in rules if rule["resources"] == ["pods/exec"]] == [
        ["job-worker-0", "job-worker-1"]
    ]


def test_without_workers_it_may_run_commands_nowhere(make):
    """An empty list of names would mean every pod of the namespace."""
    assert [rule["resources"] for rule in child(make(0), "Role").manifest["rules"]] == [["pods"]]


def test_a_service_account_of_the_users_is_kept_and_bound(make):
    job = make(pod={"serviceAccountName": "theirs"})
    assert spec_of(job, "Launcher")["serviceAccountName"] == "theirs"
    assert [subject["name"] for subject in child(job, "RoleBinding").manifest["subjects"]] == ["theirs"]


@pytest.mark.parametrize(
    ("fields", "command", "args"),
    [
        ({}, ["sleep"], ["365d"]),
        ({"command": ["sshd"]}, ["sshd"], None),
        ({"args": ["serve"]}, None, ["serve"]),
    ],
)
def test_a_worker_that_is_told_nothing_waits(make, fields, command, args):
    [container] = spec_of(make(worker=fields), "Worker")["containers"]
    assert (container.get("command"), container.get("args")) == (command, args)


def test_the_launcher_never_just_waits(make):
    [container] = spec_of(make(), "Launcher")["containers"]
    assert "command" not in container


def test_what_the_user_mounts_is_kept(make):
    mine = [{"name": "mine", "mountPath": "/etc/mpi"}]
    volumes = [{"name": "mpi-job-config", "emptyDir": {}}]
    spec = spec_of(make(worker={"volumeMounts": mine}, pod={"volumes": volumes}), "Worker")
    assert spec["containers"][0]["volumeMounts"] == mine
    assert spec["volumes"] == volumes


def test_kubectl_is_brought_by_the_image_that_was_set(make):
    job = make()
    pod = build.pod(
        job,
        job.replica("Launcher"),
        0,
        attempt=0,
        round_=0,
        settings=Settings(kubectl_delivery_image="registry.example/kubectl:1"),
    )
    assert [(item["name"], item["image"]) for item in pod["spec"]["initContainers"]] == [
        ("kubectl-delivery", "registry.example/kubectl:1")
    ]


OURS = {"kind": "ServiceAccount", "name": "job-launcher", "namespace": "ns"}
HOSTS = "job-worker-0 slots=1\njob-worker-1 slots=1\n"


@pytest.mark.parametrize(
    ("kind", "stored", "change"),
    [
        ("ServiceAccount", {"secrets": [{"name": "token"}]}, None),
        ("ConfigMap", {"data": {"mine": "kept"}}, None),
        (
            "ConfigMap",
            {"data": {"hostfile": "old"}},
            {"data": {"hostfile": HOSTS}},
        ),
        ("RoleBinding", {"roleRef": {"name": "other"}}, None),  # nobody can change it
        (
            "RoleBinding",
            {"subjects": []},
            {"subjects": [OURS]},
        ),
    ],
)
def test_only_what_we_set_and_only_where_it_differs(make, kind, stored, change):
    extra = child(make(), kind)
    have = {**extra.manifest, **stored}
    if "data" in stored:
        have["data"] = {**extra.manifest["data"], **stored["data"]}
    assert extras.change(extra, have) == change
