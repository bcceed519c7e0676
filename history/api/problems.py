"""Errors as RFC 9457 problem documents."""

from collections.abc import Sequence
from http import HTTPStatus

import orjson
from flask import Response

CONTENT_TYPE = "application/problem+json"


class Problem(Exception):  # noqa: N818 - it reads as what it says
    """An answer that is an error; ``faults`` are one line for each thing that is wrong."""

    def __init__(self, status: HTTPStatus, detail: str, faults: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.status, self.detail, self.faults = status, detail, tuple(faults)


def answer(problem: Problem) -> Response:
    """The problem document."""
    status = problem.status
    body: dict[str, object] = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": problem.detail,
    }
    if problem.faults:
        body["errors"] = list(problem.faults)
    return Response(orjson.dumps(body), status=status.value, content_type=CONTENT_TYPE)
