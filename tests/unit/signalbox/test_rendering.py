"""What `signalbox manifests` prints for each of its options."""

import json

import pytest
import yaml
from click.testing import CliRunner

from schemas.kinds import KINDS
from signalbox import rendering
from signalbox.manifests import manifests


@pytest.fixture(scope="module")
def printed():
    """The objects that a call prints, by (kind, name)."""

    def call(*arguments):
        result = CliRunner().invoke(manifests, list(arguments))
        assert result.exit_code == 0, result.output
        return {
            (each["kind"], each["metadata"]["name"]): each
            for each in yaml.load_all(result.stdout, Loader=yaml.CSafeLoader)
        }

    return call


@pytest.fixture(scope="module")
def plain(printed):
    return printed()


POLICIES = "trainingpolicies.signalbox.dev"


def container(objects, name):
    [found] = objects["Deployment", f"signalbox-{name}"]["spec"]["template"]["spec"]["containers"]
    return found


def crds(objects):
    return {name for kind, name in objects if kind == "CustomResourceDefinition"}


def test_without_options_it_is_what_deploy_holds(plain):
    shipped = {(each["kind"], each["metadata"]["name"]): each for each in rendering.rendered(["."])}
    assert plain == shipped
    assert crds(plain) == {"trainingjobs.signalbox.dev", POLICIES}


@pytest.fixture(scope="module")
def moved(printed):
    return printed("--namespace", "ml", "--image", "registry.example/signalbox@sha256:0", "--gang-scheduler", "volcano")


def test_the_namespace_is_moved_everywhere(moved):
    assert "signalbox-system" not in json.dumps(list(moved.values()))
    assert ("Namespace", "ml") in moved
    webhooks = moved["ValidatingWebhookConfiguration", "signalbox-validating"]["webhooks"]
    assert {webhook["clientConfig"]["service"]["namespace"] for webhook in webhooks} == {"ml"}
    [for_jobs] = [webhook for webhook in webhooks if "namespaceSelector" in webhook]
    assert for_jobs["namespaceSelector"]["matchExpressions"][0]["values"] == ["kube-system", "ml"]
    for (kind, _), each in moved.items():
        if kind.endswith("Binding"):
            assert {subject["namespace"] for subject in each["subjects"]} == {"ml"}


def test_image_and_gang_scheduler_reach_the_processes(moved):
    assert container(moved, "webhook")["image"] == "registry.example/signalbox@sha256:0"
    assert container(moved, "controller")["args"][-1] == "--gang-scheduler=volcano"
    assert "--gang-scheduler=volcano" not in container(moved, "webhook")["args"]


def test_only_the_wanted_kinds_are_installed_asked_about_and_allowed(printed):
    objects = printed("-k", "PyTorchJob", "-k", "mpijobs")
    assert crds(objects) == {"pytorchjobs.kubeflow.org", "mpijobs.kubeflow.org", POLICIES}
    text = json.dumps(list(objects.values()))
    assert not [
        kind.plural for kind in KINDS if f'"{kind.plural}' in text and kind.plural not in ("pytorchjobs", "mpijobs")
    ]
    webhooks = objects["ValidatingWebhookConfiguration", "signalbox-validating"]["webhooks"]
    assert [rule["resources"] for webhook in webhooks for rule in webhook["rules"]] == [
        ["mpijobs", "pytorchjobs"],
        ["mpijobs/scale", "pytorchjobs/scale"],
        ["trainingpolicies"],
    ]


def test_an_unknown_kind_is_named_with_those_that_are_known():
    result = CliRunner().invoke(manifests, ["--kinds", "SparkJob"])
    assert result.exit_code == 2
    assert "must be kinds out of TrainingJob.signalbox.dev, PyTorchJob.kubeflow.org" in result.output
    assert "(got 'SparkJob')" in result.output


def test_the_history_is_where_a_secret_says(printed, plain):
    def secrets(objects):
        pod = objects["Deployment", "signalbox-controller"]["spec"]["template"]["spec"]
        return [volume["secret"] for volume in pod["volumes"] if "secret" in volume]

    [found] = secrets(plain)
    assert (found["secretName"], found["optional"]) == ("signalbox-history", True)
    [found] = secrets(printed("--history-url-secret", "db"))
    assert found["secretName"] == "db"
    assert "--history-url-file=/run/signalbox/history/url" in container(plain, "controller")["args"]


def test_a_history_on_a_volume_has_one_writer(printed):
    objects = printed("--history-volume")
    deployment = objects["Deployment", "signalbox-controller"]["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    assert ("PersistentVolumeClaim", "signalbox-history") in objects
    assert ("PodDisruptionBudget", "signalbox-controller") not in objects
    pod = deployment["template"]["spec"]
    mounts = pod["containers"][0]["volumeMounts"]
    assert {volume["name"] for volume in pod["volumes"]} == {mount["name"] for mount in mounts} == {"database", "tmp"}
    assert not [volume for volume in pod["volumes"] if "secret" in volume]


def test_monitoring_is_added(printed):
    assert ("PrometheusRule", "signalbox") in printed("--monitoring")


def test_what_kubectl_cannot_render_is_said():
    with pytest.raises(rendering.RenderError, match="no-such"):
        rendering.rendered(["no-such"])
