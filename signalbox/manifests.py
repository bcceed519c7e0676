"""``signalbox manifests``: prints an installation; ``generate`` writes or compares the repository's generated files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import orjson
import yaml

from signalbox.kind_words import kinds_named

ROOT = Path(__file__).resolve().parent.parent


@click.group(invoke_without_command=True)
@click.option("--namespace", default="signalbox-system", show_default=True, help="Where Signalbox runs.")
@click.option("--image", default="", help="Image of all processes, with its tag or digest.")
@click.option(
    "--kinds",
    "-k",
    multiple=True,
    metavar="KIND,...",
    callback=lambda _context, _option, values: kinds_named(",".join(values)),
    help="Serve these kinds, repeatable; absent: TrainingJob alone.",
)
@click.option(
    "--gang-scheduler", type=click.Choice(["volcano", "scheduler-plugins"]), help="Whose PodGroup each job gets."
)
@click.option(
    "--history-url-secret",
    default="signalbox-history",
    show_default=True,
    help="Secret whose key `url` says where the history is kept; without the Secret none is kept.",
)
@click.option("--history-page", is_flag=True, help="With the history's page, reading the database of that Secret.")
@click.option("--history-volume", is_flag=True, help="With the page, and the history in SQLite on a volume of its own.")
@click.option(
    "--history-auth",
    type=click.Choice(["token", "proxy-header"]),
    default="token",
    show_default=True,
    help="Who may read the page: who has the token, or whom a proxy in front names.",
)
@click.option("--cert-manager", is_flag=True, help="Leave the webhook's certificates to cert-manager.")
@click.option("--monitoring", is_flag=True, help="With alert rules and monitors for the Prometheus operator.")
@click.pass_context
def manifests(context: click.Context, /, **options: Any) -> None:
    """Print an installation for `kubectl apply --server-side -f -`, or generate what is made from the schemas."""
    if context.invoked_subcommand is None:
        _print(options)


def _print(options: dict[str, Any]) -> None:
    from signalbox import rendering

    wanted = rendering.Wanted(
        kinds=options["kinds"] or rendering.OWN,
        namespace=options["namespace"],
        image=options["image"],
        gang_scheduler=options["gang_scheduler"] or "",
        history_secret=options["history_url_secret"],
        history_page=options["history_page"],
        history_volume=options["history_volume"],
        history_auth=options["history_auth"],
        cert_manager=options["cert_manager"],
        monitoring=options["monitoring"],
    )
    try:
        click.echo(yaml.dump_all(rendering.manifests(wanted), Dumper=yaml.CSafeDumper, sort_keys=False), nl=False)
    except rendering.RenderError as error:
        raise click.ClickException(str(error)) from error


@manifests.command()
@click.option("--check", is_flag=True, help="Write nothing; fail when a committed file is stale.")
@click.option("--root", type=click.Path(path_type=Path, exists=True, file_okay=False), default=ROOT, show_default=False)
@click.option(
    "--from-cluster",
    "kubeconfig",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="First renew the pod template's schema from this cluster's own API.",
)
def generate(check: bool, root: Path, kubeconfig: Path | None) -> None:
    """Write the CRDs and the reference (and with --from-cluster the pod template schema they contain)."""
    if kubeconfig is not None:
        _renew_pod_template(root, kubeconfig)
    stale = [path for path, content in generated() if _differs(root / path, content)]
    if check and stale:
        raise click.ClickException("stale, run 'make generate': " + ", ".join(str(path) for path in stale))
    for path, content in generated():
        if path in stale:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
            click.echo(f"wrote {path}")


def generated() -> Iterator[tuple[Path, bytes]]:
    """Every generated file: its path below the repository's root, and its content."""
    from schemas import crd
    from schemas.kinds import KINDS
    from signalbox import reference
    from signalbox.measures import metrics_page

    for kind in KINDS:
        yield Path("deploy/crds") / f"{kind.kind.lower()}.yaml", as_lines(crd.crd(kind))
        yield Path("docs/reference") / f"{kind.kind.lower()}.md", reference.kind_page(kind).encode()
    yield Path("deploy/crds/trainingpolicy.yaml"), as_lines(crd.policy_crd())
    yield Path("docs/reference/trainingpolicy.md"), reference.policy_page().encode()
    yield Path("docs/reference/rules.md"), reference.rules_page().encode()
    yield Path("docs/reference/metrics.md"), metrics_page().encode()


def as_lines(value: object) -> bytes:
    """JSON, which is YAML too, one entry a line without indentation: a diff is readable and a file stays small."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return ("\n".join(line.lstrip() for line in text.splitlines()) + "\n").encode()


def _renew_pod_template(root: Path, kubeconfig: Path) -> None:
    from kube.config import connect
    from kube.raw import RawKube
    from schemas import loader, podtemplate

    document = RawKube(connect(str(kubeconfig))).get("/openapi/v3/api/v1")
    content = orjson.dumps(podtemplate.from_openapi(document), option=orjson.OPT_INDENT_2) + b"\n"
    target = root / "schemas" / "v1" / "podtemplate.json"
    if _differs(target, content):
        target.write_bytes(content)
        click.echo(f"wrote {target.relative_to(root)}")
    loader.document.cache_clear()
    loader.resolved.cache_clear()


def _differs(path: Path, content: bytes) -> bool:
    return not path.exists() or path.read_bytes() != content
