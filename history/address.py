"""Which URLs name a history. Loads no metrics: the webhook looks at its URL before it knows where its metrics go."""

from urllib.parse import urlsplit

from history import engine


def is_process(url: str) -> bool:
    """Whether it names a process that takes records, and no database."""
    return urlsplit(url).scheme in ("http", "https")


def of_process(url: str) -> str:
    """The address of such a process. Raises ValueError for one that can never work."""
    parts = urlsplit(url)
    if not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError("history URL: must look like https://HOST:PORT")
    return url.rstrip("/")


def check(url: str) -> None:
    """Connects to nothing. Raises ValueError for a URL that can never work."""
    if is_process(url):
        of_process(url)
    else:
        engine.connect(url).dispose()
