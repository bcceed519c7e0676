"""``signalbox manifests``: the generated files of the repository, written or compared."""

from collections.abc import Iterator
from pathlib import Path

import click
import orjson

ROOT = Path(__file__).resolve().parent.parent


@click.group()
def manifests() -> None:
    """Generate the files that are made from the schemas, and the page of the metrics."""


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
