import base64
import contextlib
import itertools
import socket
import ssl
import threading
from copy import deepcopy
from datetime import UTC, datetime

import pytest

from certs.bundles import CONFIGURATIONS
from certs.issue import Names, new_ca, new_leaf
from certs.servers import Server
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.resources import SECRETS

NAMESPACE = "signalbox-system"


@pytest.fixture
def now():
    return datetime(2026, 11, 4, 12, 0, tzinfo=UTC)


@pytest.fixture
def names():
    return Names("signalbox-webhook", NAMESPACE, ("localhost", "127.0.0.1", "::1"))


@pytest.fixture
def ca(now):
    return new_ca(now)


@pytest.fixture
def leaf(ca, names, now):
    return new_leaf(ca, names, now)


class Api:
    """An API server in memory, as far as certs.rotate needs one: its purpose is to lose races on demand."""

    def __init__(self):
        self.objects = {}
        self.writes = []
        self.before_write = []
        """Called once each, in order, before a write is looked at: another writer that is faster."""
        self.after_write = lambda: None
        self._versions = itertools.count(1)

    def put(self, path, body):
        self.objects[path] = deepcopy(body)
        version = next(self._versions)
        self.objects[path].setdefault("metadata", {}).update(resourceVersion=str(version), generation=version)

    def get(self, path):
        if path not in self.objects:
            raise NotFound(f"{path} not found", status=404)
        return deepcopy(self.objects[path])

    def create(self, path, body):
        target = f"{path}/{body['metadata']['name']}"
        self._interrupt()
        if target in self.objects:
            raise AlreadyExists("already exists", status=409)
        self.put(target, body)
        self._wrote("create", target)

    def replace(self, path, body):
        self._interrupt()
        self._check(path, body["metadata"]["resourceVersion"])
        self.put(path, body)
        self._wrote("replace", path)

    def patch(self, path, body, *, kind):
        assert kind == "json"
        self._interrupt()
        self._check(path, body[0]["value"])
        changed = self.get(path)
        for operation in body[1:]:
            *way, last = operation["path"].strip("/").split("/")
            place = changed
            for key in way:
                place = place[int(key) if isinstance(place, list) else key]
            place[last] = operation["value"]
        self.put(path, changed)
        self._wrote("patch", path)

    def bundles(self):
        return {
            name: {
                base64.b64decode(webhook["clientConfig"].get("caBundle", "")) for webhook in self.get(path)["webhooks"]
            }
            for name, path in CONFIGURATIONS.items()
        }

    def secret(self, name, key):
        value = self.get(SECRETS.path(NAMESPACE, name))["data"].get(key)
        return value and base64.b64decode(value)

    def _wrote(self, verb, path):
        self.writes.append((verb, path))
        self.after_write()

    def _interrupt(self):
        if self.before_write:
            self.before_write.pop(0)()

    def _check(self, path, version):
        if self.get(path)["metadata"]["resourceVersion"] != version:
            raise Conflict("the object has been modified", status=409)


@pytest.fixture
def api():
    """Both webhook configurations are there, with two webhooks each, and nothing else."""
    api = Api()
    for name, path in CONFIGURATIONS.items():
        webhooks = [{"name": "one", "clientConfig": {}}, {"name": "two", "clientConfig": {"caBundle": "Z2FyYmFnZQ=="}}]
        api.put(path, {"metadata": {"name": name}, "webhooks": webhooks})
    return api


class Serving:
    """A TLS server on loopback that shows one pair and hangs up."""

    def __init__(self, issued, directory):
        for name, pem in (("crt", issued.cert_pem), ("key", issued.key_pem)):
            (directory / name).write_bytes(pem)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(directory / "crt", directory / "key")
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return Server("127.0.0.1", self._socket.getsockname()[1], "signalbox-webhook.signalbox-system.svc")

    def __exit__(self, *_):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _serve(self):
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), self._context.wrap_socket(client, server_side=True):
                pass
            client.close()


@pytest.fixture
def serving(tmp_path_factory):
    """``with serving(issued) as server``."""
    return lambda issued: Serving(issued, tmp_path_factory.mktemp("serving"))
