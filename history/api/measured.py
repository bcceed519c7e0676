"""Requests and their durations, counted by route and status."""

import time

from flask import Flask, Response, g, request

from history import metrics

OTHER = "other"
"""The route of what is none: paths are as many as there are strangers who ask."""


def measure(app: Flask) -> None:
    """Count the requests of ``app``, refused ones included. Call it before any other ``before_request``."""
    app.before_request(_begin)
    app.after_request(_count)
    app.teardown_request(_end)


def _begin() -> None:
    g.began = time.monotonic()
    metrics.OPEN.inc()


def _count(response: Response) -> Response:
    if "began" in g:
        route = request.url_rule.rule if request.url_rule else OTHER
        labels = route, str(response.status_code)
        metrics.REQUESTS.labels(*labels).inc()
        metrics.SECONDS.labels(*labels).observe(time.monotonic() - g.began)
    return response


def _end(_error: BaseException | None) -> None:
    if g.pop("began", None) is not None:
        metrics.OPEN.dec()
