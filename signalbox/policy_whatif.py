"""``signalbox policy what-if``: what it prints, as it reads. Nothing but sums is held in memory."""

from collections.abc import Callable, Iterable, Iterator

import click
import orjson
from sqlalchemy.exc import SQLAlchemyError

from history import durations
from history.fields import utcnow
from history.reader import Reader
from history.whatif import Labels, Outcome, Sums, outcomes
from policy.model import PolicySet
from policy.replay import evaluable
from signalbox.findings import counted, plain
from signalbox.history_output import Column, field, print_table

RULES: tuple[Column, ...] = (
    ("POLICY", field("policy")),
    ("RULE OR FIELD", field("rule")),
    ("WOULD BE", field("outcome")),
    ("SUBMISSIONS", field("submissions")),
)
DUMPED = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z


def run(policies: PolicySet, since: str, url: str, labels: Labels, output: str) -> int:
    """Prints what would have come of the submissions; how many would have been refused.

    A usage error for ``since`` or a database that cannot be read.
    """
    try:
        moment = durations.moment(since, utcnow())
    except ValueError as error:
        raise click.UsageError(f"--since: {error}") from None
    tried, left_out = evaluable(policies.all, labels_known=bool(labels))
    for name in left_out:
        click.echo(f"policy {name} is not evaluated: it asks for labels of namespaces (--namespace-label)", err=True)
    try:
        reader = Reader(url)
    except ValueError as error:
        raise click.UsageError(f"--history-url: {error}") from None
    sums = Sums()
    try:
        PRINTERS[output](outcomes(reader.submissions(moment), tried, sums, labels), sums, left_out)
    except (SQLAlchemyError, OSError) as error:
        said = str(getattr(error, "orig", None) or error).strip().splitlines()
        raise click.UsageError(f"cannot read the history: {said[0] if said else type(error).__name__}") from None
    finally:
        reader.close()
    return sums.words["refused"]


def _table(found: Iterable[Outcome], sums: Sums, left_out: Iterable[str]) -> None:  # noqa: ARG001 (told on stderr)
    for outcome in found:
        if outcome.is_worth_telling:
            click.echo("\n".join(map(plain, _lines(outcome))))
    if rules := sums.by_rule:
        click.echo()
        print_table(RULES, rules)
        click.echo()
    said = ", ".join(f"{number} {word}" for word, number in sums.counted.items() if number)
    click.echo(f"{counted(sums.submissions, 'submission')}: {said or 'nothing to judge'}")


def _lines(outcome: Outcome) -> Iterator[str]:
    row, found = outcome.row, outcome.found
    assert found is not None
    yield f"{row['gmt_modified']:%Y-%m-%d %H:%M:%S}Z {outcome.title} by {row['username']}: {found.word}"
    yield from (f"  {item.outcome:<8} {item.fault}" for item in found.judgement.violations)
    for item in found.applied:
        verb = "would be" if item.audit else "is"
        yield f"  default  {item.path} {verb} {orjson.dumps(item.value).decode()} (policy {item.policy})"


def _json(found: Iterable[Outcome], sums: Sums, left_out: Iterable[str]) -> None:
    """One document, written as it grows: ``{"submissions": [...], "sums": {...}, "notEvaluated": [...]}``."""
    told = (_dumped(outcome.as_json) for outcome in found if outcome.is_worth_telling)
    click.echo('{"submissions": [', nl=False)
    for place, line in enumerate(told):
        click.echo(("," if place else "") + "\n" + line, nl=False)
    click.echo(f'\n], "sums": {_dumped(sums.as_json)}, "notEvaluated": {_dumped(list(left_out))}}}')


def _dumped(value: object) -> str:
    return orjson.dumps(value, default=str, option=DUMPED).decode()


PRINTERS: dict[str, Callable[[Iterable[Outcome], Sums, Iterable[str]], None]] = {"table": _table, "json": _json}
