"""The reference page of the metrics: what each process tells on ``/metrics``. Generated, committed."""

from collections.abc import Iterator
from types import ModuleType

from prometheus_client.metrics import MetricWrapperBase

INTRODUCTION = (
    "# Metrics",
    "",
    "On `/metrics`, in the format of Prometheus. A counter's name ends in `_total`; a histogram has `_bucket`, `_sum`",
    "and `_count`. No label holds the name of a job, so their number does not grow with the jobs.",
)


def metrics_page() -> str:
    """A table for each process, Markdown."""
    from certs import metrics as certificates
    from controller import metrics
    from history import metrics as history
    from webhook import app, recording
    from webhook.tls import expiry_gauge, reload_failures

    controller = [*found(metrics), *found(certificates)]
    webhook = [*found(app), *found(recording), reload_failures(), expiry_gauge()]
    return "\n".join(
        [*INTRODUCTION, *_table("Controller", controller), *_table("Webhook", webhook), *_history(history), ""]
    )


def _history(module: ModuleType) -> Iterator[str]:
    yield from _table("History", found(module))
    yield from ("", "Rows and write failures are also told by the controller, where it writes to the database itself.")


def found(module: ModuleType) -> list[MetricWrapperBase]:
    """The metrics that ``module`` defines."""
    return [value for value in vars(module).values() if isinstance(value, MetricWrapperBase)]


def labels(metric: MetricWrapperBase) -> tuple[str, ...]:
    return tuple(metric._labelnames)


def _table(title: str, metrics: list[MetricWrapperBase]) -> Iterator[str]:
    yield from ("", f"## {title}", "", "| metric | type | labels | meaning |", "|---|---|---|---|")
    for metric in sorted(metrics, key=_name):
        [family] = metric.describe()
        named = ", ".join(f"`{label}`" for label in labels(metric))
        yield f"| `{_name(metric)}` | {family.type} | {named} | {family.documentation} |"


def _name(metric: MetricWrapperBase) -> str:
    [family] = metric.describe()
    return family.name + ("_total" if family.type == "counter" else "")
