"""The client and the reflector against a real API server."""

import threading
import time
import uuid
from dataclasses import replace

import pytest

from kube import errors
from kube.config import connect
from kube.raw import RawKube
from kube.reflector import Reflector
from kube.resources import CONFIG_MAPS, NAMESPACES, PODS, Resource
from kube.store import Store

pytestmark = pytest.mark.cluster

SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")


@pytest.fixture
def connection(cluster):
    return connect(str(cluster.kubeconfig))


@pytest.fixture
def kube(connection):
    client = RawKube(connection)
    yield client
    client.close()


@pytest.fixture
def space(kube):
    """A namespace of the test's own."""
    name = f"kube-{uuid.uuid4().hex[:8]}"
    kube.create(NAMESPACES.path(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    kube.delete(NAMESPACES.path(None, name))


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "x"}}, "data": data}


def until(condition):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen within 10 s")


def test_create_read_replace_patch_delete(kube, space):
    path = CONFIG_MAPS.path(space, "a")
    created = kube.create(CONFIG_MAPS.path(space), config_map("a", x="1"))
    assert kube.get(path) == created
    replaced = kube.replace(path, created | {"data": {"x": "2", "y": "1"}})
    merged = kube.patch(path, {"data": {"y": None}}, kind="merge")
    assert (replaced["data"], merged["data"]) == ({"x": "2", "y": "1"}, {"x": "2"})
    tested = [{"op": "test", "path": "/data/x", "value": "2"}, {"op": "replace", "path": "/data/x", "value": "3"}]
    assert kube.patch(path, tested, kind="json")["data"] == {"x": "3"}
    kube.delete(path, uid=created["metadata"]["uid"])
    with pytest.raises(errors.NotFound) as caught:
        kube.get(path)
    assert (caught.value.status, caught.value.reason) == (404, "NotFound")


def test_conflicts(kube, space):
    path = CONFIG_MAPS.path(space, "a")
    old = kube.create(CONFIG_MAPS.path(space), config_map("a"))
    with pytest.raises(errors.AlreadyExists):
        kube.create(CONFIG_MAPS.path(space), config_map("a"))
    kube.patch(path, {"metadata": {"labels": {"a": "b"}}}, kind="merge")
    with pytest.raises(errors.Conflict):
        kube.replace(path, old)
    for precondition in ({"uid": str(uuid.uuid4())}, {"resource_version": old["metadata"]["resourceVersion"]}):
        with pytest.raises(errors.Conflict):
            kube.delete(path, **precondition)


def test_server_side_apply(kube, space):
    path = CONFIG_MAPS.path(space, "a")
    kube.patch(path, config_map("a", x="1"), kind="apply", field_manager="one")
    with pytest.raises(errors.Conflict, match="one"):
        kube.patch(path, config_map("a", x="2"), kind="apply", field_manager="two")
    taken = kube.patch(path, config_map("a", x="2"), kind="apply", field_manager="two", force=True)
    assert taken["data"] == {"x": "2"}


def test_invalid_objects(kube, space):
    with pytest.raises(errors.Invalid) as caught:
        kube.create(PODS.path(space), {"metadata": {"name": "a"}, "spec": {"containers": []}})
    assert caught.value.status == 422
    with pytest.raises(errors.Invalid):
        kube.get(CONFIG_MAPS.path(space), labelSelector="nonsense==!")


def test_integer_quantities_are_sent_as_they_are(kube, space):
    """The official client's models refuse ``nvidia.com/gpu: 1``."""
    resources = {"requests": {"cpu": 1}, "limits": {"cpu": 1}}
    container = {"name": "main", "image": "none", "resources": resources}
    pod = kube.create(PODS.path(space), {"metadata": {"name": "a"}, "spec": {"containers": [container]}})
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}
    kube.delete(PODS.path(space, "a"), grace_seconds=0)


def test_list_pages(kube, space):
    for number in range(7):
        kube.create(CONFIG_MAPS.path(space), config_map(f"a{number}"))
    pages = list(kube.pages(CONFIG_MAPS.path(space), label_selector="app=x", limit=3))
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert len({page.resource_version for page in pages}) == 1
    listing = kube.list(CONFIG_MAPS.path(space), label_selector="app=x", limit=2)
    assert [item["metadata"]["name"] for item in listing.items] == [f"a{number}" for number in range(7)]
    assert {(item["apiVersion"], item["kind"]) for item in listing.items} == {("v1", "ConfigMap")}


def test_token_without_rights_is_forbidden(kube, connection, space):
    kube.create(SERVICE_ACCOUNTS.path(space), {"metadata": {"name": "nobody"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = kube.create(SERVICE_ACCOUNTS.path(space, "nobody", "token"), request)["status"]["token"]
    powerless = replace(connection, token=lambda: token, client_cert_pem=None, client_key_pem=None)
    nobody = RawKube(powerless)
    with pytest.raises(errors.Forbidden, match="cannot list resource"):
        nobody.list(CONFIG_MAPS.path(space))
    with pytest.raises(errors.Forbidden, match="cannot watch resource"):
        next(nobody.watch(CONFIG_MAPS.path(space), resource_version="1", timeout_seconds=5))


def test_plain_text(kube):
    assert kube.text("/readyz") == "ok"


def test_watch_ends_in_time_and_starts_where_it_is_told(kube, space):
    version = kube.list(CONFIG_MAPS.path(space), label_selector="app=x").resource_version
    kube.create(CONFIG_MAPS.path(space), config_map("a"))
    kube.delete(CONFIG_MAPS.path(space, "a"))
    watch = kube.watch(CONFIG_MAPS.path(space), resource_version=version, label_selector="app=x", timeout_seconds=1)
    events = [(event.type, event.object["metadata"].get("name")) for event in watch if event.type != "BOOKMARK"]
    assert events == [("ADDED", "a"), ("DELETED", "a")]


@pytest.fixture
def follow(kube):
    """Runs a reflector until the test is over."""
    stop = threading.Event()
    threads = []

    def start(*arguments, **options):
        reflector = Reflector(kube, *arguments, **options)
        threads.append(threading.Thread(target=reflector.run, args=(stop,), daemon=True))
        threads[0].start()
        assert reflector.synced.wait(10)

    yield start
    stop.set()
    kube.stop_watches()
    threads[0].join(5)
    assert not threads[0].is_alive()


def test_reflector_follows_a_namespace(kube, space, follow):
    path, after = CONFIG_MAPS.path(space), CONFIG_MAPS.path(space, "after")
    kube.create(path, config_map("before"))
    store, told = Store(), []
    follow(path, store, label_selector="app=x", on_change=lambda kind, new, old: told.append(kind))
    kube.create(path, config_map("after", x="1"))
    until(lambda: len(store) == 2)
    store.observe(kube.patch(after, {"data": {"x": "2"}}, kind="merge"))  # or the watch was faster
    assert store.get(space, "after")["data"] == {"x": "2"}
    kube.patch(after, {"metadata": {"labels": {"app": None}}}, kind="merge")
    kube.delete(CONFIG_MAPS.path(space, "before"))
    until(lambda: told.count("DELETED") == 2)
    assert len(store) == 0
    assert told[:2] == ["ADDED", "ADDED"]
