"""The shipped manifests, rendered by kubectl as a user's would be, held against the kind table."""

import subprocess

import pytest
import yaml

from certs.issue import Names
from controller.extras import POD_GROUPS, RULES
from schemas.kinds import KINDS
from signalbox.local.paths import deploy_dir
from signalbox.local_webhooks import local_configurations

NAMESPACE = "signalbox-system"
OWN = {"signalbox.dev"}
KUBEFLOW = {"signalbox.dev", "kubeflow.org"}
INSTALLATIONS = [
    (".", OWN),
    ("overlays/kubeflow", KUBEFLOW),
    ("overlays/mpi", KUBEFLOW),
    ("overlays/history", OWN),
]
WITH_HISTORY = INSTALLATIONS[3:]


@pytest.fixture(scope="module", params=INSTALLATIONS, ids=["own", "kubeflow", "mpi", "history"])
def installation(request):
    """What one command installs, by (kind, name), and the API groups it is for."""
    directory, groups = request.param
    rendered = subprocess.check_output(["kubectl", "kustomize", str(deploy_dir() / directory)], text=True)
    found = yaml.load_all(rendered, Loader=yaml.CSafeLoader)  # 50,000 lines
    return {(each["kind"], each["metadata"]["name"]): each for each in found}, groups


@pytest.fixture
def objects(installation):
    return installation[0]


@pytest.fixture
def expected(installation):
    """The resources that this installation is for: (group, version, plural)."""
    return {(kind.group, kind.version, kind.plural) for kind in KINDS if kind.group in installation[1]}


@pytest.fixture(params=["mutating", "validating"])
def configuration(request, objects):
    return objects[f"{request.param.capitalize()}WebhookConfiguration", f"signalbox-{request.param}"]


@pytest.fixture
def webhook(configuration):
    """The one for jobs; the other, for policies, has a test of its own."""
    return configuration["webhooks"][0]


def pod_specs(objects):
    for (kind, name), each in objects.items():
        if kind == "Deployment":
            yield name, each["spec"]["template"]["spec"]


def test_crds_of_exactly_these_kinds(objects, expected):
    """A cluster that has the originals of another group keeps them."""
    crds = {name for kind, name in objects if kind == "CustomResourceDefinition"}
    assert crds == {f"{plural}.{group}" for group, _, plural in expected} | {"trainingpolicies.signalbox.dev"}


def test_every_kind_is_in_one_installation():
    assert {kind.group for kind in KINDS} == KUBEFLOW


def test_rules_match_exactly_our_kinds(webhook, expected):
    """Plain resources and no wildcard; every kind, and nothing else (knative/pkg#2115). Of the subresources only scale
    is validated: status writes never meet the spec rules.
    """
    scales = {(group, version, f"{plural}/scale") for group, version, plural in expected}
    wanted = expected | (scales if webhook["name"].startswith("validate") else set())
    listed = [
        (group, version, resource)
        for rule in webhook["rules"]
        for group in rule["apiGroups"]
        for version in rule["apiVersions"]
        for resource in rule["resources"]
    ]
    assert len(listed) == len(set(listed))
    assert set(listed) == wanted
    assert all(rule["operations"] in (["CREATE", "UPDATE"], ["UPDATE"]) for rule in webhook["rules"])
    assert all(rule["scope"] == "Namespaced" for rule in webhook["rules"])


def test_webhooks_lock_nobody_out(webhook):
    """Not our own namespace, not what is being deleted, and no longer than 10 s."""
    [namespaces] = webhook["namespaceSelector"]["matchExpressions"]
    assert namespaces == {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["kube-system", NAMESPACE],
    }
    [condition] = webhook["matchConditions"]
    assert condition["expression"] == "!has(object.metadata.deletionTimestamp)"
    assert webhook["timeoutSeconds"] <= 3
    assert webhook["matchPolicy"] == "Equivalent"


def test_webhooks_allow_dry_run(webhook):
    assert webhook["sideEffects"] == "NoneOnDryRun"


