"""A queue of keys to look at: every key once, and never with two workers at the same time."""

import heapq
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """Keys to work on, for any number of producers and workers.

    A key added several times is handed out once. A key added while a worker has it is handed out again after
    ``done``. ``retry`` delays a key by ``base`` seconds, twice as long every time, up to ``cap``, until ``forget``.
    """

    def __init__(
        self, *, base: float = 0.005, cap: float = 60.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._base = base
        self._cap = cap
        self._now = monotonic
        self._changed = threading.Condition()
        self._ready: dict[K, None] = {}  # a set in the order of arrival
        self._taken: set[K] = set()
        self._again: set[K] = set()
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._failures: dict[K, int] = {}
        self._shut_down = False
        self._paused = False

    @property
    def depth(self) -> int:
        """Keys that wait to be worked on now, including those to be handed out again; delayed ones do not count."""
        with self._changed:
            return len(self._ready) + len(self._again)

    @property
    def is_shut_down(self) -> bool:
        """Whether None from ``get`` means the end rather than a timeout."""
        return self._shut_down

    def add(self, key: K) -> None:
        """Hand ``key`` out as soon as a worker is free."""
        with self._changed:
            if not self._shut_down:
                self._enqueue(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add ``key`` after ``seconds``; of several times asked for the earliest counts and the others are dropped."""
        with self._changed:
            if not self._shut_down:
                self._delay(key, seconds)

    def retry(self, key: K) -> float:
        """Add ``key`` after its backoff; the seconds it will take."""
        with self._changed:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            seconds = min(self._cap, self._base * 2.0 ** min(failures, 64))
            if not self._shut_down:
                self._delay(key, seconds)
            return seconds

    def forget(self, key: K) -> None:
        """Start the backoff of ``key`` anew; what is queued stays."""
        with self._changed:
            self._failures.pop(key, None)

    def get(self, timeout: float | None = None) -> K | None:
        """The next key, which is the caller's until ``done``; None after ``timeout`` seconds or a shut down."""
        deadline = None if timeout is None else self._now() + timeout
        with self._changed:
            while not self._shut_down:
                self._promote()
                if self._ready and not self._paused:
                    return self._take()
                if deadline is not None and self._now() >= deadline:
                    return None
                self._changed.wait(self._patience(deadline))
        return None

    def done(self, key: K) -> None:
        """The worker is finished with ``key``; to be called for every key that ``get`` returned."""
        with self._changed:
            self._taken.discard(key)
            if key in self._again:
                self._again.discard(key)
                self._enqueue(key)

    def pause(self) -> None:
        """Hand nothing out until ``resume``; what is added meanwhile is kept, each key once."""
        with self._changed:
            self._paused = True

    def resume(self) -> None:
        with self._changed:
            self._paused = False
            self._changed.notify_all()

    def shut_down(self) -> None:
        """Wake every worker with None; what is queued is dropped, as the next process finds it by its list."""
        with self._changed:
            self._shut_down = True
            self._changed.notify_all()

    def _enqueue(self, key: K) -> None:
        if key in self._taken:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = None
            self._changed.notify()

    def _delay(self, key: K, seconds: float) -> None:
        if seconds <= 0:
            self._enqueue(key)
            return
        due = self._now() + seconds
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._sequence += 1
            heapq.heappush(self._heap, (due, self._sequence, key))
            self._changed.notify()  # a waiting worker may have to wake up earlier than it thought

    def _promote(self) -> None:
        """Move the keys whose time has come; entries that an earlier time replaced are skipped."""
        now = self._now()
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                self._enqueue(key)

    def _take(self) -> K:
        key = next(iter(self._ready))
        del self._ready[key]
        self._taken.add(key)
        return key

    def _patience(self, deadline: float | None) -> float | None:
        """Seconds until there is something to do without being notified."""
        first = self._heap[0][0] if self._heap else None
        times = [moment for moment in (deadline, first) if moment is not None]
        return max(0.0, min(times) - self._now()) if times else None
