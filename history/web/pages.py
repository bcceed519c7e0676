"""The pages: jobs, one job, overview, policy. Filters are in the URL; htmx asks for parts of the same page."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import yaml
from flask import Blueprint, Response, make_response, redirect, render_template, request

from history import durations, queries, statistics, timeline
from history.api import parameters
from history.api.problems import Problem
from history.fields import utcnow
from history.queries import Row, Wanted
from history.reader import Reader
from history.records import STATUSES
from history.web import charts, trial
from schemas.kinds import KINDS

STATIC = Path(__file__).parent / "static"
STATIC_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
STATIC_NAMES = frozenset(path.name for path in STATIC.iterdir())
PAGE = 50
MOST_YAML = 200_000  # characters
WINDOWS = ("1d", "7d", "30d", "90d", "365d")
ANSWERS = 200
THEMES = ("light", "dark", "auto")
YEAR = 365 * 24 * 3600


def create(reader: Reader) -> Blueprint:
    """All pages."""
    web = Blueprint("web", __name__, template_folder="templates")
    web.add_url_rule("/", "jobs", lambda: jobs(reader))
    web.add_url_rule("/jobs/<uid>", "job", lambda uid: job(reader, uid))
    web.add_url_rule("/overview", "overview", lambda: overview(reader))
    web.add_url_rule("/policy", "policy", lambda: policy(reader))
    web.add_url_rule("/policy/what-if", "what_if", lambda: what_if(reader), methods=["GET", "POST"])
    web.add_url_rule("/theme/<name>", "theme", theme)
    web.add_url_rule("/static/<path:name>", "static", static)
    for name, function in FILTERS.items():
        web.add_app_template_filter(function, name)
    web.app_context_processor(lambda: {"theme": chosen_theme(), "now": utcnow()})
    return web


def jobs(reader: Reader) -> Response:
    """The list; with the header HX-Request only its table."""
    given = {name: texts for name, texts in request.args.to_dict(flat=False).items() if texts != [""]}
    wanted = replace(parameters.wanted(given), limit=PAGE)
    page = reader.page(wanted)
    following = page.next and _url({**_flat(given), "after": page.next})
    name = "rows.html" if _is_part("results") else "jobs.html"
    shown = {name: texts[-1] for name, texts in given.items()}
    return _rendered(
        name,
        rows=page.rows,
        next=following,
        first=_url({key: value for key, value in shown.items() if key != "after"}),
        here=_url(shown),
        shown=shown,
        live=wanted.after is None,
        kinds=[kind.kind for kind in KINDS],
        statuses=STATUSES,
        windows=WINDOWS,
    )


def job(reader: Reader, uid: str) -> Response:
    """One job with all that is known of it."""
    row = reader.by_uid(uid)
    if row is None:
        raise Problem(HTTPStatus.NOT_FOUND, "There is no job of this UID in the history.")
    pods, restarts = reader.pods(uid), reader.restarts(uid)
    bars = timeline.bars(pods, restarts)
    found = timeline.last_object(reader, uid)
    return _rendered(
        "life.html" if _is_part("life") else "job.html",
        job=row,
        timeline=charts.timeline(bars, *timeline.span(row, bars, utcnow())),
        pods=pods,
        restarts=restarts,
        conditions=reader.conditions(uid),
        events=reader.events(uid)[-500:],
        admissions=reader.admissions(row),
        yaml=yaml.safe_dump(found, sort_keys=False, width=120)[:MOST_YAML] if found else None,
        last=row["gmt_finished"] or utcnow(),
    )


def overview(reader: Reader) -> Response:
    """Sums over a span of time."""
    window, since, now = _window()
    wanted = Wanted(since=since)
    counted = reader.rows(statistics.counts("status", wanted))
    outcomes: Counter[str] = Counter({row["status"]: row["jobs"] for row in counted})
    ended = outcomes["Succeeded"] + outcomes["Failed"]
    hours = statistics.gpu_hours(reader, "owner", wanted, now)
    owners = sorted(((name or "unknown", value) for name, value in hours.items() if value), key=lambda one: -one[1])
    days = min((now.date() - since.date()).days + 1, 366)
    return _rendered(
        "overview.html",
        window=window,
        all_windows=WINDOWS,
        total=sum(outcomes.values()),
        outcomes=outcomes,
        success=f"{100 * outcomes['Succeeded'] / ended:.0f} %" if ended else "none",
        hours=sum(hours.values()),
        columns=charts.outcomes(statistics.per_day(reader, since), since.date(), days),
        owners=charts.shares(owners[:10]),
        failures=charts.shares(
            (row["reason"] or "unknown", row["count"]) for row in statistics.failures(reader, since)
        ),
        restarts=charts.shares((_cause(row), row["count"]) for row in statistics.restarts(reader, since)),
    )


def policy(reader: Reader) -> Response:
    """What the webhook refused, warned of and changed."""
    window, since, _ = _window()
    given = request.args.get("verdict") or None
    rows = reader.rows(queries.answers(verdict=given, since=since, limit=ANSWERS))
    return _rendered(
        "policy.html",
        window=window,
        all_windows=WINDOWS,
        verdict=given or "",
        sums=reader.rows(statistics.verdicts(since)),
        rows=[row | {"errors": _listed(row["errors"]), "defaults": _listed(row["defaults"])} for row in rows],
    )


def what_if(reader: Reader) -> Response:
    """A pasted policy tried on past submissions; the text comes with a POST because it may be long."""
    request.max_content_length = trial.MOST_BODY
    written = request.form.get("policy", "")
    window, since, _ = _window(request.form.get("since"))
    found = trial.tried(reader, written, since) if request.method == "POST" else None
    answer = _rendered("whatif.html", trial=found, written=written, window=window, all_windows=WINDOWS)
    if found and found.faults:
        answer.status_code = HTTPStatus.UNPROCESSABLE_ENTITY.value
    return answer


def theme(name: str) -> Response:
    """Light, dark, or what the browser prefers."""
    if name not in THEMES:
        raise Problem(HTTPStatus.NOT_FOUND, "There is no such theme.")
    back = make_response(redirect("/", HTTPStatus.SEE_OTHER))
    referrer = request.args.get("back", "/")
    back.headers["Location"] = referrer if referrer.startswith("/") and not referrer.startswith(("//", "/\\")) else "/"
    back.set_cookie("theme", name, max_age=YEAR, httponly=True, samesite="Lax")
    return back


def static(name: str) -> Response:
    """One of our own files; there are few and they are small."""
    kind = STATIC_TYPES.get(Path(name).suffix)
    if kind is None or name not in STATIC_NAMES:
        raise Problem(HTTPStatus.NOT_FOUND, "There is no such file.")
    headers = {"Cache-Control": "private, max-age=3600"}
    return Response((STATIC / name).read_bytes(), content_type=kind, headers=headers)


def problem(error: Problem) -> Response:
    """An error as a page."""
    answer = _rendered("problem.html", problem=error)
    answer.status_code = error.status.value
    return answer


def chosen_theme() -> str:
    chosen = request.cookies.get("theme", "auto")
    return chosen if chosen in THEMES else "auto"


def ago(time: datetime | None) -> str:
    """How long ago, in the largest unit."""
    return f"{charts.span(utcnow() - time).split()[0]} ago" if time else ""


def stamp(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC" if time else ""


def between(start: datetime | None, end: datetime | None) -> str:
    return charts.span(end - start) if start and end else ""


def gpus_of(row: Row) -> str:
    """GPUs that the job's replicas ask for together; empty when none."""
    try:
        replicas = orjson.loads(row["resources"] or "{}").values()
        total = sum(one["replicas"] * statistics.gpus_in(one["resources"]) for one in replicas)
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
        return ""
    return f"{total:g}" if total else ""


