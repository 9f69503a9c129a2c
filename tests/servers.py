"""Servers that the tests in the folders beside this file start: the real Redis where it is installed, and ours."""
import contextlib
import os
import pathlib
import socket
import subprocess
import tempfile
import time

import pytest
import redis

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEERS = pathlib.Path(os.environ.get("PEERS_DIR", pathlib.Path.home() / ".cache/tidemill-peers")) / "bin"
OURS = pathlib.Path(os.environ.get("TIDEMILL_SERVER", ROOT / "target/release/tidemill-server"))
WAIT = 10


def present(*threads):
    """What is here, by name: the real server, and ours with these numbers of threads."""
    servers = {"redis-8.10": [PEERS / "redis-8.10"]}
    servers |= {f"tidemill-{count}": [OURS, "--threads", str(count)] for count in threads}
    return {name: command for name, command in servers.items() if command[0].is_file()}


def require(servers):
    """Ends the run where what it cannot do without is not here."""
    if "TIDEMILL_SERVER" in os.environ and not OURS.is_file():
        raise pytest.UsageError(f"TIDEMILL_SERVER names no file: {OURS}")
    if not servers:
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


@contextlib.contextmanager
def running(command):
    """The port of a server that runs meanwhile, in a folder of its own, and has to end well."""
    with tempfile.TemporaryDirectory() as folder:
        process, port = start(command, folder)
        yield port
        process.terminate()
        assert process.wait(WAIT) == 0
