"""A small world for decisions: it does what an API server would do with a plan, one reconcile at a time."""

import itertools
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from controller.decide import decide
from controller.plan import Create, Delete, DeleteJob, Obstacle, Plan, Snapshot, Update
from controller.settings import Settings
from schemas import defaults, times
from schemas.kinds import JobKind

JSON = dict[str, Any]
START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


class World:
    """One job, its children and the clock. ``settle`` reconciles until nothing changes any more."""

    def __init__(self, kind: JobKind, settings: Settings = Settings()) -> None:  # noqa: B008 - frozen
        self.kind = kind
        self.settings = settings
        self.now = START
        self.uids = itertools.count(1)
        self.pods: dict[str, JSON] = {}
        self.services: dict[str, JSON] = {}
        self.extras: dict[str, dict[str, JSON]] = {}
        self.events: list[tuple[str, str, str]] = []
        self.writes = 0
        self.created: list[str] = []
        self.updated: list[str] = []
        self.deleted_job = False
        self.obstacle: Obstacle | None = None
        self.refused = "pods"
        self.met = False
        self.faults: tuple[str, ...] = ()
        self.wake: datetime | None = None
        self.slow_deletes = False
        self.notices: list[str] = []
        metadata = {"name": "job", "namespace": "ns", "uid": "job-uid", "generation": 1}
        self.job: JSON = {"metadata": metadata, "spec": {kind.spec_key: {}}, "status": {}}

    def type(self, name: str, replicas: int = 1, policy: str | None = None, **pod_spec: Any) -> "World":
        container = {"name": self.kind.container, "image": "img"}
        entry: JSON = {"replicas": replicas, "template": {"spec": {"containers": [container], **pod_spec}}}
        if policy:
            entry["restartPolicy"] = policy
        self.job["spec"][self.kind.spec_key][name] = entry
        return self

    def policy(self, **fields: Any) -> "World":
        self.job["spec"].setdefault("runPolicy", {}).update(fields)
        return self

    def patient(self, seconds: float | None) -> "World":
        """The controller force-deletes pods that do not go ``seconds`` after their grace period."""
        self.settings = replace(self.settings, force_delete_after=seconds)
        return self

    def scale(self, name: str, replicas: int) -> "World":
        self.job["spec"][self.kind.spec_key][name]["replicas"] = replicas
        return self

    # --- what the controller does

    def plan(self, *, tried: bool = False) -> Plan:
        job = defaults.default(self.kind, deepcopy(self.job))
        seen = Snapshot(
            job=job,
            pods=tuple(deepcopy(list(self.pods.values()))),
            services=tuple(deepcopy(list(self.services.values()))),
            faults=self.faults,
            tried=tried,
            obstacle=self.obstacle if tried else None,
            extras={key: tuple(deepcopy(list(held.values()))) for key, held in self.extras.items()},
            settings=self.settings,
        )
        return decide(self.kind, seen, self.now)

    def step(self) -> bool:
        """One reconcile; whether anything changed."""
        plan = self.plan()
        self.met = False
        acted = self._acted(plan)
        if any(isinstance(action, Create | Update) for action in plan.actions):
            plan = self.plan(tried=True)
        self.wake = plan.wake
        self.notices += [notice.message for notice in plan.notices if notice.message not in self.notices]
        wrote = plan.status is not None and plan.status != self.job["status"]
        if wrote:
            self.job["status"] = deepcopy(plan.status)
            self.writes += 1
            self.events += [(event.type, event.reason, event.message) for event in plan.events]
        return any(acted) or wrote

    def _acted(self, plan: Plan) -> list[bool]:
        """The outcomes of the actions up to the first obstacle."""
        early = [action for action in plan.actions[:-1] if isinstance(action, DeleteJob)]
        assert not early, "a crash after the job's delete would lose the rest for ever"
        acted = []
        for action in plan.actions:
            acted.append(self._act(action))
            if self.met:
                break
        return acted

    def settle(self) -> "World":
        for _ in range(30):
            if not self.step():
                return self
        raise AssertionError("the controller does not come to rest")

    def _act(self, action: Any) -> bool:
        if isinstance(action, DeleteJob):
            self.deleted_job = True
            return False
        if isinstance(action, Create):
            return self._create(action)
        held = self._held(action.resource)
        if isinstance(action, Update):
            return self._update(held[action.name], action)
        assert isinstance(action, Delete)
        assert held[action.name]["metadata"]["uid"] == action.uid
        if self.slow_deletes and action.resource == "pods" and not action.force:
            self.leaves(action.name.removeprefix("job-"))
            return True
        del held[action.name]
        return True

    def _create(self, action: Create) -> bool:
        held = self._held(action.resource)
        if self.obstacle and action.resource == self.refused:
            self.met = True
            return False
        manifest = deepcopy(action.manifest)
        name = manifest["metadata"]["name"]
        assert name not in held, f"{name} is created twice"
        manifest["metadata"]["uid"] = f"uid-{next(self.uids)}"
        manifest["status"] = {"phase": "Pending"} if action.resource == "pods" else {}
        if manifest["kind"] == "PodGroup":  # what the API server and a gang scheduler fill in
            manifest["spec"] = {"queue": "default", **manifest["spec"]}
        held[name] = manifest
        self.created.append(name)
        return True

    def _update(self, stored: JSON, action: Update) -> bool:
        assert stored["metadata"]["uid"] == action.uid
        assert action.change, "an update that changes nothing"
        for key, value in action.change.items():
            stored[key] = {**stored[key], **value} if isinstance(value, dict) else value
        self.updated.append(action.name)
        return True

    def _held(self, resource: str) -> dict[str, JSON]:
        plain = {"pods": self.pods, "services": self.services}
        return plain[resource] if resource in plain else self.extras.setdefault(resource, {})

    # --- what happens to pods

    def pod(self, name: str) -> JSON:
        return self.pods[f"job-{name}"]

    def runs(self, *names: str) -> "World":
        for name in names or [key.removeprefix("job-") for key in self.pods]:
            started = {"running": {"startedAt": times.written(self.now)}}
            self.pod(name)["status"] = {"phase": "Running", "containerStatuses": [self._container(started)]}
        return self

    def ends(self, name: str, code: int = 0, reason: str = "", *, phase: str = "", **status: Any) -> "World":
        ended = {
            "exitCode": code,
            "finishedAt": times.written(self.now),
            "reason": reason or ("Error" if code else "Completed"),
        }
        self.pod(name)["status"] = {
            "phase": phase or ("Failed" if code else "Succeeded"),
            "containerStatuses": [self._container({"terminated": ended})],
            **status,
        }
        return self

    def fails(self, name: str, **status: Any) -> "World":
        """The pod fails without any container having run."""
        self.pod(name)["status"] = {"phase": "Failed", **status}
        return self

    def restarts_in_place(self, name: str, count: int) -> "World":
        self.pod(name)["status"]["containerStatuses"][0]["restartCount"] = count
        return self

    def vanishes(self, *names: str) -> "World":
        for name in names:
            del self.pods[f"job-{name}"]
        return self

    def leaves(self, name: str, grace: int = 30) -> "World":
        """Someone asked for the pod's deletion; it still exists."""
        metadata = self.pod(name)["metadata"]
        metadata["deletionTimestamp"] = times.written(self.now + timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace
        return self

    def later(self, seconds: float) -> "World":
        self.now += timedelta(seconds=seconds)
        return self

    def _container(self, state: JSON) -> JSON:
        return {"name": self.kind.container, "state": state, "restartCount": 0}

    # --- what is seen

    @property
    def status(self) -> JSON:
        return self.job["status"]

    @property
    def state(self) -> str:
        """The one true state; checks that there is exactly one, and that it is last."""
        rows = [row for row in self.status["conditions"] if row["status"] == "True"]
        states = [row["type"] for row in rows if row["type"] not in ("Created", "Blocked")]
        assert len(states) == 1, rows
        assert self.status["conditions"][-1]["type"] == states[0] == self.status["phase"]
        return str(states[0])

    @property
    def reason(self) -> str:
        return str(self.status["conditions"][-1]["reason"])

    @property
    def message(self) -> str:
        return str(self.status["conditions"][-1]["message"])

    def condition(self, name: str) -> JSON | None:
        return next((row for row in self.status["conditions"] if row["type"] == name), None)

    def replica(self, name: str) -> JSON:
        found: JSON = self.status["replicaStatuses"][name]
        return found

    def uid(self, name: str) -> str:
        return str(self.pod(name)["metadata"]["uid"])

    @property
    def extra_names(self) -> list[str]:
        """``Kind/name`` of every child that is neither a pod nor a Service."""
        return sorted(f"{item['kind']}/{name}" for held in self.extras.values() for name, item in held.items())

    @property
    def names(self) -> list[str]:
        return sorted(name.removeprefix("job-") for name in self.pods)
