"""Servers for the frameworks: the real Redis where it is installed, and ours at one and four threads.

What runs here is what people build on Redis: job queues, workers, schedulers, adapters. None of it is changed for us,
and each does a real job to its end.
"""
import pathlib
import sys

import pytest
import redis

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from servers import present, require, running  # noqa: E402

PRESENT = present(1, 4)


def pytest_report_header(config):
    return f"servers: {', '.join(PRESENT) or 'none'}"


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
