"""The webhook over HTTP: every answer is a well-formed AdmissionReview, whatever comes in."""

import base64
import io

import jsonpatch
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.test import EnvironBuilder, run_wsgi_app

from schemas import kinds
from webhook.app import LARGEST_BODY, create_app

APP = create_app()
APP.testing = True  # exceptions reach the test
CLIENT = APP.test_client()
PATHS = pytest.mark.parametrize("path", ["/mutate", "/validate"])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def review(obj, old=None, operation="CREATE", kind="TrainingJob", group="signalbox.dev", **request):
    version = {"group": group, "version": "v1", "kind": kind}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u-1", "kind": version, "operation": operation, "object": obj, "oldObject": old, **request},
    }


def post(path, body):
    answer = CLIENT.post(path, data=body if isinstance(body, bytes) else orjson.dumps(body))
    assert answer.status_code == 200, answer.data
    document = orjson.loads(answer.data)
    assert (document["apiVersion"], document["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = document["response"]
    assert response["uid"] == "u-1"
    if not response["allowed"]:
        assert response["status"]["details"]["causes"]
        assert "patch" not in response
    return response


def patched(obj, response):
    if "patch" not in response:
        return obj
    assert response["patchType"] == "JSONPatch"
    return jsonpatch.JsonPatch(orjson.loads(base64.b64decode(response["patch"]))).apply(obj)


def job(**spec):
    pod = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    metadata = {"name": "job", "namespace": "ns"}
    return {"metadata": metadata, "spec": {"replicaSpecs": {"Worker": {"template": pod}}, **spec}}


@pytest.mark.parametrize("policy", ["absent", None])
def test_a_missing_section_is_added_whole(policy):
    """knative/pkg#162"""
    obj = job() if policy == "absent" else job(runPolicy=None)
    response = post("/mutate", review(obj))
    operations = orjson.loads(base64.b64decode(response["patch"]))
    [operation] = [item for item in operations if item["path"].startswith("/spec/runPolicy")]
    assert operation == {
        "op": "add" if policy == "absent" else "replace",
        "path": "/spec/runPolicy",
        "value": {"cleanPodPolicy": "Running"},
    }
    assert patched(obj, response)["spec"]["replicaSpecs"]["Worker"]["replicas"] == 1


def test_its_own_output_gives_no_patch():
    """knative/pkg#1195"""
    once = patched(job(), post("/mutate", review(job())))
    for again in (review(once), review(once, once, "UPDATE")):
        response = post("/mutate", again)
        assert response["allowed"]
        assert "patch" not in response


@PATHS
def test_a_refusal_is_a_status_like_the_api_servers(path):
    obj = job(runPolicy={"backoffLimit": "3", "cleanPodPolicy": "running"})
    status = post(path, review(obj))["status"]
    assert (status["code"], status["reason"], status["status"]) == (422, "Invalid", "Failure")
    assert status["details"] == {
        "group": "signalbox.dev",
        "kind": "TrainingJob",
        "name": "job",
        "causes": [
            {
                "reason": "FieldValueTypeInvalid",
                "field": "spec.runPolicy.backoffLimit",
                "message": 'must be an integer (got "3")',
            },
            {
                "reason": "FieldValueNotSupported",
                "field": "spec.runPolicy.cleanPodPolicy",
                "message": 'must be one of All, Running, None (got "running")',
            },
        ],
    }
    assert status["message"] == (
        "TrainingJob 'job' is invalid: "
        'spec.runPolicy.backoffLimit: must be an integer (got "3"); '
        'spec.runPolicy.cleanPodPolicy: must be one of All, Running, None (got "running")'
    )


@PATHS
@pytest.mark.parametrize(
    "request_",
    [
        review(None, job(), "DELETE"),
        review(None, None, "DELETE"),
        review({}, None, "CONNECT"),
        review(job(), None, subResource="status"),
        review({"kind": "Scale"}, None, "UPDATE", subResource="scale"),
        review({"spec": 1}, None, kind="Pod", group=""),
    ],
)
def test_what_is_none_of_our_business_passes(path, request_):
    """nolar/kopf#857, kubeedge/kubeedge#7178"""
    response = post(path, request_)
    assert response["allowed"]
    assert "patch" not in response


@PATHS
def test_a_job_being_deleted_passes_however_invalid(path):
    """ome-projects/ome#846: finalizers must come off."""
    bad = {
        "metadata": {"name": "7x", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"replicaSpecs": {"Worker": None}},
    }
    response = post(path, review(bad, bad, "UPDATE"))
    assert response["allowed"]
    assert "patch" not in response


@PATHS
def test_an_update_of_metadata_alone_is_never_refused(path):
    old = job(runPolicy={"backoffLimit": -1})
    new = {**old, "metadata": {**old["metadata"], "name": "7x", "finalizers": ["a/b"]}}
    assert post(path, review(new, old, "UPDATE"))["allowed"]


@PATHS
def test_suspending_an_invalid_job_is_never_refused(path):
    old = job(runPolicy={"backoffLimit": -1})
    new = {**old, "spec": {**old["spec"], "runPolicy": {"backoffLimit": -1, "suspend": True}}}
    assert post(path, review(new, old, "UPDATE"))["allowed"]


@PATHS
def test_a_dry_run_is_answered_the_same(path):
    for obj in (job(), job(runPolicy=3)):
        plain, dry = (post(path, review(obj, dryRun=value)) for value in (False, True))
        assert plain == dry


@PATHS
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b"[]", "apiVersion"),
        (b'{"apiVersion": "admission.k8s.io/v1beta1"}', "apiVersion"),
        (b'{"apiVersion": "admission.k8s.io/v1"}', "request.uid"),
        (b'{"apiVersion": "admission.k8s.io/v1", "request": {"uid": ""}}', "request.uid"),
    ],
)
def test_what_is_no_review_is_a_bad_request(path, body, words):
    answer = CLIENT.post(path, data=body)
    assert answer.status_code == 400
    assert words in orjson.loads(answer.data)["error"]


