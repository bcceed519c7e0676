"""Which URLs name a history."""

import subprocess
import sys

import pytest

from history import address


@pytest.mark.parametrize("url", ["https://history:8090", "http://127.0.0.1:8090/", "sqlite:////tmp/h.db"])
def test_good_urls(url):
    address.check(url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://", "must look like https://HOST:PORT"),
        ("https://user@history", "must look like https://HOST:PORT"),
        ("history", "must look like sqlite:///FILE"),
        ("oracle://db", "must be sqlite, postgresql or mysql (got 'oracle')"),
        ("sqlite://", "must name a file"),
    ],
)
def test_urls_that_can_never_work(url, said):
    with pytest.raises(ValueError, match="history URL: ") as caught:
        address.check(url)
    assert said in str(caught.value)


def test_looking_at_a_url_loads_no_metrics():
    """Where several processes keep them is decided when the library is loaded, and for good."""
    look = "import sys; from history import address; address.check('sqlite:////h'); print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout.split()
    assert "history.address" in loaded
    assert "prometheus_client" not in loaded
