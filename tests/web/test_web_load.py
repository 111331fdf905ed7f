"""A short attack: hostile requests are answered with a sentence, and everybody else as if nobody were hostile."""

import asyncio
import json
import logging
import socket
import threading
from pathlib import Path

import httpx
import pytest

from traincast.web.limits import Limits

_BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
_QUESTION = {"model": "mnist_cnn", "batch_size": 8, "on": ["T4"]}


@pytest.fixture(scope="module")
def hostile():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(_BENCHMARKS))
        import web_hostile

        yield web_hostile


@pytest.fixture
def tracebacks():
    """What the server wrote of exceptions while the test ran; it has to be nothing."""
    written = []

    class Collector(logging.Handler):
        def emit(self, record):
            if record.exc_info:
                written.append(self.format(record))

    collector = Collector()
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for logger in loggers:
        logger.addHandler(collector)
    yield
    for logger in loggers:
        logger.removeHandler(collector)
    assert written == []


def reply_to(address, data):
    """Up to the end of the reply."""
    with socket.create_connection(address, timeout=30) as connection:
        received = b""
        try:
            connection.sendall(data)
            while piece := connection.recv(65536):
                received += piece
        except ConnectionError:  # it was refused while the rest was still being sent
            pass
    return received


def test_every_hostile_request_has_a_sentence_and_no_traceback(run_server, hostile, tracebacks):
    """Uploads are left out that take a process each to refuse: they have tests of their own."""
    requests = [
        data for data in hostile.MALFORMED if b"/api/models?name=a.onnx " not in data[:40] or b"chunked" in data
    ]
    requests = [data for data in requests if b"/api/logs?name=run.csv" not in data[:40]]
    assert len(requests) > 80
    with run_server(Limits(idle_s=1.0, body_pace_s=1.0)) as address:
        for data in requests:
            received = reply_to(address, data)
            if not received:
                continue
            status = int(received[9:12])
            assert status < 500, (data[:200], received)
            if status >= 400:
                body, _ = json.JSONDecoder().raw_decode(received.partition(b"\r\n\r\n")[2].decode())
                assert list(body) == ["error"], (data[:200], received)


def test_everybody_else_is_answered_while_the_server_is_attacked(run_server, hostile, tracebacks):
    """More hostile clients than there are connections, slow bodies first; and a newcomer at a time who is not."""
    crowd = hostile.Crowd(
        idle=60, slow_heads=10, slow_bodies=16, never_reading=4, oversized=1, malformed=0
    )  # malformed ones are above
    with run_server(Limits(n_connections=50, n_connections_of_one=40)) as (host, port):
        attack = hostile.Attack(host, port, seconds=2.5, seed=1)
        attackers = threading.Thread(target=lambda: asyncio.run(attack.run(crowd)))
        attackers.start()
        try:
            statuses = []
            for number in range(20):
                url = f"http://{host}:{port}/api"
                statuses.append(httpx.post(f"{url}/forecast", json=_QUESTION | {"batch_size": 8 + number}, timeout=20))
            log = "step,loss\n" + "".join(f"{step},{1 + 3 / step}\n" for step in range(1, 60))
            statuses.append(httpx.post(f"{url}/logs", params={"name": "run.csv"}, content=log, timeout=20))
        finally:
            attackers.join()
    assert [reply.status_code for reply in statuses] == [200] * 21


def test_only_this_machine_is_attacked(hostile):
    with pytest.raises(SystemExit, match=r"192\.0\.2\.1 is not this machine"):
        hostile.Attack("192.0.2.1", 80, seconds=1.0, seed=1)
