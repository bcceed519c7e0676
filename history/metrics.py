"""What the history counts, in any process that answers for it or writes it. No label holds the name of a job."""

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter("signalbox_history_requests_total", "Requests by route and status code", ["route", "status"])
SECONDS = Histogram("signalbox_history_request_seconds", "Duration of a request", ["route", "status"])
OPEN = Gauge("signalbox_history_open_requests", "Requests that are being answered, or wait for the database")
INGEST = Counter(
    "signalbox_history_ingest_batches_total",
    "Batches of other processes: accepted, refused (can never be taken) or failed (sent again)",
    ["outcome"],
)
ROWS = Counter("signalbox_history_written_rows_total", "Rows written to the database", ["table"])
FAILURES = Counter("signalbox_history_write_failures_total", "Transactions that the database did not take")
DELETED = Counter("signalbox_history_deleted_rows_total", "Rows deleted because they are old", ["table"])
UNTOLD = Gauge("signalbox_history_waiting_notifications", "Ends of jobs that --notify-url has not taken yet")
STORED = Gauge("signalbox_history_stored_rows", "Rows of a table, counted every five minutes at most", ["table"])
