#!/usr/bin/env python3
"""The messaging walk-through that the product exists for, end to end, with real tools and the real Python client.

    walkthrough.py --server CMD [--cli CMD] [--benchmark CMD] [--requests N] [--port N]

CMD for the server starts it: `{port}` and `{dir}` are filled in. The command line tool and the benchmark default to
redis-cli and redis-benchmark from the PATH, and are given `-p PORT`; the port is a free one. Needs `pip install redis`. Prints one line a
step and exits 1 if any fails. It passes whole on Redis 8.10 with Redis's own tools.
"""
import argparse, fcntl, os, pty, re, select, shlex, signal, socket, struct, subprocess, sys, tempfile, termios
import threading, time

import redis

ROWS = ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "LPUSH", "RPUSH", "LPOP", "RPOP", "SADD", "HSET", "SPOP",
        "ZADD", "ZPOPMIN", "LPUSH (needed to benchmark LRANGE)", "LRANGE_100 (first 100 elements)",
        "LRANGE_300 (first 300 elements)", "LRANGE_500 (first 500 elements)", "LRANGE_600 (first 600 elements)",
        "MSET (10 keys)"]
STATS = """total_connections_received total_commands_processed instantaneous_ops_per_sec total_net_input_bytes
total_net_output_bytes total_net_repl_input_bytes total_net_repl_output_bytes instantaneous_input_kbps
instantaneous_output_kbps instantaneous_input_repl_kbps instantaneous_output_repl_kbps rejected_connections sync_full
sync_partial_ok sync_partial_err expired_subkeys expired_subkeys_active expired_keys expired_keys_active
expired_stale_perc expired_time_cap_reached_count expire_cycle_cpu_milliseconds evicted_keys evicted_clients
evicted_scripts total_eviction_exceeded_time current_eviction_exceeded_time keyspace_hits keyspace_misses
pubsub_channels pubsub_patterns pubsubshard_channels latest_fork_usec total_forks migrate_cached_sockets
slave_expires_tracked_keys active_defrag_hits active_defrag_misses active_defrag_key_hits active_defrag_key_misses
total_active_defrag_time current_active_defrag_time tracking_total_keys tracking_total_items tracking_total_prefixes
unexpected_error_replies total_error_replies dump_payload_sanitizations total_reads_processed total_writes_processed
io_threaded_reads_processed io_threaded_writes_processed io_threaded_total_prefetch_batches
io_threaded_total_prefetch_entries client_query_buffer_limit_disconnections
client_output_buffer_limit_disconnections reply_buffer_shrinks reply_buffer_expands eventloop_cycles
eventloop_duration_sum eventloop_duration_cmd_sum instantaneous_eventloop_cycles_per_sec
instantaneous_eventloop_duration_usec acl_access_denied_auth acl_access_denied_cmd acl_access_denied_key
acl_access_denied_channel""".split()
failures = 0


