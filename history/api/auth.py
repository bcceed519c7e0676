"""Who may read the history, and who may write to it."""

import hmac
from base64 import b64decode
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from flask import Response, request
from werkzeug.datastructures import Headers

from history.api import problems
from history.api.problems import Problem

REALM = "signalbox history"
OPEN_PATHS = ("/healthz", "/readyz")


@dataclass(frozen=True, slots=True)
class Access:
    """What is asked of a request; files hold one token and are read each time, so that it may rotate.

    Without ``token_file`` and ``user_header`` everybody may read: for loopback addresses only.
    """

    token_file: Path | None = None
    """Bearer token, or the password of HTTP Basic for browsers, whatever the user name."""
    user_header: str = ""
    """Header in which a proxy in front of this process names the user it has authenticated."""
    ingest_token_file: Path | None = None
    """Bearer token of the processes that write; without it nobody may."""


def guard(access: Access) -> Response | None:
    """The refusal of a request that may not be answered, for Flask's ``before_request``."""
    if request.path in OPEN_PATHS:
        return None
    writes = request.path.startswith("/api/v1/ingest")
    if writes and access.ingest_token_file is None:
        return problems.answer(Problem(HTTPStatus.NOT_FOUND, "This process takes no records."))
    token_file = access.ingest_token_file if writes else access.token_file
    if token_file is not None:
        return None if _matches(request.headers, token_file) else _refusal()
    if access.user_header and not request.headers.get(access.user_header):
        return problems.answer(Problem(HTTPStatus.UNAUTHORIZED, "The proxy named no user."))
    return None


def _matches(headers: Headers, token_file: Path) -> bool:
    expected = token_file.read_text().strip().encode()
    scheme, _, given = headers.get("Authorization", "").partition(" ")
    found = given.strip().encode()
    if scheme.lower() == "basic":
        try:
            found = b64decode(found, validate=True).partition(b":")[2]
        except ValueError:
            return False
    elif scheme.lower() != "bearer":
        return False
    return bool(expected) and hmac.compare_digest(found, expected)


def _refusal() -> Response:
    refused = problems.answer(Problem(HTTPStatus.UNAUTHORIZED, "The token is missing or wrong."))
    refused.headers["WWW-Authenticate"] = f'Basic realm="{REALM}", Bearer'
    return refused
