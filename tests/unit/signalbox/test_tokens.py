"""The Secret with the tokens of the history's process."""

import base64
import threading

import pytest

from kube.errors import AlreadyExists, NotFound, Unreachable
from signalbox import tokens


class Kube:
    """One Secret, and the faults that are to come."""

    def __init__(self, *faults, found=None):
        self.faults, self.found, self.created = list(faults), found, []

    def get(self, path):
        assert path == "/api/v1/namespaces/ml/secrets/tokens"
        if self.found is None:
            raise NotFound("not found", status=404)
        return self.found

    def create(self, path, body):
        assert path == "/api/v1/namespaces/ml/secrets"
        if self.faults:
            raise self.faults.pop(0)
        self.found = body
        self.created.append(body)
        return body


def values(secret):
    return [base64.b64decode(secret["data"][key]).decode() for key in tokens.KEYS]


def test_a_secret_that_is_missing_is_made_with_tokens_of_its_own():
    kube = Kube()
    assert tokens.ensure(kube, "ml", "tokens")
    ingest, page = values(kube.found)
    assert ingest != page
    assert min(len(ingest), len(page)) >= 43  # 32 bytes
    assert values(tokens.secret("ml", "tokens")) != [ingest, page]


def test_a_secret_that_is_there_stays():
    kube = Kube(found={"data": {}})
    assert not tokens.ensure(kube, "ml", "tokens")
    assert kube.created == []


def test_another_may_have_been_faster():
    assert not tokens.ensure(Kube(AlreadyExists("taken", status=409)), "ml", "tokens")


@pytest.mark.parametrize(("faults", "pause"), [((), tokens.EVERY), ((Unreachable("no answer"),), tokens.RETRY)])
def test_the_next_look_is_sooner_after_a_failure(faults, pause):
    assert tokens._look(Kube(*faults), "ml", "tokens") == pause


def test_only_the_leader_makes_it():
    kube, stop, asked = Kube(), threading.Event(), []

    def leading():
        asked.append(1)
        if len(asked) == 2:
            stop.set()
        return False

    tokens._keep(kube, "ml", "tokens", leading, stop)
    assert kube.created == []


def test_without_a_name_there_is_no_thread():
    before = threading.active_count()
    tokens.start(Kube(), "ml", "", lambda: True, threading.Event())
    assert threading.active_count() == before
