"""The five programs of the control plane and their flags. Pure: values in, argument vectors out."""

from collections.abc import Mapping
from pathlib import Path

from signalbox.local.credentials import Credentials
from signalbox.local.ports import LOOPBACK
from signalbox.local.processes import Program

PORTS = ("etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "node-lifecycle-controller",  # without it the not-ready taint stays on the nodes and nothing is scheduled
    "taint-eviction-controller",
    "serviceaccount-controller",
    "disruption-controller",
    "resourcequota-controller",
)


def etcd(binary: Path, ports: Mapping[str, int], directory: Path) -> Program:
    """One member without fsync: its content does not survive the machine's end, and is not meant to."""
    client = f"http://{LOOPBACK}:{ports['etcd']}"
    peer = f"http://{LOOPBACK}:{ports['etcd-peer']}"
    flags = (
        f"--data-dir={directory / 'etcd'}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    )
    return Program("etcd", (str(binary), *flags), (client, peer))


def apiserver(binary: Path, ports: Mapping[str, int], credentials: Credentials) -> Program:
    """RBAC, token users, a certificate of our own. No service account tokens in pods: nobody would mount them."""
    flags = (
        f"--etcd-servers=http://{LOOPBACK}:{ports['etcd']}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={ports['kube-apiserver']}",
        f"--advertise-address={LOOPBACK}",
        "--endpoint-reconciler-type=none",  # loopback is not allowed in the Endpoints of the kubernetes Service
        f"--tls-cert-file={credentials.certificate}",
        f"--tls-private-key-file={credentials.key}",
        "--authorization-mode=RBAC",
        f"--token-auth-file={credentials.token_file}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={credentials.signing_key}",
        f"--service-account-signing-key-file={credentials.signing_key}",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--disable-admission-plugins=ServiceAccount",
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",  # as on OpenShift: kubeflow/trainer#1552
        "--allow-privileged",
        "--profiling=false",
    )
    return Program("kube-apiserver", (str(binary), *flags), (f"https://{LOOPBACK}:{ports['kube-apiserver']}",))


def controller_manager(binary: Path, ports: Mapping[str, int], kubeconfig: Path) -> Program:
    """Only the controllers that quota, eviction, node loss and garbage collection need."""
    flags = (f"--controllers={','.join(CONTROLLERS)}", "--profiling=false")
    return _component("kube-controller-manager", binary, ports, kubeconfig, flags)


def scheduler(binary: Path, ports: Mapping[str, int], kubeconfig: Path) -> Program:
    """The default scheduler, without leader election."""
    return _component("kube-scheduler", binary, ports, kubeconfig, ())


def kwok(binary: Path, deploy: Path, directory: Path, kubeconfig: Path) -> Program:
    """The kubelet of every Node annotated ``kwok.x-k8s.io/node=fake``, by our stages; it listens nowhere."""
    stages = sorted((deploy / "local" / "stages").glob("*.yaml"))
    flags = (
        f"--kubeconfig={kubeconfig}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=0",  # heartbeats are a stage
        f"--node-ip={LOOPBACK}",
        "--cidr=10.128.0.0/9",
        "--v=WARN",
        *(f"--config={stage}" for stage in stages),
    )
    return Program("kwok", (str(binary), *flags), env={"HOME": str(directory)})  # kwok also reads ~/.kwok/kwok.yaml


def _component(name: str, binary: Path, ports: Mapping[str, int], kubeconfig: Path, flags: tuple[str, ...]) -> Program:
    common = (
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={ports[name]}",
    )
    return Program(name, (str(binary), *common, *flags), (f"https://{LOOPBACK}:{ports[name]}",))
