"""The store and schema suites of tests/unit/history once more, on a real PostgreSQL and a real MariaDB.

Needs the Debian packages ``postgresql`` and ``mariadb-server`` (their programs only: the tests start servers of their
own, on Unix sockets, as an ordinary user). A missing server is an error, not a skip.
"""

import gc
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from history.engine import CONNECT_SECONDS, POOL_SIZE, STATEMENT_SECONDS, connect
from history.reader import Reader
from history.store import Store
from history.writer import Writer

# pymysql forgets the socket of a connection that was refused
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning", "ignore:.*<socket.socket fd")


@pytest.fixture(autouse=True)
def forgotten_sockets_end_here():
    """Collected while this module's filter is in force, not in whatever test comes next."""
    yield
    gc.collect()


SUITE = Path(__file__).parent.parent / "unit" / "history"
PATHS = os.pathsep.join([os.environ["PATH"], "/usr/sbin", *map(str, Path("/usr/lib/postgresql").glob("*/bin"))])
DATABASES = itertools.count()


def share(module):
    """Tests and fixtures of the suite as this module's own; only ``database`` differs."""
    spec = importlib.util.spec_from_file_location(f"history_suite_{module}", SUITE / f"{module}.py")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    globals().update({name: value for name, value in vars(loaded).items() if not name.startswith("_")})


SUITES = (
    "test_store",
    "test_store_details",
    "test_closing",
    "test_faults_of_peers",
    "test_retention",
    "test_statistics",
    "test_counted",
    "test_schema",
)
for module in ("conftest", *SUITES):
    share(module)


def program(name, package):
    found = shutil.which(name, path=PATHS)
    if found is None:
        pytest.fail(f"{name} is not installed: apt-get install {package}")
    return found


class Server:
    """One database server in a directory of its own, run by ``user`` when the tests run as root."""

    def __init__(self, user):
        self.home = Path(tempfile.mkdtemp(prefix="signalbox-history-", dir="/tmp"))
        self.user = user if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
        if os.getuid() == 0:
            shutil.chown(self.home, user)
        self.process = None

    def run(self, *command):
        as_user = ["runuser", "-u", self.user, "--", *command] if os.getuid() == 0 else command
        return subprocess.run(as_user, check=True, capture_output=True, cwd=self.home)

    def start(self):
        """Start and wait until it answers; a server that ends instead shows its log."""
        log = (self.home / "log").open("ab")
        keywords = {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid} if os.getuid() == 0 else {}
        self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.home, **keywords)
        log.close()
        for _ in range(300):
            assert self.process.poll() is None, (self.home / "log").read_text()[-2000:]
            if self.answers():
                return
            time.sleep(0.1)
        pytest.fail(f"{self.command()[0]} did not answer: {(self.home / 'log').read_text()[-2000:]}")

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(30)

    def remove(self):
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def answers(self):
        try:
            self.execute("SELECT 1")
        except SQLAlchemyError:
            return False
        return True

    def execute(self, statement):
        engine = create_engine(self.url(self.admin), isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                return (
                    connection.execute(text(statement)).scalar()
                    if statement.startswith("SELECT")
                    else (connection.execute(text(statement)))
                )
        finally:
            engine.dispose()

    def fresh(self):
        """URL of a new, empty database."""
        name = f"history{next(DATABASES)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)


class PostgreSQL(Server):
    admin = "postgres"
    package = "postgresql"
    crash = signal.SIGQUIT  # its immediate shutdown; SIGKILL would leave its children behind
    connections = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'signalbox'"

    def __init__(self):
        super().__init__("postgres")
        self.run(program("initdb", self.package), "-D", "data", "-U", "root", "--auth=trust", "--no-sync")

    def command(self):
        quick = ["-c", "fsync=off", "-c", "listen_addresses=", "-k", str(self.home)]
        return [program("postgres", self.package), "-D", str(self.home / "data"), *quick]

    def url(self, name):
        return f"postgresql+psycopg://root@/{name}?host={self.home}"


class MariaDB(Server):
    admin = "mysql"
    package = "mariadb-server"
    crash = signal.SIGKILL
    connections = "SELECT count(*) - 1 FROM information_schema.processlist WHERE user = 'root'"

    def __init__(self):
        super().__init__("mysql")
        options = ["--no-defaults", "--auth-root-authentication-method=normal", f"--datadir={self.home}/data"]
        self.run(program("mariadb-install-db", self.package), *options)

    def command(self):
        files = [f"--datadir={self.home}/data", f"--socket={self.home}/socket", f"--pid-file={self.home}/pid"]
        quick = ["--innodb-flush-method=nosync", "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=32M"]
        return [program("mariadbd", self.package), "--no-defaults", "--skip-networking", *quick, *files]

    def url(self, name):
        return f"mysql+pymysql://root@localhost/{name}?unix_socket={self.home}/socket"


@pytest.fixture(scope="module", params=[PostgreSQL, MariaDB])
def server(request):
    server = request.param()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def database(server):
    return server.fresh()


def eventually(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.05)


def test_server_killed_while_jobs_run(server, database, make_job):
    """argoproj/argo-workflows#14112: no call waits, nothing is lost or doubled, connections stay in the pool."""
    writer = Writer(database, interval=0.05)
    for uid in range(50):
        writer.saw_job(make_job(f"job-{uid}", 1, ("Running", 10)))
    eventually(lambda: writer.written == 50)

    server.stop(server.crash)
    slowest = 0.0
    for uid in range(50):
        before = time.perf_counter()
        writer.saw_job(make_job(f"job-{uid}", 2, ("Succeeded", 60)))
        slowest = max(slowest, time.perf_counter() - before)
    eventually(lambda: writer.failures)
    assert not writer.saved("job-0", "2")
    server.start()
    eventually(lambda: all(writer.saved(f"job-{uid}", "2") for uid in range(50)))

    assert slowest < CONNECT_SECONDS  # no call waited for the server
    assert server.execute(server.connections) <= POOL_SIZE
    assert writer.close()
    store = Reader(database)
    assert [row["status"] for row in store.jobs()] == ["Succeeded"] * 50
    store.close()


def test_a_held_lock_ends_the_wait(server, database, job):
    """A batch that cannot get its rows gives up within seconds, and works once they are free."""
    store = Store(database)
    store.upgrade()
    store.save([job("a", 1)])
    other = connect(database)
    with other.begin() as connection:
        connection.execute(text("SELECT * FROM job_info FOR UPDATE")).all()
        before = time.monotonic()
        with pytest.raises(SQLAlchemyError):
            store.save([job("a", 2)])
        assert time.monotonic() - before < STATEMENT_SECONDS + 30
    store.save([job("a", 2)])
    other.dispose()
    store.close()
