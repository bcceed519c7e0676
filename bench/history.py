"""How fast the history is written and read: ``python -P bench/history.py [--url URL] [--rows N]``.

(-P keeps this file from being taken for the package of its name.)

Without --rows: upserts in batches as the writer sends them, on a fresh SQLite file (or the database at --url).
With --rows: fills a PostgreSQL database with N jobs and prints percentiles of
the list page, as the browser asks for it.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flask.testing import FlaskClient
from sqlalchemy import func, select

from history import queries
from history.api.app import create_app
from history.models import job_info
from history.reader import Reader
from history.records import EventRecord, JobRecord, PodRecord
from history.store import Record, Store
from history.writer import BATCH

START = datetime.now(UTC).replace(tzinfo=None, microsecond=0) - timedelta(days=365)
RESOURCES = '{"Worker":{"replicas":4,"resources":{"cpu":8,"memory":"64Gi","nvidia.com/gpu":1}}}'
POD_RESOURCES = '{"requests":{"cpu":8,"nvidia.com/gpu":1},"limits":{"nvidia.com/gpu":1}}'
STATUSES = ("Succeeded",) * 7 + ("Failed",) * 2 + ("Running",)
KINDS = ("TrainingJob", "PyTorchJob", "TFJob", "MPIJob", "JAXJob")


def job(number: int, version: int, status: str) -> JobRecord:
    created = START + timedelta(seconds=30 * number)
    ended = status in ("Succeeded", "Failed")
    return JobRecord(
        job_id=f"00000000-0000-4000-8000-{number:012d}",
        name=f"train-{('resnet', 'bert', 'llama', 'gpt')[number % 4]}-{number}",
        namespace=f"team-{number % 40}",
        version=str(version),
        status=status,
        kind=KINDS[number // 7 % len(KINDS)],
        resources=RESOURCES,
        deploy_region=None,
        tenant=f"tenant-{number % 10}",
        owner=f"user-{number % 200}@example.org",
        remark="JobFailed: Worker-1 container main failed with exit code 1" if status == "Failed" else None,
        gmt_created=created,
        gmt_job_running=created + timedelta(seconds=20) if version > 1 else None,
        gmt_finished=created + timedelta(seconds=600 + number % 7000) if ended else None,
    )


def pod(number: int, index: int, version: int, status: str) -> PodRecord:
    created = START + timedelta(seconds=30 * number)
    return PodRecord(
        pod_id=f"10000000-{index:04d}-4000-8000-{number:012d}",
        name=f"train-{number}-worker-{index}",
        namespace=f"team-{number % 40}",
        version=str(version),
        status=status,
        image="registry.example.org/train:1.2",
        job_id=f"00000000-0000-4000-8000-{number:012d}",
        replica_type="Worker",
        resources=POD_RESOURCES,
        host_ip="10.0.0.1",
        pod_ip="10.1.0.1",
        deploy_region=None,
        remark=None,
        gmt_created=created,
        gmt_started=created + timedelta(seconds=20) if version > 1 else None,
        gmt_finished=created + timedelta(seconds=600) if status == "Succeeded" else None,
    )


def event(number: int, count: int) -> EventRecord:
    seen = START + timedelta(seconds=30 * number)
    return EventRecord(
        obj_uid=f"00000000-0000-4000-8000-{number:012d}",
        name=f"train-{number}.17f3",
        kind="PyTorchJob",
        type="Normal",
        obj_namespace="team",
        obj_name=f"train-{number}",
        reason="JobRunning",
        message="The job runs.",
        count=count,
        region=None,
        first_timestamp=seen,
        last_timestamp=seen + timedelta(seconds=count),
    )


def lives(first: int, jobs: int, version: int, status: str) -> Iterator[Record]:
    """One state of some jobs, each with four pods and an event, in the order a controller sees them."""
    for number in range(first, first + jobs):
        yield job(number, version, status)
        yield from (pod(number, index, version, status) for index in range(4))
        yield event(number, version)


def timed(store: Store, records: list[Record]) -> tuple[float, float]:
    """Rows per second of wall time and of this process's CPU time."""
    wall, cpu = time.perf_counter(), time.process_time()
    for begin in range(0, len(records), BATCH):
        store.save(records[begin : begin + BATCH])
    return len(records) / (time.perf_counter() - wall), len(records) / (time.process_time() - cpu)


def writing(url: str, jobs: int, rounds: int) -> None:
    store = Store(url)
    store.upgrade()
    first = random.SystemRandom().randrange(10**9)
    kept: dict[str, list[tuple[float, float]]] = {"new": [], "updated": [], "unchanged": []}
    for number in range(rounds + 1):
        begin = first + number * jobs
        for word, version, status in (
            ("new", 1, "Created"),
            ("updated", 2, "Succeeded"),
            ("unchanged", 2, "Succeeded"),
        ):
            speed = timed(store, list(lives(begin, jobs, version, status)))
            if number:  # the first round warms up
                kept[word].append(speed)
    store.close()
    for word, speeds in kept.items():
        walls, cpus = zip(*speeds, strict=True)
        print(
            f"{word:<10} {statistics.median(walls):>8,.0f} upserts/s (median of {rounds}; best {max(walls):,.0f}); "
            f"by CPU time {statistics.median(cpus):,.0f}/s"
        )


