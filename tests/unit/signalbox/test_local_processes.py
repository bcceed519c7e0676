import json
import os
import signal
import subprocess
import sys
import time

import pytest

from signalbox.local import cluster, processes, watchdog
from signalbox.local.processes import Program, StartError

SLEEP = Program("sleeper", ("sleep", "60"), ("127.0.0.1:1",))


@pytest.fixture
def state_dir(tmp_path):
    yield tmp_path
    for name in processes.names(tmp_path):
        processes.stop(tmp_path, name, grace=1)


def python(code: str) -> Program:
    return Program("script", (sys.executable, "-c", code))


def eventually(check, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "not within time"
        time.sleep(0.02)


def test_started_process_is_recorded_and_stopped(state_dir):
    record = processes.start(state_dir, SLEEP, lambda: True)
    assert processes.running(state_dir, "sleeper") == record
    assert processes.read(state_dir, "sleeper").listens == ("127.0.0.1:1",)
    assert os.getsid(record.pid) == record.pid, "Ctrl-C in our terminal would end it"
    assert 0 <= record.uptime() < 60
    assert processes.stop(state_dir, "sleeper")
    assert not record.is_alive()
    assert not processes.stop(state_dir, "sleeper")


@pytest.mark.parametrize(
    ("argv", "same"), [(("sleep", "60"), True), (("sleep", "61"), False)], ids=["same arguments", "other arguments"]
)
def test_a_running_process_is_used_again_only_with_the_same_arguments(state_dir, argv, same):
    first = processes.launch(state_dir, SLEEP)
    second = processes.launch(state_dir, Program("sleeper", argv))
    assert (second.pid == first.pid) is same
    assert first.is_alive() is same


def test_a_recycled_pid_is_neither_used_nor_killed(state_dir):
    with subprocess.Popen(["sleep", "60"]) as innocent:
        stored = {"pid": innocent.pid, "started": 12345, "argv": ["sleep", "60"], "listens": []}
        (state_dir / "sleeper.pid").write_text(json.dumps(stored))
        assert processes.running(state_dir, "sleeper") is None
        assert not processes.stop(state_dir, "sleeper")
        assert innocent.poll() is None
        assert processes.launch(state_dir, SLEEP).pid != innocent.pid
        innocent.kill()


@pytest.mark.parametrize(
    "content", ["", "123", "[]", "{}", '{"pid": 1}', "not json", '{"pid":1,"started":1,"argv":null}']
)
def test_an_unreadable_pid_file_means_no_process(state_dir, content):
    (state_dir / "sleeper.pid").write_text(content)
    assert processes.read(state_dir, "sleeper") is None
    assert not processes.stop(state_dir, "sleeper")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "import sys; [print('line', n, flush=True) for n in range(40)]; sys.exit('the reason')",
            "ended before it was ready",
        ),
        ("import time; print('the reason', flush=True); time.sleep(60)", "was not ready within 1 s"),
    ],
)
def test_a_failed_start_shows_the_end_of_the_log(state_dir, code, message):
    with pytest.raises(StartError, match=message) as caught:
        processes.start(state_dir, python(code), lambda: False, timeout=1)
    assert "the reason" in str(caught.value)
    assert "line 20" not in str(caught.value)
    assert processes.running(state_dir, "script") is None


def test_a_process_that_ignores_sigterm_is_killed(state_dir):
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    )
    record = processes.start(state_dir, python(code), lambda: "ready" in processes.log_tail(state_dir, "script"))
    assert processes.stop(state_dir, "script", grace=0.2)
    assert not record.is_alive()


def test_a_dead_child_that_nobody_waited_for_is_not_alive(state_dir):
    record = processes.launch(state_dir, SLEEP)
    os.kill(record.pid, signal.SIGKILL)
    eventually(lambda: not record.is_alive())


def test_a_process_gets_its_own_environment(state_dir):
    program = Program("script", ("sh", "-c", "echo $COLOUR"), env={"COLOUR": "blue"})
    processes.launch(state_dir, program)
    eventually(lambda: processes.log_tail(state_dir, "script") == "blue")


def test_the_watchdog_ends_everything_when_its_process_is_gone(state_dir):
    sleeper = processes.launch(state_dir, SLEEP)
    with subprocess.Popen(["sleep", "60"]) as watched:
        watchdog.launch(state_dir, watched.pid)
        watchdog.launch(state_dir, watched.pid)
        guard = processes.running(state_dir / watchdog.NAME, watchdog.NAME)
        time.sleep(2 * watchdog.INTERVAL)
        assert sleeper.is_alive()
        watched.kill()
    eventually(lambda: not sleeper.is_alive() and not guard.is_alive())
    assert processes.names(state_dir) == []


def test_a_start_from_nothing_leaves_the_watchdog_alone(state_dir):
    watchdog.launch(state_dir, os.getpid())
    cluster.stop(state_dir)
    assert processes.running(state_dir / watchdog.NAME, watchdog.NAME)
    watchdog.stop(state_dir)
    assert not processes.running(state_dir / watchdog.NAME, watchdog.NAME)