def test_defaulting_may_fail_and_validation_may_not(objects):
    [mutating, *_] = objects["MutatingWebhookConfiguration", "signalbox-mutating"]["webhooks"]
    [validating, *_] = objects["ValidatingWebhookConfiguration", "signalbox-validating"]["webhooks"]
    assert (mutating["failurePolicy"], mutating["timeoutSeconds"]) == ("Ignore", 2)
    assert (validating["failurePolicy"], validating["timeoutSeconds"]) == ("Fail", 3)
    assert mutating["reinvocationPolicy"] == "IfNeeded"


def test_policies_are_checked_by_a_webhook_that_matches_nothing_else(objects):
    [_, webhook] = objects["ValidatingWebhookConfiguration", "signalbox-validating"]["webhooks"]
    [rule] = webhook["rules"]
    assert (rule["resources"], rule["scope"]) == (["trainingpolicies"], "Cluster")
    assert (webhook["failurePolicy"], webhook["timeoutSeconds"], webhook["sideEffects"]) == ("Fail", 3, "None")
    assert [one["expression"] for one in webhook["matchConditions"]] == ["!has(object.metadata.deletionTimestamp)"]


def test_webhook_and_controller_may_read_policies_and_write_their_status(objects):
    for account, read in (("webhook", {"get", "list", "watch"}), ("controller", {"list", "watch"})):
        granted = allowed(objects["ClusterRole", f"signalbox-{account}"])
        assert {verb for _, resource, verb in granted if resource == "trainingpolicies"} == read
        assert {verb for _, resource, verb in granted if resource == "trainingpolicies/status"} == {"patch"}
        assert {verb for _, resource, verb in granted if resource == "namespaces"} == read