def _cause(row: Row) -> str:
    return " ".join(str(part) for part in (row["reason"], row["exit_code"]) if part is not None) or "unknown"


def _listed(text: str | None) -> list[Any]:
    found = orjson.loads(text) if text else []
    return found if isinstance(found, list) else []


def _window(given: str | None = None) -> tuple[str, datetime, datetime]:
    window = given or request.args.get("since") or "30d"
    now = utcnow()
    try:
        since = now - durations.parse(window)
    except (ValueError, OverflowError) as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"since: {error}") from error
    return window, max(since, now - timedelta(days=3650)), now


def _flat(given: dict[str, list[str]]) -> dict[str, str]:
    return {name: texts[-1] for name, texts in given.items()}


def _url(query: dict[str, str]) -> str:
    return f"/?{urlencode(query)}" if query else "/"


def _is_part(target: str) -> bool:
    """Whether htmx asks for the part of the page with this id."""
    return request.headers.get("HX-Target") == target


def _rendered(template: str, **values: Any) -> Response:
    answer = make_response(render_template(template, **values))
    answer.headers["Vary"] = "HX-Target, Cookie"
    return answer


FILTERS: dict[str, Callable[..., Any]] = {
    "ago": ago,
    "stamp": stamp,
    "between": between,
    "gpus_of": gpus_of,
    "listed": _listed,
}
