"""The HTTP side of the webhook, and nothing else of it: routes, sizes, one log line and one count for each review."""

import time
from collections.abc import Callable

import orjson
import structlog
from flask import Flask, Response, request
from prometheus_client import Counter, Histogram

from schemas.faults import Fault
from webhook import review as reviews
from webhook import scale
from webhook.mutate import mutate
from webhook.review import SCALE, NotAReview, Review, Verdict
from webhook.scale import Fetch
from webhook.validate import validate

LARGEST_BODY = 8 * 2**20  # bytes
JSON_TYPE = "application/json"
TOO_DEEP = Verdict(faults=(Fault("object", "must be nested less deeply"),))

REVIEWS = Counter("signalbox_reviews_total", "Reviews by path, kind and verdict", ["path", "kind", "verdict"])
SECONDS = Histogram("signalbox_review_seconds", "Duration of a review", ["path"])

log = structlog.get_logger()


def create_app(fetch: Fetch | None = None) -> Flask:
    """The application: ``/mutate``, ``/validate`` and ``/healthz``. ``fetch`` reads the job behind a scale request."""

    def judge(review: Review) -> Verdict:
        return scale.judge(review, fetch) if review.subresource == SCALE else validate(review)

    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY
    app.add_url_rule("/mutate", "mutate", lambda: _answered("mutate", mutate), methods=["POST"])
    app.add_url_rule("/validate", "validate", lambda: _answered("validate", judge), methods=["POST"])
    app.add_url_rule("/healthz", "healthz", lambda: Response("ok\n", mimetype="text/plain"))
    app.register_error_handler(NotAReview, _bad_request)
    return app


def _answered(path: str, judge: Callable[[Review], Verdict]) -> Response:
    start = time.monotonic()
    review = reviews.read(request.get_data(cache=False))
    try:
        verdict = judge(review)
        body = reviews.answer(review, verdict)
    except (RecursionError, orjson.JSONEncodeError):
        verdict = TOO_DEEP
        body = reviews.answer(review, verdict)
    _told(path, review, verdict, time.monotonic() - start)
    return Response(body, mimetype=JSON_TYPE)


def _told(path: str, review: Review, verdict: Verdict, seconds: float) -> None:
    word = "allowed" if verdict.allowed else "refused"
    kind = review.kind.kind if review.kind else "other"
    REVIEWS.labels(path, kind, word).inc()
    SECONDS.labels(path).observe(seconds)
    log.info(
        "review",
        path=path,
        kind=review.kind_name,
        namespace=review.namespace,
        job=review.name,
        operation=review.operation,
        verdict=word,
        faults=[fault.path for fault in verdict.faults],
        patched=len(verdict.patch),
        dry_run=review.dry_run,
        milliseconds=round(1000 * seconds, 2),
    )


def _bad_request(error: NotAReview) -> Response:
    return Response(orjson.dumps({"error": str(error)}), status=400, mimetype=JSON_TYPE)
