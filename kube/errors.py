"""What the API server can answer, as exceptions that carry their meaning.

Raised in one place (``kube.raw``) where the API's Status is read; ``Unreachable`` when there was no answer at all.
"""

# ruff: noqa: N818 - the names are the reasons that the API itself gives


class KubeError(Exception):
    """An API call that did not succeed. ``message`` is the server's own text."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class NotFound(KubeError):
    """404: the object, or its whole resource, does not exist."""


class AlreadyExists(KubeError):
    """409 AlreadyExists: the name is taken."""


class Conflict(KubeError):
    """409 Conflict: the object changed since it was read, or a UID precondition failed."""


class Gone(KubeError):
    """410: the resourceVersion of a list or watch is too old; list again."""


class Forbidden(KubeError):
    """403: RBAC, quota or an admission plugin refuses."""


class Invalid(KubeError):
    """400 or 422: the server does not accept the object."""


class TooManyRequests(KubeError):
    """429: try again after ``retry_after`` seconds."""


class ServerError(KubeError):
    """5xx, and every status that has no class of its own."""


class Unreachable(KubeError):
    """No answer: connection refused, reset, or timed out."""


class NotLeading(KubeError):
    """Not sent at all: another process may lead now, and two that write would undo each other's work."""
