"""The HTTP side of the webhook, and nothing else of it: routes, sizes, one log line and one count for each review."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import orjson
import structlog
from flask import Flask, Response, request
from prometheus_client import Counter, Histogram

from policy.model import PolicySet
from schemas.faults import Fault
from schemas.records import NoRecorder, Recorder
from webhook import accounts, policy_review, scale
from webhook import review as reviews
from webhook.governed import Ground
from webhook.mutate import mutate
from webhook.policies import Book, Bound
from webhook.review import SCALE, NotAReview, Review, Verdict
from webhook.scale import Fetch
from webhook.validate import validate

LARGEST_BODY = 8 * 2**20  # bytes
JSON_TYPE = "application/json"
TOO_DEEP = Verdict(faults=(Fault("object", "must be nested less deeply"),))

REVIEWS = Counter("signalbox_reviews_total", "Reviews by path, kind and verdict", ["path", "kind", "verdict"])
SECONDS = Histogram("signalbox_review_seconds", "Duration of a review", ["path"])
POLICIES = Counter("signalbox_policy_reviews_total", "What policies did to reviews", ["policy", "outcome"])

log = structlog.get_logger()


def create_app(fetch: Fetch | None = None, book: Book | None = None, recorder: Recorder | None = None) -> Flask:
    """The application: ``/mutate``, ``/validate``, ``/validate-policy`` and ``/healthz``.

    ``fetch`` reads the job behind a scale request, ``book`` has the policies, ``recorder`` hears what was decided.
    """
    reviewer = Reviewer(book or Bound(PolicySet(), _now), recorder or NoRecorder())

    def judge(review: Review, ground: Ground) -> Verdict:
        return scale.judge(review, fetch, ground) if review.subresource == SCALE else validate(review, ground)

    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY
    for path, judges in (("mutate", mutate), ("validate", judge), ("validate-policy", policy_review.judge)):
        app.add_url_rule(f"/{path}", path, partial(reviewer.answer, path, judges), methods=["POST"])
    app.add_url_rule("/healthz", "healthz", lambda: Response("ok\n", mimetype="text/plain"))
    app.register_error_handler(NotAReview, _bad_request)
    return app


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Answers reviews, and tells what came of them."""

    book: Book
    recorder: Recorder

    def answer(self, path: str, judge: Callable[[Review, Ground], Verdict]) -> Response:
        start = time.monotonic()
        sent = request.get_data(cache=False)
        review = reviews.read(sent)
        try:
            verdict = judge(review, self.book.ground(review))
            body = reviews.answer(review, verdict)
        except (RecursionError, orjson.JSONEncodeError):
            verdict = TOO_DEEP
            body = reviews.answer(review, verdict)
        self._account(path, review, verdict, len(sent))
        _told(path, review, verdict, time.monotonic() - start)
        return Response(body, mimetype=JSON_TYPE)

    def _account(self, path: str, review: Review, verdict: Verdict, size: int) -> None:
        counts = accounts.counts(path, review, verdict)
        self.book.add(counts)
        for (policy, outcome), number in counts.items():
            POLICIES.labels(policy, outcome).inc(number)
        if record := accounts.admission(path, review, verdict, _now(), size):
            self.recorder.admission(record)


def _now() -> datetime:
    return datetime.now(UTC)


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
        policies=sorted({item.policy for item in verdict.judgement.violations}),
        dry_run=review.dry_run,
        milliseconds=round(1000 * seconds, 2),
    )


def _bad_request(error: NotAReview) -> Response:
    return Response(orjson.dumps({"error": str(error)}), status=400, mimetype=JSON_TYPE)
