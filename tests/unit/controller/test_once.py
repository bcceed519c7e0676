"""Deletes and notices of one process."""

from controller.keys import Key
from controller.once import Deletes, Notices
from controller.plan import Delete, Event
from schemas import kinds

KEY = Key(kinds.TRAINING_JOB, "ns", "job")


def test_a_delete_is_known_by_its_uid_and_by_being_forced():
    deletes = Deletes()
    deletes.note([Delete("pods", "a", "1")])
    assert deletes.knows(Delete("pods", "b", "1"))
    assert not deletes.knows(Delete("pods", "a", "1", force=True))
    assert not deletes.knows(Delete("pods", "a", "2"))


def test_the_oldest_deletes_are_forgotten():
    deletes = Deletes(most=2)
    deletes.note(Delete("pods", "a", str(number)) for number in range(4))
    assert [deletes.knows(Delete("pods", "a", str(number))) for number in range(4)] == [False, False, True, True]


def test_a_notice_is_new_until_it_was_told():
    notices, told, other = Notices(), Event("Warning", "A", "a"), Event("Warning", "B", "b")
    assert notices.new(KEY, (told, other)) == [told, other]
    notices.note(KEY, told)
    assert notices.new(KEY, (told, other)) == [other]
    notices.forget(KEY)
    assert notices.new(KEY, (told,)) == [told]
