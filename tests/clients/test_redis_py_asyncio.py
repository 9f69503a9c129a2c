"""redis-py, asyncio: the same ground as the synchronous tests, where concurrency differs."""
import asyncio

import pytest
import redis.asyncio
from redis.exceptions import ResponseError, WatchError

from servers import WAIT


@pytest.fixture
def run(port, protocol):
    """Runs a test's coroutine with a way to make clients, within a limit, and closes them."""

    def run(test):
        async def body():
            made = []

            def connect():
                made.append(redis.asyncio.Redis(port=port, protocol=protocol, decode_responses=True))
                return made[-1]

            try:
                await asyncio.wait_for(test(connect), 2 * WAIT)
            finally:
                for client in made:
                    await client.aclose()

        asyncio.run(body())

    return run


async def blocked(client, count):
    while (await client.info("clients"))["blocked_clients"] != count:
        await asyncio.sleep(0.002)


def ids(reply):
    """The ids in a reply about one stream: a map with RESP3, pairs with RESP2."""
    (chunks,) = reply.values() if isinstance(reply, dict) else [[reply[0][1]]]
    return [entry[0] for chunk in chunks for entry in chunk]


def test_many_commands_at_once(run):
    async def test(connect):
        r = connect()
        await asyncio.gather(*(r.incr("n") for _ in range(80)))
        assert await r.get("n") == "80"

    run(test)


def test_a_group_shares_the_work(run):
    async def test(connect):
        r = connect()
        await r.xgroup_create("s", "g", "0", mkstream=True)
        sent = [await r.xadd("s", {"n": n}) for n in range(100)]
        seen = []

        async def consume(name):
            client = connect()
            while len(seen) < len(sent):
                reply = await client.xreadgroup("g", name, {"s": ">"}, count=7, block=50)
                for entry in ids(reply) if reply else []:
                    seen.append(entry)
                    assert await client.xack("s", "g", entry) == 1

        await asyncio.gather(*(consume(f"c{n}") for n in range(4)))
        assert sorted(seen) == sorted(sent)
        assert (await r.xpending("s", "g"))["pending"] == 0

    run(test)


def test_blocked_readers_wake(run):
    async def test(connect):
        r = connect()
        await r.xgroup_create("s", "g", "$", mkstream=True)
        reads = [asyncio.create_task(connect().xreadgroup("g", "c", {"s": ">"}, block=5000)),
                 asyncio.create_task(connect().xread({"s": "$"}, block=5000)),
                 asyncio.create_task(connect().blpop(["l"], timeout=5))]
        await blocked(r, 3)
        entry = await r.xadd("s", {"k": "v"})
        await r.rpush("l", "v")
        assert [ids(reply) for reply in await asyncio.gather(*reads[:2])] == [[entry], [entry]]
        assert tuple(await reads[2]) == ("l", "v")

    run(test)


def test_a_reader_that_goes_away_loses_nothing(run):
    async def test(connect):
        r = connect()
        gone = connect()
        read = asyncio.create_task(gone.blpop(["l"], timeout=5))
        await blocked(r, 1)
        read.cancel()
        await asyncio.gather(read, return_exceptions=True)
        await gone.connection_pool.disconnect()
        await blocked(r, 0)
        assert await r.rpush("l", "v") == 1
        assert await r.lrange("l", 0, -1) == ["v"]

    run(test)


def test_publish_and_subscribe(run):
    async def test(connect):
        r = connect()
        async with connect().pubsub() as pubsub:
            await pubsub.subscribe("news")
            await pubsub.psubscribe("n*")
            kinds = [(await pubsub.get_message(timeout=5))["type"] for _ in range(2)]
            assert kinds == ["subscribe", "psubscribe"]
            assert await r.publish("news", "hello") == 2
            kinds = sorted([(await pubsub.get_message(timeout=5))["type"] for _ in range(2)])
            assert kinds == ["message", "pmessage"]

    run(test)


def test_pipelines_and_transactions(run):
    async def test(connect):
        r = connect()
        async with r.pipeline(transaction=False) as pipe:
            for number in range(1000):
                pipe.set(f"k{number}", number)
            assert await pipe.execute() == [True] * 1000
        async with r.pipeline(transaction=True) as pipe:
            assert await pipe.set("n", 1).incr("n").execute() == [True, 2]
        async with r.pipeline(transaction=True) as pipe:
            await pipe.watch("n")
            await connect().set("n", 9)
            pipe.multi()
            pipe.set("n", 10)
            with pytest.raises(WatchError):
                await pipe.execute()
        assert await r.get("n") == "9"

    run(test)


def test_scanning_and_errors(run):
    async def test(connect):
        r = connect()
        await r.mset({f"k{number}": number for number in range(500)})
        assert len({key async for key in r.scan_iter(match="k*", count=50)}) == 500
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            await r.rpush("k1", "x")

    run(test)
