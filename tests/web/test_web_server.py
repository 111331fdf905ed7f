"""A real server on loopback survives garbage, huge and slow requests, and answers the next one."""

import asyncio
import contextlib
import socket
import time

import httpx
import pytest

from traincast.errors import BusyError
from traincast.web.desk import Gate

_QUESTION = {"model": "resnet18", "batch_size": 8, "on": ["T4"]}


def talk(address, data, *, patience_s=10.0):
    """Sends bytes and reads until the server closes; what came back, and after how long it closed."""
    started = time.monotonic()
    received = b""
    # A server that has refused may close while the rest is still being sent.
    with socket.create_connection(address, timeout=patience_s) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(data)
        while piece := connection.recv(65536):
            received += piece
    return received, time.monotonic() - started


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
    assert received == b"" or received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431", b"HTTP/1.1 414"))


def test_a_connection_that_says_nothing_is_closed(server):
    received, waited_s = talk(server, b"")
    assert received == b""
    assert waited_s < 8


def test_half_a_header_is_not_waited_for(server):
    received, waited_s = talk(server, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    assert received == b""
    assert waited_s < 8


def test_a_body_that_does_not_come_is_not_waited_for(server):
    head = b"POST /api/forecast HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    received, waited_s = talk(server, head + b"Content-Length: 500\r\n\r\n{")
    assert received.startswith(b"HTTP/1.1 408")
    assert b"The request was not whole after 1 s." in received
    assert waited_s < 8


def test_an_upload_that_does_not_end_is_not_waited_for(server):
    head = b"POST /api/models?name=x.onnx HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    received, _ = talk(server, head + b"5\r\nhello\r\n")
    assert received.startswith(b"HTTP/1.1 408")


def test_a_huge_request_is_refused_before_it_is_sent(server):
    head = b"POST /api/models?name=x.onnx HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
    received, _ = talk(server, head)
    assert received.startswith(b"HTTP/1.1 413")


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
