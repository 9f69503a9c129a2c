"""Servers for the client tests: the real Redis where it is installed, and ours at one and two threads.

Each runs once a session, on a free port with a folder of its own, and is emptied before every test. A server that is
not there is left out, and the header of the run says so; one that TIDEMILL_SERVER names has to be there. The clients
are unmodified and newest: what they send is what people's programs send.
"""
import os
import pathlib
import socket
import subprocess
import tempfile
import time

import pytest
import redis

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = pathlib.Path(os.environ.get("PEERS_DIR", pathlib.Path.home() / ".cache/tidemill-peers")) / "bin"
OURS = pathlib.Path(os.environ.get("TIDEMILL_SERVER", ROOT / "target/release/tidemill-server"))
SERVERS = {
    "redis-8.10": [PEERS / "redis-8.10"],
    "tidemill-1": [OURS, "--threads", "1"],
    "tidemill-2": [OURS, "--threads", "2"],
}
PRESENT = {name: command for name, command in SERVERS.items() if command[0].is_file()}
WAIT = 10


def pytest_report_header(config):
    absent = [name for name in SERVERS if name not in PRESENT]
    return f"servers: {', '.join(PRESENT) or 'none'}" + (f" (not here: {', '.join(absent)})" if absent else "")


def pytest_configure(config):
    if "TIDEMILL_SERVER" in os.environ and not OURS.is_file():
        raise pytest.UsageError(f"TIDEMILL_SERVER names no file: {OURS}")
    if not PRESENT:
        raise pytest.UsageError("no server is here: build one with `cargo build --release`")


def wait_until(condition, what):
    """Waits for a condition instead of sleeping and hoping."""
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, f"not within {WAIT} s: {what}"
        time.sleep(0.002)


def start(command, folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
    log = open(pathlib.Path(folder) / "log", "w+")
    process = subprocess.Popen([*map(str, command), *options], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def answers():
        assert process.poll() is None, f"ended with {process.returncode}: {open(log.name).read()}"
        try:
            return redis.Redis(port=port).ping()
        except redis.ConnectionError:
            return False

    wait_until(answers, f"an answer from {command[0]}")
    return process, port


@pytest.fixture(scope="session", params=PRESENT)
def server(request):
    """The port of a running server."""
    with tempfile.TemporaryDirectory() as folder:
        process, port = start(PRESENT[request.param], folder)
        yield port
        process.terminate()
        assert process.wait(WAIT) == 0


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
