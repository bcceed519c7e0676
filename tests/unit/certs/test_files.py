import stat
from dataclasses import replace

import pytest

from certs.files import write_pair
from certs.issue import Issued

FIRST = Issued(ca_pem=b"ca 1", cert_pem=b"cert 1", key_pem=b"key 1")
SECOND = replace(FIRST, cert_pem=b"cert 2", key_pem=b"key 2")


def content(directory):
    return [(directory / name).read_bytes() for name in ("ca.crt", "tls.crt", "tls.key")]


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "tls"


def test_writes_all_three(directory):
    assert write_pair(directory, FIRST)
    assert content(directory) == [b"ca 1", b"cert 1", b"key 1"]


def test_key_is_the_owners_alone(directory):
    write_pair(directory, FIRST)
    assert stat.S_IMODE((directory / "tls.key").stat().st_mode) == 0o600


def test_swap_leaves_only_the_new_pair(directory):
    write_pair(directory, FIRST)
    assert write_pair(directory, SECOND)
    assert content(directory) == [b"ca 1", b"cert 2", b"key 2"]
    assert sorted(path.name for path in directory.iterdir() if path.is_symlink()) == [
        "..data",
        "ca.crt",
        "tls.crt",
        "tls.key",
    ]
    assert len([path for path in directory.iterdir() if not path.is_symlink()]) == 1


def test_one_link_decides(directory):
    write_pair(directory, FIRST)
    assert {str((directory / name).readlink()) for name in ("tls.crt", "tls.key")} == {
        "..data/tls.crt",
        "..data/tls.key",
    }


def test_same_content_is_left_alone(directory):
    write_pair(directory, FIRST)
    before = (directory / "..data").readlink()
    assert not write_pair(directory, FIRST)
    assert (directory / "..data").readlink() == before


def test_plain_files_are_taken_over(directory):
    directory.mkdir()
    (directory / "tls.crt").write_bytes(b"by hand")
    assert write_pair(directory, FIRST)
    assert content(directory) == [b"ca 1", b"cert 1", b"key 1"]
