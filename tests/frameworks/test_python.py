"""Job queues in Python: Celery, rq, and redis-py by itself."""
import datetime
import os
import pathlib
import subprocess
import sys
import threading

import redis

from servers import wait_until

HERE = pathlib.Path(__file__).resolve().parent
LONG = 30


def test_celery_runs_groups_chords_retries_and_delays(port, tmp_path):
    environment = os.environ | {"BROKER_PORT": str(port)}
    command = [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "--pool", "threads", "-c", "2"]
    with open(tmp_path / "worker.log", "w+") as log:
        worker = subprocess.Popen(
            command, cwd=HERE, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            client = [sys.executable, "celery_client.py"]
            subprocess.run(client, cwd=HERE, env=environment, check=True, timeout=2 * LONG)
        finally:
            worker.terminate()
            worker.wait(LONG)


def test_rq_runs_jobs_dependents_and_failures(port):
    from rq import Queue, Retry, SimpleWorker, Worker
    connection = redis.Redis(port=port)
    queue = Queue("jobs", connection=connection)
    jobs = [queue.enqueue("operator.add", number, 1) for number in range(50)]
    failing = queue.enqueue("operator.truediv", 1, 0, retry=Retry(max=1))
    dependent = queue.enqueue("operator.add", 1, 1, depends_on=jobs[0])
    later = queue.enqueue_in(datetime.timedelta(hours=1), "operator.add", 2, 2)
    SimpleWorker([queue], connection=connection).work(burst=True)
    assert [job.return_value() for job in jobs] == list(range(1, 51))
    assert dependent.return_value() == 2
    assert failing.get_status() == "failed"
    assert later.id in queue.scheduled_job_registry.get_job_ids()
    assert Worker.all(connection=connection) == []


def test_redis_py_hands_each_message_to_one_worker(port):
    producer = redis.Redis(port=port, decode_responses=True)
    producer.xgroup_create("orders", "workers", mkstream=True)
    seen, lock = [], threading.Lock()

    def work(name):
        client = redis.Redis(port=port, decode_responses=True)
        while True:
            for _, entries in client.xreadgroup("workers", name, {"orders": ">"}, count=10, block=5000) or []:
                for entry, fields in entries:
                    client.xack("orders", "workers", entry)
                    if fields["number"] == "stop":
                        return
                    with lock:
                        seen.append(int(fields["number"]))

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    pipeline = producer.pipeline(transaction=False)
    for number in range(2000):
        pipeline.xadd("orders", {"number": number})
    pipeline.execute()
    wait_until(lambda: len(seen) == 2000, "2,000 messages")
    for thread in threads:
        while thread.is_alive():
            producer.xadd("orders", {"number": "stop"})
            thread.join(0.2)
    assert sorted(seen) == list(range(2000))
    assert producer.xinfo_groups("orders")[0]["entries-read"] >= 2004
