#!/usr/bin/env python3
"""What durability costs, ours beside a real server in one interleaved run.

    testkit/durability_bench.py OURS REAL [--part NAME]... [--rounds N] [--keys N] [--seconds N]
                                [--threads N] [--dir FOLDER]

Each part prints a line a measurement with the median of the rounds of both and their ratio:

    always    SETs a second under `appendfsync always`, 50 connections, pipeline 1 and 16
    everysec  CPU of the threads that run commands, a SET, with `appendonly` no and yes, pipeline
              16 and 100; ours alone, pinned to the first CPU, the load to the last
    rdb       seconds to load a snapshot of N small keys, and to write one (SAVE)
    aof       seconds to load a log of N SETs without a base, and one of commands on all types

A server is started anew for each measurement, on a free port, with a folder of its own below
FOLDER (default: the system's for temporary files). Loading is timed from the start of the process
until PING answers PONG, so the start of the process counts.
"""

import argparse
import contextlib
import os
import random
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from snapshot_bench import Connection, command

CONNECTIONS = 50
KEYS_WRITTEN = 100_000


@contextlib.contextmanager
def running(args, server, folder, *options, wait=True, cpu=None):
    """A server in `folder`; its process and port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    threads = "--threads" if server == args.ours else "--io-threads"
    words = [server, "--port", str(port), "--dir", folder, "--save", "", threads,
             str(args.threads if server == args.ours else 1), "--enable-debug-command", "yes",
             *options]
    pin = None if cpu is None else lambda: os.sched_setaffinity(0, {cpu})
    with open(os.path.join(folder, "log"), "ab") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, preexec_fn=pin)
    try:
        if wait:
            until_ready(process, port)
        yield process, port
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def until_ready(process, port):
    while True:
        if process.poll() is not None:
            raise RuntimeError("the server ended")
        try:
            if Connection(port).call("PING") == b"PONG":
                return
        except (OSError, RuntimeError):
            pass
        time.sleep(0.002)


class Load:
    """Connections that each send a batch of SETs as soon as the one before is answered."""

    def __init__(self, port, depth):
        self.reply_bytes = depth * len(b"+OK\r\n")
        draw = random.Random(1).randrange
        one = lambda: command("SET", "key:%012d" % draw(KEYS_WRITTEN), "value:%010d" % draw(10**9))
        self.batches = [b"".join(one() for _ in range(depth)) for _ in range(997)]
        self.depth, self.sent, self.done = depth, 0, 0
        self.poll = select.epoll()
        self.sockets, self.missing = {}, {}
        for _ in range(CONNECTIONS):
            one = socket.create_connection(("127.0.0.1", port))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets[one.fileno()] = one
            self.missing[one.fileno()] = 0
            self.poll.register(one.fileno(), select.EPOLLIN)

    def send(self, fd):
        self.sockets[fd].sendall(self.batches[self.sent % len(self.batches)])
        self.sent += 1
        self.missing[fd] += self.reply_bytes

    def run(self, seconds=None, requests=None):
        """Sends for a time, or so many requests; how many were answered, in how many seconds."""
        began, before = time.monotonic(), self.done
        end = began + (seconds or 1e9)
        limit = self.sent + (requests // self.depth if requests else 10**15)
        for fd in self.sockets:
            self.send(fd)
        waiting = len(self.sockets)
        while waiting:
            for fd, _ in self.poll.poll():
                got = self.sockets[fd].recv(65536)
                if not got or got[:1] == b"-":
                    raise RuntimeError("no: %r" % got[:80])
                self.missing[fd] -= len(got)
                if self.missing[fd]:
                    continue
                self.done += self.depth
                if self.sent < limit and time.monotonic() < end:
                    self.send(fd)
                else:
                    waiting -= 1
        return self.done - before, time.monotonic() - began


def loop_cpu(pid):
    """Nanoseconds that the threads took which run commands: those of ours that write do not."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, task)) as comm:
            is_loop = task == str(pid) or comm.read().startswith("loop-")
        if is_loop:
            with open("/proc/%d/task/%s/schedstat" % (pid, task)) as stat:
                total += int(stat.read().split()[0])
    return total


def say(what, unit, ours, real, bar):
    ours, real = statistics.median(ours), statistics.median(real)
    print("%-44s ours %9.3f  other %9.3f %-8s ratio %5.2f  (bar: %s)" % (
        what, ours, real, unit, ours / real, bar), flush=True)


def always(args, folder):
    for depth in (1, 16):
        got = {args.ours: [], args.real: []}
        for _ in range(args.rounds):
            for server in got:
                with fresh(folder) as one, running(
                        args, server, one, "--appendonly", "yes", "--appendfsync", "always",
                        "--auto-aof-rewrite-percentage", "0") as (_, port):
                    load = Load(port, depth)
                    load.run(seconds=0.5)
                    count, took = load.run(seconds=args.seconds)
                    got[server].append(count / took / 1000)
        say("always, %d connections, pipeline %d" % (CONNECTIONS, depth), "k SET/s",
            got[args.ours], got[args.real], ">= 2")


