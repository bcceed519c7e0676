"""What waits to be written, and what is given up when too much does."""

import pytest

from history.backlog import Backlog, Entry


def entry(size=0, ended=False):
    return Entry(None, version=0, ended=ended, size=size)


@pytest.mark.parametrize(
    ("sizes", "left", "dropped"),
    [
        ([40, 40], ["a", "b"], 0),
        ([40, 40, 40], ["b", "c"], 1),
        ([40, 40, 90], ["c"], 2),
        ([0, 0, 0, 0], ["b", "c", "d"], 1),
    ],
)
def test_neither_entries_nor_their_bytes_may_be_too_many(sizes, left, dropped):
    backlog = Backlog(limit=3, most_bytes=100)
    complete = [backlog.put(("snapshot", name), entry(size)) for name, size in zip("abcd", sizes, strict=False)]
    assert [name for (_, name), _ in backlog.oldest(9)] == left
    assert (backlog.dropped, all(complete)) == (dropped, not dropped)


def test_bytes_that_are_written_or_replaced_are_free_again():
    backlog = Backlog(limit=9, most_bytes=100)
    backlog.put(("snapshot", "a"), entry(90))
    backlog.put(("snapshot", "a"), entry(60))
    backlog.remove(backlog.oldest(9))
    assert backlog.put(("snapshot", "b"), entry(100))
    assert (len(backlog), backlog.dropped) == (1, 0)


def test_what_has_ended_is_given_up_last():
    backlog = Backlog(limit=9, most_bytes=100)
    backlog.put(("snapshot", "a"), entry(60, ended=True))
    backlog.put(("snapshot", "b"), entry(40))
    assert not backlog.put(("snapshot", "c"), entry(40))
    assert [name for (_, name), _ in backlog.oldest(9)] == ["a", "c"]
