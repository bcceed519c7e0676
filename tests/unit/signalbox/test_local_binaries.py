import hashlib
import http.server
import io
import json
import tarfile
import threading
from pathlib import Path

import pytest
from rich.console import Console

from signalbox.local import binaries, releases
from signalbox.local.binaries import BuildError
from signalbox.local.paths import deploy_dir

GO_MOD = """module example.test/local

go 1.26.0

tool (
	example.test/apps/cmd/kube-apiserver
	go.etcd.io/etcd/server/v3
)

require (
	example.test/apps v1.0.0 // indirect
	go.etcd.io/etcd/server/v3 v3.6.8 // indirect
	k8s.io/kubernetes v1.2.3
)
"""
FAKE_GO = """#!/bin/sh
while [ "$1" != "-o" ]; do shift; done
echo "built $3" > "$2"
"""


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Where binaries can come from: assets, cache and, only if a test puts a ``go`` there, PATH."""
    for name in ("assets", "cache", "path", "module"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    text = GO_MOD.replace("example.test/apps/", "k8s.io/kubernetes/")
    (tmp_path / "module" / "go.mod").write_text(text)
    return tmp_path


@pytest.fixture
def module(places):
    return binaries.read_module(places / "module")


def put(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=200)


def test_the_real_module_has_the_five_binaries_and_their_versions():
    tools = {tool.name: tool.version for tool in binaries.read_module(deploy_dir() / "local").tools}
    kubernetes = tools["kube-apiserver"]
    assert kubernetes.startswith("v1.")
    assert tools["kube-controller-manager"] == tools["kube-scheduler"] == kubernetes
    assert tools["etcd"].startswith("v3.")
    assert set(tools) == {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kwok"}


def test_the_cache_is_named_after_the_kubernetes_version(module, places):
    assert module.cache == places / "cache" / "signalbox" / "k8s-v1.2.3"


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        (("assets", "cache", "go"), "from assets"),
        (("cache", "go"), "from cache"),
        (("go",), "built k8s.io/kubernetes/cmd/kube-apiserver"),
    ],
)
def test_the_first_place_that_has_it_wins(places, module, console, present, expected):
    put(places / "assets" / "etcd", "etcd")
    if "assets" in present:
        put(places / "assets" / "kube-apiserver", "from assets")
    if "cache" in present:
        put(module.cache / "kube-apiserver", "from cache")
    if "go" in present:
        put(places / "path" / "go", FAKE_GO)
    found = binaries.ensure(module, console)
    assert found["kube-apiserver"].read_text().strip() == expected
    assert found["etcd"] == places / "assets" / "etcd"


def test_a_build_says_what_it_builds_and_leaves_nothing_half_done(places, module, console):
    put(places / "path" / "go", FAKE_GO)
    binaries.ensure(module, console)
    assert "kube-apiserver v1.2.3 (1 of 2)" in console.file.getvalue()
    assert sorted(path.name for path in module.cache.iterdir()) == [".lock", "etcd", "kube-apiserver"]


def test_a_failed_build_shows_what_go_said(places, module, console):
    put(places / "path" / "go", "#!/bin/sh\necho 'go.mod requires go >= 1.26' >&2\nexit 1\n")
    with pytest.raises(BuildError, match=r"go\.mod requires go >= 1\.26"):
        binaries.ensure(module, console)
    assert [path.name for path in module.cache.iterdir()] == [".lock"]


@pytest.fixture
def release_host(tmp_path, monkeypatch):
    """A loopback server in place of the release hosts; maps path to content."""
    content: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path in content else 404)
            self.end_headers()
            self.wfile.write(content.get(self.path, b""))

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(releases, "KUBERNETES", address)
    monkeypatch.setattr(releases, "GITHUB", f"{address}/repos")
    monkeypatch.setattr(releases.platform, "machine", lambda: "x86_64")
    yield address, content
    server.shutdown()
    server.server_close()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def offer_etcd(address: str, content: dict[str, bytes]) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo("etcd-v3.6.8-linux-amd64/etcd")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"etcd"))
    archive = buffer.getvalue()
    asset = {
        "name": "etcd-v3.6.8-linux-amd64.tar.gz",
        "digest": f"sha256:{sha256(archive)}",
        "browser_download_url": f"{address}/etcd.tar.gz",
    }
    content["/repos/etcd-io/etcd/releases/tags/v3.6.8"] = json.dumps({"assets": [asset]}).encode()
    content["/etcd.tar.gz"] = archive


def offer_apiserver(content: dict[str, bytes], checksum: str) -> None:
    content["/v1.2.3/bin/linux/amd64/kube-apiserver"] = b"released"
    content["/v1.2.3/bin/linux/amd64/kube-apiserver.sha256"] = checksum.encode()


@pytest.fixture
def no_go(places, monkeypatch):
    monkeypatch.setenv("PATH", str(places / "path"))


def test_without_go_the_releases_are_used(no_go, module, console, release_host):
    address, content = release_host
    offer_etcd(address, content)
    offer_apiserver(content, sha256(b"released"))
    found = binaries.ensure(module, console)
    assert found["kube-apiserver"].read_bytes() == b"released"
    assert found["etcd"].read_bytes() == b"etcd"


@pytest.mark.parametrize(
    ("checksum", "message"),
    [("0" * 64, "checksum of .*kube-apiserver does not match"), (None, "no Go .* on PATH.*404")],
)
def test_a_release_that_is_wrong_or_missing_is_an_error(no_go, module, console, release_host, checksum, message):
    if checksum:
        offer_apiserver(release_host[1], checksum)
    with pytest.raises(BuildError, match=message):
        binaries.ensure(module, console)
    assert "kube-apiserver" not in binaries.find(module)
