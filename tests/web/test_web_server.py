"""A real server on loopback survives garbage, huge and slow requests, and answers the next one."""

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from raw_requests import error_in, talk
from starlette.exceptions import HTTPException

import traincast as tc
from traincast.errors import BusyError
from traincast.web.limits import Limits
from traincast.web.question_runner import Gate, QuestionRunner
from traincast.web.questions import QUESTIONS
from traincast.web.stored_uploads import StoredUploads

_ESTABLISHED = 1
_QUESTION = {"model": "resnet18", "batch_size": 8, "on": ["T4"]}


@pytest.fixture
def saved_model(tmp_path):
    tc.load_model("gpt2-xl").save(tmp_path / "mine.trace")
    return (tmp_path / "mine.trace").read_bytes()


@pytest.fixture(autouse=True)
def still_answers(server):
    """Whatever a test did, the next question is answered."""
    yield
    host, port = server
    reply = httpx.post(f"http://{host}:{port}/api/forecast", json=_QUESTION, timeout=20)
    assert reply.status_code == 200


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),  # TLS
        b"\x00" * 5000 + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET " + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /api/forecast HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(server, garbage):
    received, _ = talk(server, garbage)
    assert received == b"" or received.startswith(b"HTTP/1.1 400")
    assert received == b"" or list(json.loads(received.partition(b"\r\n\r\n")[2])) == ["error"]


def test_a_connection_that_says_nothing_is_closed(server):
    received, waited_s = talk(server, b"")
    assert received == b""
    assert waited_s < 8


def test_half_a_header_is_not_waited_for(server):
    received, waited_s = talk(server, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    assert received.startswith(b"HTTP/1.1 408")
    assert error_in(received) == "The head of the request was not complete after 0.6 s."
    assert waited_s < 8


def test_a_body_that_does_not_come_is_not_waited_for(server):
    head = b"POST /api/forecast HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    received, waited_s = talk(server, head + b"Content-Length: 500\r\n\r\n{")
    assert received.startswith(b"HTTP/1.1 408")
    sentence = "The request arrived too slowly: after 1 s a body must be complete, or have grown by 16 KiB."
    assert error_in(received) == sentence
    assert waited_s < 8


def test_an_upload_that_does_not_end_is_not_waited_for(server):
    head = b"POST /api/models?name=x.onnx HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    received, _ = talk(server, head + b"5\r\nhello\r\n")
    assert received.startswith(b"HTTP/1.1 408")


def test_a_huge_request_is_refused_before_it_is_sent(server):
    head = b"POST /api/models?name=x.onnx HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
    received, _ = talk(server, head)
    assert received.startswith(b"HTTP/1.1 413")


def is_dead(connection, patience_s):
    """Whether the other side has ended the connection, without reading what it sent."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != _ESTABLISHED:
            return True
        time.sleep(0.1)
    return False


def asks_and_does_not_read(address):
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(address)
    connection.sendall(b"GET /plotly.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return connection


def test_who_does_not_read_the_reply_is_not_waited_for(server):
    with asks_and_does_not_read(server) as connection:
        assert is_dead(connection, patience_s=10)


def test_who_reads_slowly_gets_all_of_it(server):
    """In three times the patience of the server, but always some of it."""
    with asks_and_does_not_read(server) as connection:
        received, reader = b"", connection.makefile("rb")
        while b"\r\n\r\n" not in received:
            received += reader.readline()
        length = int(received.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        n_read = 0
        while n_read < length:
            n_read += len(reader.read(min(length // 10 + 1, length - n_read)))
            time.sleep(0.18)
    assert n_read == length > 10**6


def test_who_waits_for_a_reader_does_not_send_slowly(run_server, saved_model):
    """Three come at once and one is read at a time, for longer than a body may take."""
    with run_server(Limits(body_pace_s=1.0, n_readers=1)) as (host, port):
        url = f"http://{host}:{port}/api/models?name=mine.trace"
        with ThreadPoolExecutor(3) as crowd:
            replies = list(crowd.map(lambda _: httpx.post(url, content=saved_model, timeout=60), range(3)))
    assert [reply.status_code for reply in replies] == [200, 200, 200]


def test_who_has_gone_is_not_worked_for():
    worked = []

    async def ask():
        runner = QuestionRunner(StoredUploads(most=1, most_bytes=1), Limits())
        asked = QUESTIONS["memory"](model="mnist_cnn")
        with pytest.raises(HTTPException, match="gone"):
            await runner.answer("memory", asked, is_gone=lambda: asyncio.sleep(0, True))
        worked.append(await runner.answer("memory", asked, is_gone=lambda: asyncio.sleep(0, False)))

    asyncio.run(ask())
    assert b"mnist_cnn" in worked[0]


def test_who_comes_after_a_full_queue_is_told_to_try_again():
    async def crowd():
        gate, go_on = Gate(1, 1), asyncio.Event()

        async def one():
            async with gate.enter():
                await go_on.wait()

        waiting = [asyncio.create_task(one()) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="try again"):
            await one()
        go_on.set()
        await asyncio.gather(*waiting)
        await one()  # and there is room again

    asyncio.run(crowd())
