"""Patterns as admins write them: ``*`` stands for any run of characters, everything else for itself."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

STAR = "*"
IMAGE_ENDS = ("/", ":", "@")


@dataclass(frozen=True, slots=True)
class Patterns:
    """A list of patterns; a text is among them when one matches it whole."""

    written: tuple[str, ...]
    regex: re.Pattern[str]

    def has(self, text: str) -> bool:
        return self.regex.fullmatch(text) is not None

    @property
    def shown(self) -> str:
        """For a message: ``a, b or c``."""
        *first, last = self.written
        return f"{', '.join(first)} or {last}" if first else last


def patterns(written: Sequence[str]) -> Patterns:
    """The patterns of a list that is not empty."""
    return _of(written, map(_regex, written))


def image_patterns(written: Sequence[str]) -> Patterns:
    """As ``patterns``, but a text without ``*`` is a prefix. It ends where a part of the image's name ends, so that
    registry.example allows nothing of registry.example.com.
    """
    return _of(written, map(_image_regex, written))


def literal_prefix(pattern: str) -> str:
    """What every text that matches begins with."""
    return pattern.partition(STAR)[0]


def _of(written: Sequence[str], regexes: Iterable[str]) -> Patterns:
    return Patterns(tuple(written), re.compile("|".join(f"(?:{regex})" for regex in regexes), re.DOTALL))


def _regex(pattern: str) -> str:
    return ".*".join(re.escape(part) for part in re.split(r"\*+", pattern))


def _image_regex(pattern: str) -> str:
    if STAR in pattern:
        return _regex(pattern)
    rest = ".*" if pattern.endswith(IMAGE_ENDS) else "(?:[/:@].*)?"
    return re.escape(pattern) + rest
