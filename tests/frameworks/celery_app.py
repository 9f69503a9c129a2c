"""The application that a Celery worker of the tests serves. BROKER_PORT says where the server is."""
import os

from celery import Celery

SERVER = f"redis://127.0.0.1:{os.environ['BROKER_PORT']}"
app = Celery("jobs", broker=f"{SERVER}/1", backend=f"{SERVER}/2")


@app.task
def add(a, b):
    return a + b


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=3)
def flaky(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return "done"
