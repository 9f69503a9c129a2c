"""What a test asks of a Celery worker; ends with an exception where an answer is not the right one."""
from celery import chain, chord, group

from celery_app import add, app, flaky, total

LONG = 30

assert add.delay(1, 2).get(timeout=LONG) == 3
assert group(add.s(number, number) for number in range(50))().get(timeout=LONG) == list(range(0, 100, 2))
assert chord((add.s(number, 1) for number in range(10)), total.s())().get(timeout=LONG) == 55
assert chain(add.s(1, 1), add.s(3))().get(timeout=LONG) == 5
assert flaky.delay().get(timeout=LONG) == "done"
assert add.apply_async((1, 1), countdown=0.5).get(timeout=LONG) == 2
assert app.control.ping(timeout=3)