FILL = """
INSERT INTO job_info (name, namespace, job_id, version, status, kind, resources, tenant, owner, deleted, is_in_etcd,
                      remark, gmt_created, gmt_modified, gmt_job_running, gmt_finished)
SELECT 'train-' || (ARRAY['resnet', 'bert', 'llama', 'gpt'])[1 + n % 4] || '-' || n, 'team-' || n % 40,
       '00000000-0000-4000-8000-' || lpad(n::text, 12, '0'), '2', status, (ARRAY[{kinds}])[1 + n / 7 % 5],
       '{resources}',
       'tenant-' || n % 10, 'user-' || n % 200 || '@example.org', CASE WHEN status = 'Running' THEN 0 ELSE 1 END,
       CASE WHEN status = 'Running' THEN 1 ELSE 0 END,
       CASE WHEN status = 'Failed' THEN 'JobFailed: Worker-1 container main failed with exit code 1' END,
       created, created, created + interval '20 s',
       CASE WHEN status <> 'Running' THEN created + (600 + n % 7000) * interval '1 s' END
FROM (SELECT n, (ARRAY[{statuses}])[1 + n % 10] AS status, TIMESTAMP '{start}' + n * {step} * interval '1 s' AS created
      FROM generate_series({first}, {last}) AS n) AS numbers
"""
FILL_PODS = """
INSERT INTO replica_info (name, namespace, pod_id, version, status, image, job_id, replica_type, resources, deleted,
                          is_in_etcd, gmt_created, gmt_modified, gmt_started, gmt_finished)
SELECT j.name || '-worker-' || i, j.namespace, i || '-' || j.job_id, '2', 'Succeeded', 'train:1', j.job_id, 'Worker',
       '{pod_resources}', 1, 0, j.gmt_created, j.gmt_created, j.gmt_job_running, j.gmt_finished
FROM job_info AS j, generate_series(0, 1) AS i
"""


def fill(store: Store, jobs: int) -> None:
    """``jobs`` jobs with two pods each over the last year, made by PostgreSQL itself."""
    have = store.first(select(func.count().label("jobs")).select_from(job_info)) or {"jobs": 0}
    if have["jobs"] >= jobs:
        return
    values = {
        "start": START,
        "step": 365 * 86400 / jobs,
        "resources": RESOURCES,
        "pod_resources": POD_RESOURCES,
        "kinds": ", ".join(f"'{kind}'" for kind in KINDS),
        "statuses": ", ".join(f"'{status}'" for status in STATUSES),
    }
    for first in range(0, jobs, 100_000):
        with store.begin() as connection:
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
            connection.exec_driver_sql(
                FILL.replace("%", "%%").format(first=first, last=min(first + 100_000, jobs) - 1, **values)
            )
        print(f"{first:,} jobs", flush=True)
    with store.begin() as connection:
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        connection.exec_driver_sql(FILL_PODS.format(**values))
    with store.begin() as connection:
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        connection.exec_driver_sql("ANALYZE")


def reading(url: str, jobs: int, rounds: int) -> None:
    store = Store(url)
    store.upgrade()
    fill(store, jobs)
    client = create_app(Reader(url)).test_client()
    middle = queries.cursor("-created", {"gmt_created": START + timedelta(days=180), "id": jobs // 2})
    paths = (
        "/",
        f"/?after={middle}",
        "/?status=Failed",
        "/?namespace=team-7",
        "/?owner=user-7@example.org",
        "/?kind=MPIJob&status=Running",
        "/?namespace=team-7&status=Failed&sort=-finished",
        "/?name=llama",
        f"/?name=train-gpt-{jobs // 2 + 3}",
        "/?sort=name",
    )
    _milliseconds(client, "/")  # compiles the templates, connects
    every: list[float] = []
    for path in paths:
        times = sorted(_milliseconds(client, path) for _ in range(rounds))
        every += times
        print(
            f"{path:<70} p50 {statistics.median(times):>7.1f} ms   p95 {times[int(0.95 * (len(times) - 1))]:>7.1f} ms"
        )
    every.sort()
    print(f"all list pages: p50 {statistics.median(every):.1f} ms, p95 {every[int(0.95 * (len(every) - 1))]:.1f} ms")
    for path in ("/overview?since=30d", f"/jobs/{job(jobs // 2, 1, '').job_id}", "/api/v1/jobs?limit=100"):
        print(f"{path:<70} p50 {statistics.median(_milliseconds(client, path) for _ in range(5)):>7.1f} ms")
    store.close()


def _milliseconds(client: FlaskClient, path: str) -> float:
    begin = time.perf_counter()
    assert client.get(path).status_code == 200, path
    return 1000 * (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="SQLAlchemy URL; absent: a fresh SQLite file")
    parser.add_argument("--jobs", type=int, default=1000, help="jobs of one round, six rows each")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, help="measure reading instead, with so many jobs")
    options = parser.parse_args()
    if options.rows:
        assert options.url, "--rows needs the --url of an empty PostgreSQL database"
        reading(options.url, options.rows, 4 * options.rounds)
        return
    with tempfile.TemporaryDirectory() as directory:
        writing(options.url or f"sqlite:///{Path(directory)}/history.db", options.jobs, options.rounds)


if __name__ == "__main__":
    main()
