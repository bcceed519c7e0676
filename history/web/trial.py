"""A pasted policy tried on past submissions, within bounds of text, number and time."""

import threading
import time
from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus
from itertools import islice
from typing import Any

import orjson
import yaml

from history.api.problems import Problem
from history.reader import Reader
from history.whatif import Outcome, Sums, outcomes
from policy.compile import compiled, is_policy
from policy.model import Invalid, Policy
from policy.replay import evaluable
from schemas.job import mapping, text

MOST_TEXT = 64 * 1024  # characters
MOST_BODY = 4 * MOST_TEXT  # bytes: a form writes most signs of YAML as three
MOST_SUBMISSIONS = 5_000
MOST_SHOWN = 100
SECONDS = 5.0
TIMESTAMP = "tag:yaml.org,2002:timestamp"

_one_at_a_time = threading.Lock()


class Loader(yaml.SafeLoader):
    """Times stay texts, as in JSON."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (PyYAML's own attribute)
        first: [pair for pair in pairs if pair[0] != TIMESTAMP]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


@dataclass(slots=True)
class Trial:
    """What came of it; with ``faults`` nothing was tried."""

    faults: list[str] = field(default_factory=list)
    left_out: tuple[str, ...] = ()
    sums: Sums = field(default_factory=Sums)
    shown: list[Outcome] = field(default_factory=list)
    complete: bool = True
    """Whether all submissions of the span were tried."""


def tried(reader: Reader, written: str, since: datetime) -> Trial:
    """The policies in ``written`` (YAML) on what was submitted since. Raises Problem while another trial runs."""
    policies, faults = read(written)
    if faults:
        return Trial(faults)
    if not _one_at_a_time.acquire(timeout=SECONDS):
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "Another policy is being tried; try again soon.")
    try:
        return _tried(reader, policies, since)
    finally:
        _one_at_a_time.release()


def _tried(reader: Reader, policies: list[Policy], since: datetime) -> Trial:
    end = time.monotonic() + SECONDS
    known, left_out = evaluable(policies, labels_known=False)
    trial = Trial(left_out=left_out)
    found = outcomes(reader.submissions(since), known, Sums(), is_late=lambda: time.monotonic() > end)
    for outcome in islice(found, MOST_SUBMISSIONS + 1):
        if trial.sums.submissions == MOST_SUBMISSIONS or time.monotonic() > end:
            trial.complete = False
            break
        trial.sums.add(outcome)
        if outcome.is_worth_telling and len(trial.shown) < MOST_SHOWN:
            trial.shown.append(replace(outcome, row=outcome.row | {"object": None}))  # which may be megabytes
    return trial


def read(written: str) -> tuple[list[Policy], list[str]]:
    """The TrainingPolicies in a text, or what is wrong with it, a line each."""
    if len(written) > MOST_TEXT:
        return [], [f"policy: must be at most {MOST_TEXT} characters (got {len(written)})"]
    try:
        documents = [document for document in _documents(written) if is_policy(document)]
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, orjson.JSONEncodeError) as error:
        said = " ".join(str(error).split()) or "it cannot be read"
        return [], [f"policy: must be YAML: {said[:300]}"]
    if not documents:
        return [], ["policy: must hold a TrainingPolicy of signalbox.dev/v1"]
    policies: list[Policy] = []
    faults: list[str] = []
    for document in documents:
        found = compiled(document)
        name = text(mapping(document.get("metadata")).get("name"))
        if isinstance(found, Invalid):
            faults += [f"{name or 'policy'}: {fault}" for fault in found.faults]
        elif not name or name in [policy.name for policy in policies]:
            faults.append("metadata.name: must be set, and differ from the others'")
        else:
            policies.append(found)
    return policies, faults


def _documents(written: str) -> list[Any]:
    """As JSON has it. Aliases are refused: a few lines of them can stand for billions."""
    if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(written)):
        raise ValueError("aliases are not taken")
    loaded = list(yaml.load_all(written, Loader))
    return list(orjson.loads(orjson.dumps(loaded)))