def step(name, ok, detail=""):
    global failures
    failures += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {name}{'' if ok else ': ' + str(detail)[:600]}", flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Terminal:
    """The command line tool at a real terminal, as a person sees it."""

    def __init__(self, command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", HOME=tempfile.mkdtemp())
            os.execvp(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self.read()

    def read(self, seconds=5):
        """What the screen gains until it is quiet with a prompt at its end; escape sequences dropped."""
        text, end = "", time.time() + seconds
        while time.time() < end:
            if select.select([self.fd], [], [], 0.25)[0]:
                try:
                    chunk = os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    break
                text += chunk
            elif re.search(r"> $", self.plain(text)):
                break
        return self.plain(text)

    @staticmethod
    def plain(text):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)

    def type(self, line):
        os.write(self.fd, line.encode() + b"\r")
        seen = self.read()
        body = seen.split("\n", 1)[1] if "\n" in seen else seen
        lines = [l.rstrip("\r") for l in body.split("\n")]
        return "\n".join(l for l in lines if not re.match(r"\r?\S+:\d+(\[\d+\])?> ", l)).rstrip("\n")

    def gone(self):
        for _ in range(50):
            pid, _ = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return True
            time.sleep(0.1)
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--cli", default="redis-cli")
    parser.add_argument("--benchmark", default="redis-benchmark")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args()
    global PORT
    PORT = args.port or free_port()
    cli, bench = [*shlex.split(args.cli), "-p", str(PORT)], [*shlex.split(args.benchmark), "-p", str(PORT)]

    server = subprocess.Popen(shlex.split(args.server.format(port=PORT, dir=tempfile.mkdtemp())),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", PORT)).close()
            break
        except OSError:
            time.sleep(0.05)
    try:
        run(cli, bench, args)
    finally:
        server.send_signal(signal.SIGTERM)
        step("the server stops cleanly on SIGTERM", server.wait(10) == 0, server.returncode)
    sys.exit(1 if failures else 0)


def run(cli, bench, args):
    r = redis.Redis(port=PORT, decode_responses=True)
    first = r.xadd("mystream", {"user": "jack", "action": "login"})
    r.xadd("mystream", {"user": "yan", "action": "purchase"})

    # A person at the prompt.
    t = Terminal(cli)
    out = t.type("XGROUP CREATE mystream mygroup 0 MKSTREAM")
    step("prompt: XGROUP CREATE says OK", out == "OK", out)
    out = t.type("XREADGROUP GROUP mygroup consumer1 COUNT 1 STREAMS mystream >")
    want = (f'1) 1) "mystream"\n   2) 1) 1) "{first}"\n         2) 1) "user"\n            2) "jack"\n'
            f'            3) "action"\n            4) "login"')
    step("prompt: XREADGROUP shows the nested entry", out == want, repr(out))
    out = t.type(f"XACK mystream mygroup {first}")
    step("prompt: XACK shows (integer) 1", out == "(integer) 1", out)
    out = t.type("XACK nosuch")
    step("prompt: a wrong call is a clear error", out == "(error) ERR wrong number of arguments for 'xack' command", out)
    os.write(t.fd, b"QUIT\r")
    step("prompt: QUIT ends the tool", t.gone())

    # The Python producer and consumer.
    for i in range(10):
        r.xadd("mystream", {"event": f"msg-{i}"})
    seen, started = [], time.time()
    while True:
        messages = r.xreadgroup("mygroup", "consumer1", {"mystream": ">"}, count=1, block=1000)
        if not messages:
            break
        for _, entries in messages:
            for entry_id, data in entries:
                seen.append(data)
                r.xack("mystream", "mygroup", entry_id)
    waited = time.time() - started
    step("python: the consumer gets all in order", seen == [{"user": "yan", "action": "purchase"}] +
         [{"event": f"msg-{i}"} for i in range(10)], seen)
    step("python: an empty read blocks for its time", 0.95 < waited < 2.5, waited)
    step("python: nothing is left pending", r.xpending("mystream", "mygroup")["pending"] == 0)
    got = []

    def blocked():
        got.append(redis.Redis(port=PORT, decode_responses=True).xreadgroup(
            "mygroup", "consumer2", {"mystream": ">"}, count=1, block=5000))

    thread = threading.Thread(target=blocked)
    thread.start()
    time.sleep(0.3)
    before = time.time()
    r.xadd("mystream", {"event": "late"})
    thread.join(6)
    step("python: a blocked reader wakes at once", bool(got) and got[0] and got[0][0][1][0][1] == {"event": "late"}
         and time.time() - before < 0.5, got)
    step("python: its entry is pending for consumer2", [c for c in r.xpending("mystream", "mygroup")["consumers"]
                                                        if c["name"] == "consumer2"][0]["pending"] == 1)

    # Publish and subscribe.
    p = r.pubsub()
    p.subscribe("news")
    p.psubscribe("ne*")
    time.sleep(0.2)
    step("python: PUBLISH reaches both subscriptions", r.publish("news", "hello") == 2)
    kinds = []
    for _ in range(40):
        m = p.get_message(timeout=0.1)
        if m:
            kinds.append(m["type"])
    step("python: and both messages arrive", kinds.count("message") == 1 and kinds.count("pmessage") == 1, kinds)

    # The benchmark.
    n = str(args.requests)
    out = subprocess.run([*bench, "-q", "-n", n, "-c", "50"], capture_output=True, text=True)
    text = out.stdout.replace("\r", "\n")
    for row in ROWS:
        found = re.search(re.escape(row) + r": ([\d.]+) requests per second, p50=([\d.]+) msec", text)
        step(f"benchmark: {row}", bool(found) and float(found.group(1)) > 0, text[-300:] + out.stderr[-300:])
    if "XADD" in text or "redis-benchmark" not in bench[0]:
        step("benchmark: XADD", bool(re.search(r"^XADD: [\d.]+ requests per second, p50=", text, re.M)))
    out = subprocess.run([*bench, "-t", "publish", "-n", n, "-q"], capture_output=True, text=True)
    step("benchmark: -t publish runs", out.returncode == 0, out.stderr)

    # Monitoring.
    info = subprocess.run([*cli, "info", "stats"], capture_output=True, text=True).stdout
    fields = dict(line.split(":", 1) for line in info.replace("\r", "").splitlines() if ":" in line)
    step("info stats: begins with # Stats", info.startswith("# Stats"), info[:50])
    missing = [f for f in STATS if f not in fields]
    step("info stats: every field", not missing, missing)
    step("info stats: nothing was rejected", fields.get("rejected_connections") == "0")
    step("info stats: commands were counted", int(fields.get("total_commands_processed", 0)) > 19 * args.requests)
    step("info stats: hits were counted", int(fields.get("keyspace_hits", 0)) > args.requests // 2)


main()