def test_webhooks_call_a_service_that_selects_the_webhook(objects, webhook):
    called = webhook["clientConfig"]["service"]
    assert called["namespace"] == NAMESPACE
    service = objects["Service", called["name"]]["spec"]
    labels = objects["Deployment", "signalbox-webhook"]["spec"]["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    assert called["port"] in [port["port"] for port in service["ports"]]


def allowed(role):
    """(group, resource, verb) of every rule that is not limited to names."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        if not rule.get("resourceNames")
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_controller_may_work_on_every_kind_and_no_other(objects, expected):
    """Finalizers of every kind, or OwnerReferencesPermissionEnforcement refuses the pods (kubeflow/trainer#1552)."""
    roles = (bound(objects, each) for (kind, _), each in objects.items() if kind == "ClusterRoleBinding")
    granted = {entry for name, role in roles if name == "signalbox-controller" for entry in allowed(role)}
    jobs = {entry for entry in granted if not entry[1].startswith("trainingpolicies")}
    assert {entry for entry in jobs if entry[0] in {kind.group for kind in KINDS}} == {
        (group, resource, verb)
        for group, _, plural in expected
        for resource, verbs in (
            (plural, ("get", "list", "watch", "delete")),
            (f"{plural}/status", ("update",)),
            (f"{plural}/finalizers", ("update",)),
        )
        for verb in verbs
    }


def test_controller_may_read_the_crds_of_its_kinds_and_no_other(objects, expected):
    """It looks whether they keep our status."""
    rules = [rule for (kind, _), each in objects.items() if kind == "ClusterRole" for rule in each["rules"]]
    crds = [rule for rule in rules if rule["resources"] == ["customresourcedefinitions"]]
    assert {name for rule in crds for name in rule["resourceNames"]} == {f"{p}.{group}" for group, _, p in expected}
    assert {verb for rule in crds for verb in rule["verbs"]} == {"get"}


@pytest.mark.parametrize("installation", INSTALLATIONS[1:3], indirect=True, ids=["kubeflow", "mpi"])
def test_controller_may_make_extra_children(objects, request):
    """PodGroups everywhere; what lets mpirun run commands in pods only with the overlay that is for it."""
    roles = (bound(objects, each) for (kind, _), each in objects.items() if kind == "ClusterRoleBinding")
    granted = {entry for name, role in roles if name == "signalbox-controller" for entry in allowed(role)}
    verbs = ("create", "get", "list", "watch", "patch", "delete")
    gangs = {(sort.group, sort.plural, verb) for sort in POD_GROUPS.values() for verb in verbs}
    mpi = {(sort.group, sort.plural, verb) for sort in RULES["mpi"].sorts for verb in verbs}
    assert gangs <= granted
    with_overlay = request.node.callspec.id == "mpi"
    assert (mpi | {("", "pods/exec", "create")} <= granted) is with_overlay
    assert mpi.isdisjoint(granted) is not with_overlay


def bound(objects, binding):
    """The account that a binding is for, and its role."""
    [subject] = binding["subjects"]
    return subject["name"], objects[binding["roleRef"]["kind"], binding["roleRef"]["name"]]


def test_roles_are_small(objects):
    roles = [each for (kind, _), each in objects.items() if kind in {"Role", "ClusterRole"}]
    granted = {entry for role in roles for entry in allowed(role)}
    assert not [entry for entry in granted if "*" in entry]
    assert {entry for entry in granted if entry[1] == "secrets"} == {("", "secrets", "create")}
    assert not [entry for entry in granted if entry[2] in {"escalate", "bind", "impersonate", "deletecollection"}]


def test_certs_may_touch_what_it_names(objects):
    limited = {
        (resource, name): set(rule["verbs"])
        for kind in ("Role", "ClusterRole")
        for rule in objects[kind, "signalbox-certs"]["rules"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ())
    }
    assert limited == {
        ("secrets", "signalbox-webhook-ca"): {"get", "update"},
        ("secrets", "signalbox-webhook-tls"): {"get", "update"},
        ("mutatingwebhookconfigurations", "signalbox-mutating"): {"get", "list", "watch", "patch"},
        ("validatingwebhookconfigurations", "signalbox-validating"): {"get", "list", "watch", "patch"},
    }


def test_every_binding_leads_from_an_account_to_a_role(objects):
    for (kind, _), each in objects.items():
        if kind in {"RoleBinding", "ClusterRoleBinding"}:
            assert (each["roleRef"]["kind"], each["roleRef"]["name"]) in objects
            for subject in each["subjects"]:
                assert (subject["kind"], subject["name"]) in objects
                assert subject["namespace"] == NAMESPACE


def test_pods_meet_the_restricted_standard(objects):
    seen = dict(pod_specs(objects))
    assert set(seen) - {"signalbox-history"} == {"signalbox-webhook", "signalbox-controller"}
    for spec in seen.values():
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["readOnlyRootFilesystem"]
            assert not context["allowPrivilegeEscalation"]
            assert container["image"] == "signalbox:0.1.0"


def test_ca_key_is_mounted_nowhere(objects):
    volumes = [volume for _, spec in pod_specs(objects) for volume in spec.get("volumes", ())]
    mounted = [volume["secret"]["secretName"] for volume in volumes if "secret" in volume]
    assert set(mounted) - {"signalbox-history-tokens"} <= {"signalbox-history", "signalbox-webhook-tls"}


@pytest.mark.parametrize("installation", WITH_HISTORY, indirect=True, ids=["history"])
def test_each_process_gets_the_tokens_it_needs(objects):
    """Who writes needs no reader's token; the controller and the webhook start before there is any."""
    mounted = {}
    for name, spec in pod_specs(objects):
        for volume in spec["volumes"]:
            if volume.get("secret", {}).get("secretName") == "signalbox-history-tokens":
                keys = {item["key"] for item in volume["secret"]["items"]}
                mounted[name.removeprefix("signalbox-")] = (keys, volume["secret"].get("optional", False))
    assert mounted == {
        "controller": ({"ingest"}, True),
        "webhook": ({"ingest"}, True),
        "history": ({"ingest", "page"}, False),
    }


@pytest.mark.parametrize("installation", WITH_HISTORY, indirect=True, ids=["history"])
def test_the_history_has_one_process_without_rights(objects):
    deployment = objects["Deployment", "signalbox-history"]["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    assert deployment["template"]["spec"]["automountServiceAccountToken"] is False
    assert objects["ServiceAccount", "signalbox-history"]["automountServiceAccountToken"] is False
    accounts = {bound(objects, each)[0] for (kind, _), each in objects.items() if kind.endswith("Binding")}
    assert accounts == {"signalbox-controller", "signalbox-webhook"}


@pytest.mark.parametrize("installation", WITH_HISTORY, indirect=True, ids=["history"])
def test_only_our_own_processes_and_a_chosen_proxy_reach_the_history(objects):
    everybody = objects["NetworkPolicy", "signalbox-default"]["spec"]
    assert (everybody["podSelector"], everybody.get("ingress")) == ({}, None)
    [rule] = objects["NetworkPolicy", "signalbox-history"]["spec"]["ingress"]
    ours, proxy = rule["from"]
    [expression] = ours["podSelector"]["matchExpressions"]
    assert (expression["operator"], expression["values"]) == ("In", ["controller", "webhook"])
    assert proxy == {"namespaceSelector": {"matchLabels": {"signalbox.dev/history": "allowed"}}}
    assert [port["port"] for port in rule["ports"]] == ["http"]


def test_every_pod_is_probed_and_asks_for_what_it_needs(objects):
    for name, spec in pod_specs(objects):
        [container] = spec["containers"]
        ports = {port["name"] for port in container["ports"]}
        for probe in ("livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] in ports, name
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}


def test_two_of_each_on_nodes_of_their_own_outlive_a_drain(objects):
    for name in ("webhook", "controller"):
        deployment = objects["Deployment", f"signalbox-{name}"]["spec"]
        budget = objects["PodDisruptionBudget", f"signalbox-{name}"]["spec"]
        labels = deployment["template"]["metadata"]["labels"].items()
        assert (deployment["replicas"], budget["minAvailable"]) == (2, 1)
        assert budget["selector"]["matchLabels"].items() <= labels
        spec = deployment["template"]["spec"]
        [apart] = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        assert apart["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
        assert apart["podAffinityTerm"]["labelSelector"]["matchLabels"].items() <= labels


def test_the_webhook_drains_before_it_is_killed(objects):
    """preStop, while the endpoint is removed; then gunicorn's graceful timeout."""
    spec = objects["Deployment", "signalbox-webhook"]["spec"]["template"]["spec"]
    assert spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "5"]
    assert spec["terminationGracePeriodSeconds"] > 5 + 25


@pytest.mark.parametrize("installation", [("overlays/kubeflow", KUBEFLOW)], indirect=True, ids=["kubeflow"])
def test_local_configurations_differ_only_in_whom_they_call(objects):
    """A local cluster has every kind."""
    for found in local_configurations("https://127.0.0.1:9443/", b"ca"):
        shipped = objects[found["kind"], found["metadata"]["name"]]
        for webhook, original in zip(found["webhooks"], shipped["webhooks"], strict=True):
            path = original["clientConfig"]["service"]["path"]
            assert webhook.pop("clientConfig") == {"url": f"https://127.0.0.1:9443{path}", "caBundle": "Y2E="}
            assert webhook == {name: value for name, value in original.items() if name != "clientConfig"}


@pytest.fixture(scope="module")
def by_cert_manager():
    rendered = subprocess.check_output(
        ["kubectl", "kustomize", str(deploy_dir() / "overlays" / "cert-manager")], text=True
    )
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(rendered)}


def test_with_cert_manager_the_controller_keeps_its_hands_off(by_cert_manager):
    """No option, and no right, to touch what cert-manager makes."""
    [controller] = by_cert_manager["Deployment", "signalbox-controller"]["spec"]["template"]["spec"]["containers"]
    assert "--certificates=off" in controller["args"]
    assert not [name for _, name in by_cert_manager if name == "signalbox-certs"]
    for kind, name in (("Mutating", "mutating"), ("Validating", "validating")):
        annotations = by_cert_manager[f"{kind}WebhookConfiguration", f"signalbox-{name}"]["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": f"{NAMESPACE}/signalbox-webhook"}


def test_cert_manager_fills_the_secret_that_is_mounted_for_the_names_that_are_called(by_cert_manager):
    spec = by_cert_manager["Certificate", "signalbox-webhook"]["spec"]
    assert spec["secretName"] == "signalbox-webhook-tls"
    assert tuple(spec["dnsNames"]) == Names("signalbox-webhook", NAMESPACE).dns
    issuer = by_cert_manager["Issuer", spec["issuerRef"]["name"]]["spec"]["ca"]
    assert issuer == {"secretName": by_cert_manager["Certificate", "signalbox-webhook-ca"]["spec"]["secretName"]}
