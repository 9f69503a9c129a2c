#!/usr/bin/env python3
"""What a snapshot in the background costs while clients write.

    testkit/snapshot_bench.py SERVER [--keys N] [--rate N] [--seconds N] [--shape small|hash|zset]
                              [--option WORD]...

Starts SERVER (ours or a real one) on a free port with a folder of its own, fills it, and lets one
process write at a steady rate, so many commands a second to random keys, while another asks for one
key at a time and notes how long each reply takes. First without a snapshot, then with one after
another. Prints the latencies of both, the growth of the process's peak memory (with its children's,
where it forks), and how long a snapshot took.
"""

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time


def command(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def reply(self):
        line = self.file.readline()
        if line[:1] == b"$" and line != b"$-1\r\n":
            return self.file.read(int(line[1:]) + 2)[:-2]
        if line[:1] == b"-":
            raise RuntimeError(line)
        return line[1:-2]

    def call(self, *words):
        self.socket.sendall(command(*words))
        return self.reply()

    def info(self, section):
        lines = self.call("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)


def write_for(shape, keys, draw):
    n = draw(keys)
    if shape == "hash":
        return command("HSET", "big", "field:%d" % n, "value:%d" % draw(10**9))
    if shape == "zset":
        return command("ZADD", "big", draw(10**9), "member:%d" % n)
    return command("SET", "key:%d" % n, "value:%d" % draw(10**9))


def fill(port, shape, keys):
    connection = Connection(port)
    if shape == "small":
        connection.socket.settimeout(None)
        connection.call("DEBUG", "POPULATE", keys)
        return
    for first in range(0, keys, 1000):
        batch = []
        for n in range(first, min(keys, first + 1000)):
            if shape == "hash":
                batch.append(command("HSET", "big", "field:%d" % n, "value:%d" % n))
            else:
                batch.append(command("ZADD", "big", n, "member:%d" % n))
        connection.socket.sendall(b"".join(batch))
        for _ in batch:
            connection.reply()


def write(port, shape, keys, rate, stop, done):
    """Sends a batch every two milliseconds; what it could not send in time, it sends later."""
    connection = Connection(port)
    draw = random.Random(1).randrange
    ready = [b"".join(write_for(shape, keys, draw) for _ in range(rate // 500)) for _ in range(997)]
    began, sent = time.monotonic(), 0
    connection.socket.setblocking(False)
    while not stop.is_set():
        try:
            while connection.socket.recv(1 << 20):
                pass
        except BlockingIOError:
            pass
        if sent < (time.monotonic() - began) * 500:
            connection.socket.setblocking(True)
            connection.socket.sendall(ready[sent % len(ready)])
            connection.socket.setblocking(False)
            sent += 1
        else:
            time.sleep(0.0003)
    done.value = sent * (rate // 500) / (time.monotonic() - began)


def probe(port, stop, results):
    """Asks for one key, again and again, and keeps when and how long."""
    connection = Connection(port)
    try:
        # What is to be seen is how long the server takes, not how long this process waits for a core.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        print("not allowed to run the probe before others: its own waits are in the figures")
    ask = command("GET", "key:1")
    taken = []
    while not stop.is_set():
        began = time.perf_counter()
        connection.socket.sendall(ask)
        connection.reply()
        ended = time.perf_counter()
        taken.append((time.monotonic(), ended - began))
        time.sleep(0.0002)
    results.put(taken)


def memory(pid):
    """Resident bytes of the process and its children."""
    total = 0
    pids = [str(pid)]
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
            pids += children.read().split()
    except OSError:
        pass
    for one in pids:
        try:
            with open("/proc/%s/smaps_rollup" % one) as rollup:
                total += next(int(l.split()[1]) for l in rollup if l.startswith("Pss:")) * 1024
        except (OSError, StopIteration):
            pass
    return total


def percentiles(taken):
    values = sorted(value for _, value in taken)
    pick = lambda share: values[min(len(values) - 1, int(len(values) * share))] * 1e6
    return "p50 %4.0f  p99 %5.0f  p99.9 %6.0f  max %7.0f us (%d)" % (
        pick(0.5), pick(0.99), pick(0.999), values[-1] * 1e6, len(values)), pick(0.999)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("--keys", type=int, default=5_000_000)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--shape", default="small", choices=["small", "hash", "zset"])
    parser.add_argument("--option", action="append", default=[])
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="snapshot-bench-")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = open(os.path.join(folder, "log"), "wb")
    server = subprocess.Popen(
        [args.server, "--port", str(port), "--dir", folder, "--save", "",
         "--enable-debug-command", "yes", *args.option],
        stdout=log, stderr=log)
    try:
        while True:
            try:
                Connection(port).call("PING")
                break
            except OSError:
                time.sleep(0.05)
        run(args, port, server.pid)
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
        shutil.rmtree(folder)


def run(args, port, pid):
    fill(port, args.shape, args.keys)
    control = Connection(port)
    control.call("SET", "key:1", "value")
    stop, done = multiprocessing.Event(), multiprocessing.Value("d", 0)
    results = multiprocessing.Queue()
    writer = multiprocessing.Process(
        target=write, args=(port, args.shape, args.keys, args.rate, stop, done))
    prober = multiprocessing.Process(target=probe, args=(port, stop, results))
    writer.start()
    prober.start()
    time.sleep(2)
    before, quiet = time.monotonic(), 0
    while time.monotonic() - before < args.seconds:
        # Looking costs the server something, so it is looked at in both parts alike.
        control.info("persistence")
        quiet = max(quiet, memory(pid))
        time.sleep(0.1)
    begun, peak, took, saves = time.monotonic(), quiet, 0, 0
    while time.monotonic() - begun < args.seconds or saves == 0:
        one = time.monotonic()
        control.call("BGSAVE")
        while control.info("persistence")["rdb_bgsave_in_progress"] != "0":
            peak = max(peak, memory(pid))
            time.sleep(0.1)
        took += time.monotonic() - one
        saves += 1
    ended = time.monotonic()
    status = control.info("persistence")["rdb_last_bgsave_status"]
    stop.set()
    taken = results.get()
    writer.join()
    prober.join()
    text, calm = percentiles([one for one in taken if before <= one[0] < begun])
    print("before:   ", text)
    text, busy = percentiles([one for one in taken if begun <= one[0] < ended])
    print("snapshot: ", text)
    print("p99.9 ratio %.2f, %d snapshots of %.2f s (%s), %.0f writes/s" % (
        busy / calm, saves, took / saves, status, done.value))
    print("memory %d MB, peak %d MB: %+.1f %%" % (
        quiet >> 20, peak >> 20, (peak / quiet - 1) * 100))


if __name__ == "__main__":
    sys.exit(main())