@PATHS
def test_a_body_that_is_too_large(path):
    assert CLIENT.post(path, data=b"x" * (LARGEST_BODY + 1)).status_code == 413


@PATHS
def test_a_body_without_a_length_is_read_no_further_than_that(path):
    stream = io.BytesIO(b"x" * (2 * LARGEST_BODY))
    environ = EnvironBuilder(path, method="POST").get_environ()
    environ |= {"wsgi.input": stream, "wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    _, status, _ = run_wsgi_app(APP, environ)
    assert status.startswith("4")
    assert 0 < stream.tell() <= LARGEST_BODY + 1


@PATHS
def test_nesting_without_end_is_refused_and_the_next_job_served(path):
    deep = b"[" * 900 + b"]" * 900
    body = orjson.dumps(review("@")).replace(
        b'"@"', b'{"metadata": {"name": "a"}, "spec": {"replicaSpecs": ' + deep + b"}}"
    )
    assert not post(path, body)["allowed"]
    assert post(path, review(job()))["allowed"]


def test_a_warning_is_given():
    response = post("/validate", review(job(backoffLimit=3)))
    assert response["allowed"]
    assert response["warnings"] == ["spec.backoffLimit: has no effect: use spec.runPolicy.backoffLimit"]


def test_a_typing_error_in_a_direct_review_is_named():
    """kubeflow/mpi-operator#224: the API server would have pruned or refused the field."""
    obj = job()
    container = obj["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    container["imagePullpolicy"] = "Always"
    [warning] = post("/validate", review(obj))["warnings"]
    assert warning.endswith("must be a known field: did you mean imagePullPolicy?")


@settings(max_examples=200)
@given(obj=JSON_VALUES, old=JSON_VALUES, operation=st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT", ""]))
def test_any_json_gets_a_well_formed_answer(obj, old, operation):
    for kind in kinds.KINDS:
        for path in ("/mutate", "/validate"):
            post(path, review(obj, old, operation, kind.kind, kind.group))


@settings(max_examples=200)
@given(spec=JSON_VALUES)
def test_what_is_admitted_is_patched_to_something_valid(spec):
    for path, value in (("replicaSpecs", spec), ("runPolicy", spec), ("successPolicy", spec)):
        obj = job(**{path: value})
        response = post("/mutate", review(obj))
        if response["allowed"]:
            assert post("/validate", review(patched(obj, response)))["allowed"]
