"""What `signalbox manifests` prints for each of its options."""

import json

import pytest
import yaml
from click.testing import CliRunner

from certs.issue import Names
from schemas.kinds import KINDS
from signalbox import rendering
from signalbox.manifests import manifests
from signalbox.run_controller import controller
from signalbox.run_history_serve import serve
from signalbox.run_webhook import webhook


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


def test_a_history_on_a_volume_is_written_by_its_own_process(printed):
    objects = printed("--history-volume")
    assert ("PersistentVolumeClaim", "signalbox-history") in objects
    assert container(objects, "history")["args"][3:] == [
        "--history-url=sqlite:////var/lib/signalbox/history.db",
        "--token-file=/run/signalbox/tokens/page",
        "--metrics-bind=0.0.0.0:8080",
        "--ingest-token-file=/run/signalbox/tokens/ingest",
    ]
    controller = objects["Deployment", "signalbox-controller"]["spec"]
    assert controller["replicas"] == 2
    assert {
        "--history-url=http://signalbox-history:8090",
        "--history-token-file=/run/signalbox/history/ingest",
        "--history-token-secret=signalbox-history-tokens",
    } <= set(container(objects, "controller")["args"])
    environment = {each["name"]: each.get("value") for each in container(objects, "webhook")["env"]}
    assert environment["SIGNALBOX_WEBHOOK_HISTORY_URL"] == "http://signalbox-history:8090"
    assert environment["SIGNALBOX_WEBHOOK_HISTORY_TOKEN_FILE"] == "/run/signalbox/history/ingest"
    assert "SIGNALBOX_WEBHOOK_HISTORY_URL_FILE" not in environment


def test_the_overlay_is_what_the_option_prints(printed):
    shipped = {(each["kind"], each["metadata"]["name"]): each for each in rendering.rendered(["overlays/history"])}
    assert shipped == printed("--history-volume")


def test_the_page_of_a_database_takes_no_records(printed):
    objects = printed("--history-page", "--history-url-secret", "db")
    assert ("PersistentVolumeClaim", "signalbox-history") not in objects
    assert container(objects, "history")["args"][3:] == [
        "--history-url-file=/run/signalbox/history/url",
        "--token-file=/run/signalbox/tokens/page",
        "--metrics-bind=0.0.0.0:8080",
    ]
    volumes = objects["Deployment", "signalbox-history"]["spec"]["template"]["spec"]["volumes"]
    assert [volume["secret"]["secretName"] for volume in volumes if "secret" in volume] == [
        "db",
        "signalbox-history-tokens",
    ]


def test_a_proxy_may_vouch_for_readers(printed):
    arguments = container(printed("--history-volume", "--history-auth", "proxy-header"), "history")["args"]
    assert "--auth=proxy-header" in arguments
    assert not [argument for argument in arguments if argument.startswith("--token-file")]


def test_every_argument_is_an_option_of_its_command(printed):
    """A wrong one would stop the pod."""
    objects = printed("--history-volume", "--gang-scheduler", "volcano", "--cert-manager")
    for name, command in (("webhook", webhook), ("controller", controller), ("history", serve)):
        known = {text for parameter in command.params for text in parameter.opts}
        given = [each for each in container(objects, name)["args"] if each.startswith("--")]
        assert {each.partition("=")[0] for each in given} <= known


@pytest.mark.parametrize("options", [(), ("--history-volume",)], ids=["plain", "volume"])
def test_every_variable_is_an_option_of_the_webhook(printed, options):
    """click passes over one that it does not know."""
    prefix = "SIGNALBOX_WEBHOOK_"
    known = {f"{prefix}{parameter.name.upper()}" for parameter in webhook.params}
    given = {each["name"] for each in container(printed(*options), "webhook")["env"]}
    assert {name for name in given if name.startswith(prefix)} <= known
    assert {name for name in given if name.startswith(f"{prefix}HISTORY")}


def test_cert_manager_is_told_of_another_namespace(printed):
    objects = printed("--cert-manager", "--namespace", "ml")
    assert "signalbox-system" not in json.dumps(list(objects.values()))
    certificate = objects["Certificate", "signalbox-webhook"]
    assert tuple(certificate["spec"]["dnsNames"]) == Names("signalbox-webhook", "ml").dns
    for kind, name in (("Mutating", "mutating"), ("Validating", "validating")):
        annotations = objects[f"{kind}WebhookConfiguration", f"signalbox-{name}"]["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": "ml/signalbox-webhook"}
    issuers = {
        each["metadata"]["namespace"] for (kind, _), each in objects.items() if kind in ("Issuer", "Certificate")
    }
    assert issuers == {"ml"}


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("signalbox-system", "ml"),
        ("signalbox-system/signalbox-webhook", "ml/signalbox-webhook"),
        ("signalbox-webhook.signalbox-system.svc", "signalbox-webhook.ml.svc"),
        ("signalbox-systems", "signalbox-systems"),
        ("my-signalbox-system", "my-signalbox-system"),
    ],
)
def test_only_the_namespaces_name_is_moved(text, moved):
    assert rendering._moved([{"a": text, "b": 1}], "ml") == [{"a": moved, "b": 1}]


def test_monitoring_is_added(printed):
    assert ("PrometheusRule", "signalbox") in printed("--monitoring")


def test_what_kubectl_cannot_render_is_said():
    with pytest.raises(rendering.RenderError, match="no-such"):
        rendering.rendered(["no-such"])
