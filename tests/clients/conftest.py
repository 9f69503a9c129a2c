"""Servers for the client tests: the real Redis where it is installed, and ours at one and two threads.

Each runs once a session, on a free port with a folder of its own, and is emptied before every test. A server that is
not there is left out, and the header of the run says so; one that TIDEMILL_SERVER names has to be there. The clients
are unmodified and newest: what they send is what people's programs send.
"""
import pathlib
import sys

import pytest
import redis

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from servers import WAIT, present, require, running, wait_until  # noqa: E402

ALL = ("redis-8.10", "tidemill-1", "tidemill-2")
PRESENT = present(1, 2)


def pytest_report_header(config):
    absent = [name for name in ALL if name not in PRESENT]
    return f"servers: {', '.join(PRESENT) or 'none'}" + (f" (not here: {', '.join(absent)})" if absent else "")


def pytest_configure(config):
    require(PRESENT)


@pytest.fixture(scope="session", params=PRESENT)
def server(request):
    """The port of a running server."""
    with running(PRESENT[request.param]) as port:
        yield port


@pytest.fixture
def port(server):
    redis.Redis(port=server).flushall()
    return server


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request):
    return request.param


@pytest.fixture
def connect(port, protocol):
    """Makes clients, and closes them after the test."""
    made = []

    def make(**options):
        made.append(redis.Redis(port=port, protocol=protocol, decode_responses=True, socket_timeout=WAIT, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def r(connect):
    return connect()


@pytest.fixture
def blocked(connect):
    """Returns once the server counts so many blocked clients."""
    watcher = connect()
    return lambda count: wait_until(
        lambda: watcher.info("clients")["blocked_clients"] == count, f"{count} blocked clients")
