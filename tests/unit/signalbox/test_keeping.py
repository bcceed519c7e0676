from datetime import timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from signalbox import keeping
from signalbox.keeping import certificate_options


def options(*arguments):
    found = {}

    @click.command()
    @certificate_options
    def command(**given):
        found.update(given)

    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return found


def kept(*arguments):
    keeper = keeping.keeper(None, options(*arguments), leading=lambda: True)
    return keeper and keeper._settings


def test_as_shipped(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    settings = kept()
    assert settings.namespace == settings.names.namespace == "signalbox-system"
    assert (settings.names.service, settings.overlap) == ("signalbox-webhook", timedelta(seconds=60))


def test_hands_off():
    assert kept("--certificates=off") is None


def test_options_arrive():
    settings = kept(
        "--certificate-namespace=x", "--certificate-name=localhost", "--certificate-dir=/d", "--bundle-wait=1"
    )
    assert (settings.names.dns[1], settings.names.extra) == ("signalbox-webhook.x", ("localhost",))
    assert (settings.directory, settings.overlap) == (Path("/d"), timedelta(seconds=1))


@pytest.mark.parametrize("name", ["UPPER", "a_b", "x\n", ""])
def test_wrong_name_is_shown(name):
    command = certificate_options(click.command()(lambda **_: None).callback)
    result = CliRunner().invoke(click.command()(command), ["--certificate-name", name])
    assert "must be a lower-case DNS name or an IP address" in result.output