def everysec(args, folder):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for depth in (16, 100):
        off, on = [], []
        options = (("no", off), ("yes", on))
        for _ in range(args.rounds * 2 + 1):
            for appendonly, into in options:
                with fresh(folder) as one, running(
                        args, args.ours, one, "--appendonly", appendonly,
                        "--auto-aof-rewrite-percentage", "0",
                        cpu=min(os.sched_getaffinity(1))) as (process, port):
                    load = Load(port, depth)
                    load.run(requests=200_000)
                    before = loop_cpu(process.pid)
                    count, _ = load.run(requests=1_500_000)
                    into.append((loop_cpu(process.pid) - before) / count / 1000)
        say("everysec, ours with the log / without, P%d" % depth, "us/SET", on, off, "<= 1.15")


@contextlib.contextmanager
def fresh(folder):
    one = tempfile.mkdtemp(dir=folder)
    try:
        yield one
    finally:
        shutil.rmtree(one)


def load_seconds(args, server, folder, *options):
    began = time.monotonic()
    with running(args, server, folder, *options, wait=False) as (process, port):
        until_ready(process, port)
        took = time.monotonic() - began
        return took, Connection(port).call("DBSIZE")


def link(source, into):
    """A copy; of a big file, another name of it, as no server changes one that it loaded."""
    if os.path.getsize(source) > 1 << 20 and not source.endswith("log"):
        os.link(source, into)
    else:
        shutil.copy(source, into)


def both_load(args, what, folder, bar, *options):
    got = {args.ours: [], args.real: []}
    keys = set()
    for _ in range(args.rounds):
        for server in got:
            # What one server does to the list of files, the other does not see.
            with fresh(os.path.dirname(folder)) as one:
                shutil.copytree(folder, one, copy_function=link, dirs_exist_ok=True)
                took, count = load_seconds(args, server, one, *options)
            got[server].append(took)
            keys.add(count)
    if len(keys) != 1:
        raise RuntimeError("the servers loaded different numbers of keys: %s" % keys)
    say("load %s (%s keys)" % (what, keys.pop().decode()), "s", got[args.ours], got[args.real], bar)


def rdb(args, folder):
    with fresh(folder) as one:
        took = {args.ours: [], args.real: []}
        for server in (args.ours, args.real):
            with running(args, server, one) as (_, port):
                control = Connection(port)
                control.call("DEBUG", "POPULATE", args.keys)
                for _ in range(args.rounds):
                    began = time.monotonic()
                    control.call("SAVE")
                    took[server].append(time.monotonic() - began)
        say("write a snapshot (%d keys)" % args.keys, "s", took[args.ours], took[args.real],
            "<= 0.7")
        both_load(args, "a snapshot", one, "<= 0.4")


def sets(keys):
    for n in range(keys):
        yield command("SET", "key:%d" % n, "value:%d" % n)


def mixed(keys):
    """Commands on all types, most of them on keys that are there already."""
    draw = random.Random(1).randrange
    for n in range(keys):
        kind, at = n % 10, draw(keys // 10)
        if kind < 3:
            yield command("SET", "string:%d" % at, "value:%d" % n)
        elif kind == 3:
            yield command("INCRBY", "counter:%d" % at, n)
        elif kind == 4:
            yield command("HSET", "hash:%d" % (at % (keys // 100)), "field:%d" % (n % 20), n)
        elif kind == 5:
            yield command("RPUSH", "list:%d" % (at % (keys // 100)), "item:%d" % n)
        elif kind == 6:
            yield command("SADD", "set:%d" % (at % (keys // 100)), "member:%d" % n)
        elif kind == 7:
            yield command("ZADD", "zset:%d" % (at % 1000), at, "member:%d" % (at % 50_000))
        elif kind == 8:
            yield command("XADD", "stream:%d" % (at % 1000), "%d-1" % (n + 1), "field", n)
        else:
            yield command("DEL", "string:%d" % at)


def write_log(folder, commands):
    directory = os.path.join(folder, "appendonlydir")
    os.makedirs(directory)
    name = "appendonly.aof.1.incr.aof"
    with open(os.path.join(directory, "appendonly.aof.manifest"), "w") as manifest:
        manifest.write("file %s seq 1 type i\n" % name)
    with open(os.path.join(directory, name), "wb") as log:
        log.write(command("SELECT", 0))
        batch = []
        for one in commands:
            batch.append(one)
            if len(batch) == 10_000:
                log.write(b"".join(batch))
                batch.clear()
        log.write(b"".join(batch))


def aof(args, folder):
    for what, commands in (("SETs", sets(args.keys)), ("all types", mixed(args.keys))):
        with fresh(folder) as one:
            write_log(one, commands)
            both_load(args, "a log of %d, %s" % (args.keys, what), one, "<= 0.5",
                      "--appendonly", "yes")


PARTS = {"always": always, "everysec": everysec, "rdb": rdb, "aof": aof}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ours")
    parser.add_argument("real")
    parser.add_argument("--part", action="append", choices=list(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, default=5_000_000)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dir")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="durability-bench-", dir=args.dir)
    try:
        for part in args.part or PARTS:
            PARTS[part](args, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
