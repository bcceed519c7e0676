"""The HTTP of the history process: REST, pages, health; what every answer carries."""

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus

import structlog
from flask import Flask, Response, request
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException

from history.api import auth, measured, problems, routes
from history.api.auth import Access
from history.api.problems import Problem
from history.queries import BadCursor
from history.reader import Reader
from history.store import Store
from history.web import pages

LARGEST_BODY = 64 * 2**20  # bytes
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""Whom a browser may think it talks to: a page elsewhere must not reach us under a name that it controls."""

log = structlog.get_logger("history")


def create_app(
    reader: Reader, access: Access | None = None, store: Store | None = None, hosts: Sequence[str] | None = None
) -> Flask:
    """The application. ``store`` takes what other processes send; ``hosts`` are the names it may be called by."""
    app = Flask(__name__, static_folder=None)
    app.config.update(MAX_CONTENT_LENGTH=LARGEST_BODY, TRUSTED_HOSTS=list(hosts) if hosts else None)
    app.url_map.strict_slashes = False
    measured.measure(app)
    app.before_request(partial(auth.guard, access or Access()))
    app.after_request(_with_headers)
    app.register_blueprint(routes.create(reader, store))
    app.register_blueprint(pages.create(reader))
    app.add_url_rule("/healthz", "healthz", lambda: Response("ok\n", mimetype="text/plain"))
    app.add_url_rule("/readyz", "readyz", partial(_ready, reader))
    app.register_error_handler(Problem, _answer)
    app.register_error_handler(BadCursor, lambda error: _answer(Problem(HTTPStatus.BAD_REQUEST, str(error))))
    app.register_error_handler(HTTPException, _of_http)
    app.register_error_handler(SQLAlchemyError, _of_database)
    app.register_error_handler(OSError, _of_database)
    return app


def _with_headers(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _answer(problem: Problem) -> Response:
    if request.path.startswith("/api/"):
        return problems.answer(problem)
    return pages.problem(problem)


def _of_http(error: HTTPException) -> Response:
    status = HTTPStatus(error.code or 500)
    answer = _answer(Problem(status, error.description or status.phrase))
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        answer.headers["Allow"] = ", ".join(getattr(error, "valid_methods", None) or ())
    return answer


def _of_database(error: Exception) -> Response:
    log.warning("history cannot be read", error=f"{type(error).__name__}: {getattr(error, 'orig', error)}")
    return _answer(Problem(HTTPStatus.SERVICE_UNAVAILABLE, "The database does not answer; try again soon."))


def _ready(reader: Reader) -> Response:
    """Whether the database answers."""
    reader.first(text("SELECT 1 AS one"))
    return Response("ok\n", mimetype="text/plain")
