"""redis-py over TLS, with certificates that openssl makes for the session.

The real Redis that the other tests compare with is built without TLS, so these are for ours alone.
"""
import asyncio
import shutil
import socket
import subprocess
import threading

import pytest
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

from servers import OURS, WAIT, start, wait_until

pytestmark = [
    pytest.mark.skipif(not OURS.is_file(), reason="our server is not built"),
    pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed"),
]


# Does not try again what is refused.
ONCE = {"retry": Retry(NoBackoff(), 0)}


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A folder with an authority, and what it gave the server and a client."""
    folder = tmp_path_factory.mktemp("certificates")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl(folder, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "30", "-subj", "/CN=authority")
    (folder / "extensions").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ["server", "alice"]:
        openssl(folder, "req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/O=tests/CN={name}")
        openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                "-out", f"{name}.crt", "-days", "30", "-extfile", "extensions")
    return folder


@pytest.fixture(scope="module", params=["1", "2"])
def ports(request, certificates, tmp_path_factory):
    """The ports of a running server: without TLS, and with it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        tls = probe.getsockname()[1]
    options = ["--threads", request.param, "--tls-port", str(tls), "--tls-auth-clients", "optional",
               "--tls-cert-file", certificates / "server.crt", "--tls-key-file", certificates / "server.key",
               "--tls-ca-cert-file", certificates / "ca.crt"]
    process, port = start([OURS, *options], str(tmp_path_factory.mktemp("server")))
    yield port, tls
    process.terminate()
    assert process.wait(WAIT) == 0


@pytest.fixture
def options(ports, certificates):
    return {"host": "localhost", "port": ports[1], "ssl": True, "ssl_ca_certs": str(certificates / "ca.crt"),
            "decode_responses": True, "socket_timeout": WAIT}


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def r(options, request):
    client = redis.Redis(protocol=request.param, **options)
    client.flushall()
    yield client
    client.close()


def test_commands_pipelines_and_large_values(r):
    assert r.ping()
    big = "x" * 5_000_000
    assert r.set("big", big) and r.get("big") == big
    with r.pipeline() as pipe:
        for number in range(5000):
            pipe.set(f"k{number}", number).get(f"k{number}")
        replies = pipe.execute()
    assert replies[1::2] == [str(number) for number in range(5000)]
    assert r.info("server")["listener2"]["name"] == "tls"


def test_messages_streams_and_blocking(r, options):
    subscriber = redis.Redis(**options).pubsub(ignore_subscribe_messages=True)
    subscriber.subscribe("news")
    wait_until(lambda: r.pubsub_numsub("news") == [("news", 1)], "a subscriber")
    for number in range(100):
        r.publish("news", f"{number}" * 500)
    for number in range(100):
        message = None
        while message is None:
            message = subscriber.get_message(timeout=WAIT)
        assert message["data"] == f"{number}" * 500
    subscriber.close()
    taken = []
    worker = threading.Thread(target=lambda: taken.append(redis.Redis(**options).blpop("queue", timeout=WAIT)))
    worker.start()
    wait_until(lambda: r.info("clients")["blocked_clients"] == 1, "a blocked client")
    r.rpush("queue", "task")
    worker.join(WAIT)
    assert [tuple(one) for one in taken] == [("queue", "task")]


def test_asyncio(options):
    async def run():
        client = redis.asyncio.Redis(**options)
        replies = await asyncio.gather(*(client.incr("counter") for _ in range(10)))
        await client.delete("counter")
        await client.aclose()
        return sorted(replies)

    assert asyncio.run(run()) == list(range(1, 11))


def test_a_certificate_logs_its_user_in(ports, options, certificates):
    plain = redis.Redis(port=ports[0], decode_responses=True)
    plain.config_set("tls-auth-clients-user", "CN")
    plain.acl_setuser("alice", enabled=True, nopass=True, commands=["+@all"], keys=["*"])
    shown = {"ssl_certfile": str(certificates / "alice.crt"), "ssl_keyfile": str(certificates / "alice.key")}
    with redis.Redis(**options, **shown) as client:
        assert client.acl_whoami() == "alice"
    with redis.Redis(**options) as client:
        assert client.acl_whoami() == "default"
    plain.config_set("tls-auth-clients", "yes")
    with redis.Redis(**options, **ONCE) as client, pytest.raises(redis.ConnectionError):
        client.ping()
    with redis.Redis(**options, **shown) as client:
        assert client.ping()
    plain.config_set("tls-auth-clients", "optional")
    plain.acl_deluser("alice")


def test_who_does_not_know_the_authority_does_not_connect(ports):
    with redis.Redis(host="localhost", port=ports[1], ssl=True, **ONCE) as client, pytest.raises(redis.ConnectionError):
        client.ping()
