"""Sets of replica indexes as text, the way batch/v1 writes them: ``0-3,7``. Their size follows gaps, not pods."""

from collections.abc import Iterable

from schemas.job import number


def parse(text: object) -> frozenset[int]:
    """The indexes in ``text``; what cannot be read counts as absent."""
    found: set[int] = set()
    for part in text.split(",") if isinstance(text, str) else ():
        low, _, high = part.partition("-")
        first, last = number(low), number(high or low)
        if first is not None and last is not None and last < MOST:
            found.update(range(first, last + 1))
    return frozenset(found)


def written(indexes: Iterable[int]) -> str:
    """``indexes`` as text, in order, runs as ``first-last``."""
    parts: list[str] = []
    run: list[int] = []
    for index in sorted(set(indexes)):
        if run and index == run[-1] + 1:
            run.append(index)
            continue
        if run:
            parts.append(_run(run))
        run = [index]
    return ",".join([*parts, _run(run)] if run else parts)


MOST = 1_000_000


def _run(run: list[int]) -> str:
    return str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"
