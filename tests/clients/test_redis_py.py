"""redis-py, synchronous: streams, publish and subscribe, pipelines, transactions, blocking, scanning."""
import threading
import time

import pytest
import redis


def in_background(call):
    """Runs a call on a thread; the returned function waits for its result, or raises what it raised."""
    box = {}

    def run():
        try:
            box["result"] = call()
        except Exception as error:  # handed to the test, which judges it
            box["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def result():
        thread.join(10)
        assert not thread.is_alive(), "the call did not return"
        if "error" in box:
            raise box["error"]
        return box["result"]

    return result


def entries_of(reply):
    """The entries of one stream's reply: a map with RESP3, pairs with RESP2."""
    if isinstance(reply, dict):
        (chunks,) = reply.values()
        return [entry for chunk in chunks for entry in (chunk if isinstance(chunk, list) else [chunk])]
    ((_, entries),) = reply
    return entries


def test_it_says_who_it_is(r):
    info = r.info("server")
    assert info["redis_version"].startswith("8.10")
    assert info["process_id"] > 0


def test_strings_and_their_deadlines(r):
    assert r.set("k", "v", ex=100, get=True) is None
    assert r.get("k") == "v" and 99 <= r.ttl("k") <= 100
    assert r.getex("k", persist=True) == "v" and r.ttl("k") == -1
    assert r.incrby("n", 5) == 5 and r.incrbyfloat("n", 0.5) == 5.5
    assert r.mset({"a": 1, "b": 2}) and r.mget("a", "nosuch", "b") == ["1", None, "2"]
    with pytest.raises(redis.ResponseError, match="not an integer"):
        r.incr("k")


def test_collections_that_messaging_uses(r):
    assert r.rpush("l", "a", "b", "c") == 3 and r.lpop("l") == "a" and r.lrange("l", 0, -1) == ["b", "c"]
    assert r.hset("h", mapping={"f": "1", "g": "2"}) == 2 and r.hgetall("h") == {"f": "1", "g": "2"}
    assert r.sadd("s", "a", "b") == 2 and r.smembers("s") == {"a", "b"}
    assert r.zadd("z", {"a": 1, "b": 2.5}) == 2
    assert r.zrange("z", 0, -1) == ["a", "b"] and r.zscore("z", "b") == 2.5 and r.zcard("z") == 2


def test_a_stream_and_its_group(r):
    first = r.xadd("s", {"n": "1"})
    ids = [first] + [r.xadd("s", {"n": str(n)}) for n in (2, 3)]
    assert r.xlen("s") == 3
    assert [entry for entry, _ in r.xrange("s")] == ids
    assert [entry for entry, _ in r.xrevrange("s", count=1)] == ids[-1:]
    assert r.xgroup_create("s", "g", "0") is True
    with pytest.raises(redis.ResponseError, match="BUSYGROUP"):
        r.xgroup_create("s", "g", "0")
    got = entries_of(r.xreadgroup("g", "one", {"s": ">"}, count=2))
    assert [(i, dict(f)) for i, f in got] == [(ids[0], {"n": "1"}), (ids[1], {"n": "2"})]
    assert r.xpending("s", "g")["pending"] == 2
    assert r.xack("s", "g", ids[0]) == 1
    (pending,) = r.xpending_range("s", "g", "-", "+", 10)
    assert pending["message_id"] == ids[1] and pending["consumer"] == "one" and pending["times_delivered"] == 1
    ((claimed, _),) = r.xclaim("s", "g", "two", 0, [ids[1]])
    assert claimed == ids[1]
    cursor, again, gone = r.xautoclaim("s", "g", "three", 0)
    assert (cursor, [i for i, _ in again], gone) == ("0-0", [ids[1]], [])
    assert {c["name"] for c in r.xinfo_consumers("s", "g")} == {"one", "two", "three"}
    (group,) = r.xinfo_groups("s")
    assert group["name"] == "g" and group["pending"] == 1 and group["lag"] == 1
    assert r.xinfo_stream("s")["length"] == 3
    assert r.xdel("s", ids[0]) == 1 and r.xtrim("s", maxlen=1, approximate=False) == 1
    assert r.xgroup_destroy("s", "g") == 1


def test_a_blocked_group_reader_wakes(r, connect, blocked):
    r.xgroup_create("s", "g", "0", mkstream=True)
    result = in_background(lambda: connect().xreadgroup("g", "c", {"s": ">"}, block=5000))
    blocked(1)
    entry = r.xadd("s", {"k": "v"})
    assert [(i, dict(f)) for i, f in entries_of(result())] == [(entry, {"k": "v"})]


def test_a_blocked_group_reader_learns_that_its_group_is_gone(r, connect, blocked):
    r.xgroup_create("s", "g", "0", mkstream=True)
    result = in_background(lambda: connect().xreadgroup("g", "c", {"s": ">"}, block=5000))
    blocked(1)
    r.xgroup_destroy("s", "g")
    with pytest.raises(redis.ResponseError, match="NOGROUP"):
        result()


def test_an_empty_read_blocks_for_its_time(r):
    began = time.monotonic()
    assert not r.xread({"nosuch": "$"}, block=60)
    assert r.blpop("nosuch", timeout=0.06) is None
    assert 0.11 <= time.monotonic() - began < 5


def test_blocked_clients_are_served_in_order(r, connect, blocked):
    results = []
    for count in (1, 2):
        client = connect()
        results.append(in_background(lambda client=client: client.blpop("queue", timeout=8)))
        blocked(count)
    r.rpush("queue", "first", "second")
    assert [tuple(result()) for result in results] == [("queue", "first"), ("queue", "second")]


def test_a_client_can_be_unblocked(r, connect, blocked):
    client = connect(single_connection_client=True)
    number = client.client_id()
    result = in_background(lambda: client.blpop("queue", timeout=8))
    blocked(1)
    assert r.client_unblock(number, error=True)
    with pytest.raises(redis.ResponseError, match="UNBLOCKED"):
        result()


def next_message(pubsub):
    message = pubsub.get_message(timeout=5)
    assert message is not None, "no message came"
    return message


def test_publish_and_subscribe(r, connect):
    pubsub = connect().pubsub()
    pubsub.subscribe("news")
    pubsub.psubscribe("n*")
    assert [next_message(pubsub)["type"] for _ in range(2)] == ["subscribe", "psubscribe"]
    assert r.pubsub_channels() == ["news"] and r.pubsub_numpat() == 1
    assert r.publish("news", "hello") == 2
    got = sorted((m["type"], m["channel"], m["data"]) for m in (next_message(pubsub), next_message(pubsub)))
    assert got == [("message", "news", "hello"), ("pmessage", "news", "hello")]
    pubsub.unsubscribe("news")
    assert next_message(pubsub)["type"] == "unsubscribe"
    assert r.publish("news", "again") == 1
    pubsub.close()


def test_sharded_publish_and_subscribe(r, connect):
    pubsub = connect().pubsub()
    pubsub.ssubscribe("shard")
    assert next_message(pubsub)["type"] == "ssubscribe"
    assert r.execute_command("SPUBLISH", "shard", "hello") == 1
    message = next_message(pubsub)
    assert (message["type"], message["data"]) == ("smessage", "hello")
    pubsub.close()


def test_a_long_pipeline(r):
    pipe = r.pipeline(transaction=False)
    for number in range(10_000):
        pipe.set(f"k{number}", number)
        pipe.get(f"k{number}")
    assert pipe.execute() == [answer for number in range(10_000) for answer in (True, str(number))]
    assert r.dbsize() == 10_000


def test_a_pipeline_reports_the_error_of_one_command(r):
    r.set("k", "v")
    replies = r.pipeline(transaction=False).set("a", 1).incr("k").get("a").execute(raise_on_error=False)
    assert replies[0] is True and isinstance(replies[1], redis.ResponseError) and replies[2] == "1"


def test_a_transaction(r):
    replies = r.pipeline(transaction=True).set("n", 1).incr("n").lpush("n", "x").execute(raise_on_error=False)
    assert replies[:2] == [True, 2] and "WRONGTYPE" in str(replies[2])


def test_watch_stops_a_transaction_that_lost(r, connect):
    with r.pipeline() as pipe:
        pipe.watch("k")
        connect().set("k", "theirs")
        pipe.multi()
        pipe.set("k", "mine")
        with pytest.raises(redis.WatchError):
            pipe.execute()
    assert r.get("k") == "theirs"


def test_a_transaction_function_retries(r):
    r.set("n", 1)

    def double(pipe):
        value = int(pipe.get("n"))
        pipe.multi()
        pipe.set("n", value * 2)

    assert r.transaction(double, "n") == [True] and r.get("n") == "2"


def test_scanning_finds_every_key(r):
    wanted = {f"key:{number}" for number in range(2_000)}
    pipe = r.pipeline(transaction=False)
    for key in wanted:
        pipe.set(key, "v")
    pipe.rpush("list", "v")
    pipe.execute()
    assert set(r.scan_iter(match="key:*", count=100)) == wanted
    assert list(r.scan_iter(_type="list", count=1000)) == ["list"]


def test_bytes_come_back_as_they_went(port, protocol):
    client = redis.Redis(port=port, protocol=protocol)
    value = bytes(range(256)) * 1000
    assert client.set(b"\x00\xff\r\n", value) and client.get(b"\x00\xff\r\n") == value
    client.close()


def test_the_table_of_commands_is_there(r):
    commands = r.command()
    assert commands["get"]["arity"] == 2 and "readonly" in commands["get"]["flags"]
    assert r.command_count() == len(commands)
    assert r.command_getkeys("SET", "k", "v") == ["k"]


def test_client_and_configuration(r):
    assert r.client_setname("tester") and r.client_getname() == "tester"
    assert any(client["name"] == "tester" for client in r.client_list())
    before = r.config_get("maxmemory-policy")["maxmemory-policy"]
    assert r.config_set("maxmemory-policy", "allkeys-lru")
    assert r.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}
    assert r.config_set("maxmemory-policy", before)
