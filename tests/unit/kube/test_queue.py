"""No key with two workers, none lost, none twice."""

import threading
import time

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from kube.queue import WorkQueue


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def queue(clock):
    return WorkQueue(monotonic=clock)


def drained(queue):
    keys = []
    while (key := queue.get(timeout=0)) is not None:
        keys.append(key)
        queue.done(key)
    return keys


def test_keys_come_once_and_in_the_order_of_arrival(queue):
    for key in "bab":
        queue.add(key)
    assert queue.depth == 2
    assert drained(queue) == ["b", "a"]
    assert queue.depth == 0


def test_key_added_while_worked_on_comes_again_after_done(queue):
    queue.add("a")
    assert queue.get(timeout=0) == "a"
    queue.add("a")
    queue.add("a")
    assert queue.get(timeout=0) is None
    assert queue.depth == 1
    queue.done("a")
    assert drained(queue) == ["a"]


def test_delays(queue, clock):
    queue.add_after("later", 10)
    queue.add_after("soon", 5)
    queue.add_after("now", 0)
    assert drained(queue) == ["now"]
    clock.now = 5
    assert drained(queue) == ["soon"]
    clock.now = 10
    assert drained(queue) == ["later"]


@pytest.mark.parametrize("delays", [(3, 7), (7, 3), (7, 3, 9)])
def test_earliest_delay_wins(queue, clock, delays):
    for delay in delays:
        queue.add_after("a", delay)
    times = []
    for clock.now in range(12):
        times += [clock.now for _ in drained(queue)]
    assert times == [3]


def test_backoff_doubles_up_to_the_cap_and_starts_anew(clock):
    queue = WorkQueue(base=1, cap=5, monotonic=clock)
    assert [queue.retry("a") for _ in range(5)] == [1, 2, 4, 5, 5]
    assert queue.retry("b") == 1
    queue.forget("a")
    assert queue.retry("a") == 1
    clock.now = 1
    assert sorted(drained(queue)) == ["a", "b"]


def test_backoff_never_overflows(queue):
    assert [queue.retry("a") for _ in range(3000)][-1] == 60


def test_shut_down_wakes_waiting_workers_and_refuses_keys():
    queue = WorkQueue()
    answers = []
    workers = [threading.Thread(target=lambda: answers.append(queue.get())) for _ in range(3)]
    for worker in workers:
        worker.start()
    queue.shut_down()
    for worker in workers:
        worker.join(5)
    queue.add("a")
    queue.add_after("b", 0)
    queue.retry("c")
    assert answers == [None] * 3
    assert queue.is_shut_down
    assert queue.get() is None


def test_waiting_worker_wakes_for_an_earlier_delay():
    queue = WorkQueue()
    queue.add_after("late", 60)
    got = []
    worker = threading.Thread(target=lambda: got.append(queue.get(timeout=10)), daemon=True)
    worker.start()
    time.sleep(0.02)
    queue.add_after("early", 0.01)
    worker.join(5)
    assert got == ["early"]


def test_many_threads_share_the_keys():
    queue, working, seen, clashes = WorkQueue(), set(), [], []

    def work():
        while (key := queue.get(timeout=0.3)) is not None:
            if key in working:
                clashes.append(key)
            working.add(key)
            seen.append(key)
            time.sleep(0.0005)
            working.discard(key)
            queue.done(key)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for number in range(400):
        queue.add(number % 7)
        queue.add_after(number % 5, 0.001)
    for worker in workers:
        worker.join(10)
    assert not clashes
    assert set(seen) == set(range(7))
    assert queue.depth == 0


KEYS = st.sampled_from("abc")


class QueueMachine(RuleBasedStateMachine):
    """Against a model that knows when each key must come next, and who has it."""

    def __init__(self):
        super().__init__()
        self.clock = Clock()
        self.queue = WorkQueue(base=1, cap=8, monotonic=self.clock)
        self.ready: set[str] = set()
        self.due: dict[str, float] = {}
        self.taken: set[str] = set()

    def delay(self, key, seconds):
        self.due[key] = min(self.due.get(key, float("inf")), self.clock.now + seconds)

    @rule(key=KEYS)
    def add(self, key):
        self.queue.add(key)
        self.ready.add(key)

    @rule(key=KEYS, seconds=st.integers(1, 9))
    def add_after(self, key, seconds):
        self.queue.add_after(key, seconds)
        self.delay(key, seconds)

    @rule(key=KEYS)
    def retry(self, key):
        self.delay(key, self.queue.retry(key))

    @rule(key=KEYS)
    def forget(self, key):
        self.queue.forget(key)

    @rule(seconds=st.integers(1, 9))
    def pass_time(self, seconds):
        self.clock.now += seconds

    @rule()
    def get(self):
        key = self.queue.get(timeout=0)
        for late in [late for late, due in self.due.items() if due <= self.clock.now]:
            del self.due[late]
            self.ready.add(late)
        if key is None:
            assert self.ready <= self.taken, "a key that is ready was not handed out"
            return
        assert key in self.ready - self.taken
        self.ready.discard(key)
        self.taken.add(key)

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def done(self, data):
        key = data.draw(st.sampled_from(sorted(self.taken)))
        self.queue.done(key)
        self.taken.discard(key)

    def teardown(self):
        for key in self.taken:
            self.queue.done(key)
        self.clock.now += 100
        assert set(drained(self.queue)) == self.ready | set(self.due)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_paused_queue_keeps_what_is_added(queue, clock):
    queue.pause()
    queue.add("a")
    queue.add("a")
    queue.add_after("b", 1)
    clock.now += 2
    assert queue.get(timeout=0) is None
    queue.resume()
    assert drained(queue) == ["a", "b"]


def test_resuming_wakes_a_waiting_worker():
    queue = WorkQueue()
    queue.pause()
    queue.add("a")
    got = []
    worker = threading.Thread(target=lambda: got.append(queue.get(timeout=10)))
    worker.start()
    queue.resume()
    worker.join(5)
    assert got == ["a"]
