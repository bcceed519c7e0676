"""Kinds as a command line names them."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from schemas.kinds import JobKind


def kinds_named(words: str) -> "tuple[JobKind, ...]":
    """The rows that a comma-separated list names. click.BadParameter for a word that is no kind."""
    from schemas import kinds

    try:
        return kinds.named(words)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
