"""What would have come of a submission."""

import pytest

from policy.model import PolicySet
from policy.replay import evaluable, replayed

CAP = {"limits": {"replicas": {"max": 2}}}
FILL = {"defaults": {"runPolicy": {"backoffLimit": 3}}}
SELECTOR = {"match": {"namespaceSelector": {"matchLabels": {"team": "a"}}}}
READS = {"rules": [{"name": "r", "message": "m", "expression": "namespaceObject.metadata.name != ''"}]}


@pytest.mark.parametrize(
    ("workers", "run_policy", "specs", "word", "rules"),
    [
        (3, None, [CAP], "refused", {("p0", "replicas", "refused")}),
        (3, None, [CAP | {"enforcement": "Warn"}], "warned", {("p0", "replicas", "warned")}),
        (3, None, [CAP | {"enforcement": "Audit"}], "audited", {("p0", "replicas", "audited")}),
        (1, None, [FILL], "changed", {("p0", "spec.runPolicy.backoffLimit", "changed")}),
        (1, None, [FILL | {"defaultsMode": "Audit"}], "audited", {("p0", "spec.runPolicy.backoffLimit", "audited")}),
        (3, None, [FILL, CAP], "refused",
         {("p0", "spec.runPolicy.backoffLimit", "changed"), ("p1", "replicas", "refused")}),
        (1, None, [CAP], "unchanged", set()),
        (1, {"backoffLimit": 1}, [FILL], "unchanged", set()),
        (3, {"backoffLimit": "x"}, [CAP, FILL], "invalid", set()),
        (3, None, [], "unchanged", set()),
    ],
)  # fmt: skip
def test_the_weightiest_outcome_and_whose_it_is(request_of, job, good, now, workers, run_policy, specs, word, rules):
    policies = PolicySet(good(f"p{place}", **spec) for place, spec in enumerate(specs))
    found = replayed(policies, request_of(job(Worker=workers, run_policy=run_policy)), now)
    assert (found.word, found.rules) == (word, rules)
    assert found.as_json["verdict"] == word


def test_policies_that_ask_for_unknown_labels_are_left_out(good):
    policies = [good("a", **CAP), good("b", **CAP, **SELECTOR), good("c", **READS)]
    kept, left_out = evaluable(policies, labels_known=False)
    assert ([policy.name for policy in kept.all], left_out) == (["a"], ("b", "c"))
    assert evaluable(policies, labels_known=True)[1] == ()
