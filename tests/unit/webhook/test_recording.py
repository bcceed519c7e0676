"""What becomes of the records of reviews, as metrics."""

from datetime import UTC, datetime

from schemas.records import Admission
from webhook.recording import DROPPED, WAITING, Recording

RECORD = Admission(
    datetime(2026, 1, 1, tzinfo=UTC), "r", "", "ann", (), "ns", "job", "TrainingJob", "CREATE", "refused"
)


class Full:
    """A queue that has room for two."""

    def __init__(self):
        self.taken = []
        self.dropped = 0

    @property
    def waiting(self):
        return len(self.taken)

    def admission(self, record):
        if len(self.taken) < 2:
            self.taken.append(record)
        else:
            self.dropped += 1


def test_what_is_dropped_is_counted_once():
    queue, before = Full(), DROPPED._value.get()
    recording = Recording(queue)
    for _ in range(5):
        recording.admission(RECORD)
    assert (DROPPED._value.get() - before, WAITING._value.get()) == (3, 2)
    assert queue.taken == [RECORD, RECORD]
