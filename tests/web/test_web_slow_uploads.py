"""Clients that send an upload slowly, or too many at once, keep nobody else from uploading."""

import asyncio
import contextlib
import time
from pathlib import Path

import httpx
import pytest
from raw_requests import error_in, is_open, opened
from starlette.exceptions import HTTPException
from starlette.requests import Request

from traincast.errors import BusyError
from traincast.web.arrivals import Arrivals
from traincast.web.clients import client_of
from traincast.web.limits import Limits
from traincast.web.question_runner import GoneError, QuestionRunner
from traincast.web.stored_uploads import StoredUploads
from traincast.web.upload_intake import UploadIntake

_LOG = b"step,loss\n" + b"".join(b"%d,%.4f\n" % (step, 0.5 + 4 / step) for step in range(1, 60))
_FULL_DISK = Path("/dev/full")


def upload_head(n_bytes):
    return f"POST /api/logs?name=run.csv HTTP/1.1\r\nHost: localhost\r\nContent-Length: {n_bytes}\r\n\r\n".encode()


def upload(address):
    host, port = address
    return httpx.post(f"http://{host}:{port}/api/logs", params={"name": "run.csv"}, content=_LOG, timeout=20)


def test_slow_uploads_keep_nobody_from_uploading(run_server):
    """Three send a byte and then nothing, and there is one reader, which none of them needs yet."""
    limits = Limits(n_readers=1, body_pace_s=60.0)
    with run_server(limits) as address, opened(address, 3, upload_head(1000) + b"s") as slow:
        assert upload(address).status_code == 200
        assert all(map(is_open, slow))


def test_a_body_that_never_rests_but_brings_too_little_is_ended(run_server):
    limits = Limits(body_pace_s=0.6, body_bytes_per_s=1000)
    with run_server(limits) as address, opened(address, 1, upload_head(1000)) as (connection,):
        for _ in range(30):
            with contextlib.suppress(ConnectionError):
                connection.send(b"1")
            time.sleep(0.05)
        received = connection.recv(65536)
    assert received.startswith(b"HTTP/1.1 408")
    assert error_in(received).startswith("The request arrived too slowly: after 0.6 s a body must be complete")


def test_a_body_may_take_as_long_as_it_keeps_its_pace(run_server):
    """Longer than is counted over, at several times the rate."""
    limits = Limits(body_pace_s=1.5, body_bytes_per_s=len(_LOG) // 9)
    with run_server(limits) as address, opened(address, 1, upload_head(len(_LOG))) as (connection,):
        for place in range(0, len(_LOG), 1 + len(_LOG) // 12):
            connection.sendall(_LOG[place : place + 1 + len(_LOG) // 12])
            time.sleep(0.15)
        received = connection.recv(65536)
    assert received.startswith(b"HTTP/1.1 200"), received


def test_where_a_client_has_too_many_uploads_the_slowest_gives_way(run_server):
    with run_server(Limits(n_uploads_of_one=2)) as address, opened(address, 2, upload_head(1000) + b"s") as slow:
        time.sleep(0.1)
        assert upload(address).status_code == 200
        received = slow[0].recv(65536)
        assert is_open(slow[1])
    assert received.startswith(b"HTTP/1.1 429")
    assert (
        error_in(received) == "This upload was slow and had to make room for another one: try again in a few seconds."
    )


def test_uploads_that_are_not_slow_do_not_give_way_and_other_clients_have_places_of_their_own():
    async def fill():
        arrivals = Arrivals(Limits(n_uploads_of_one=2))
        with arrivals.place("a") as one, arrivals.place("a") as other:
            for arrival in (one, other):
                arrival.count(2**20)
            with pytest.raises(BusyError, match="Your address has 2 uploads in progress"), arrivals.place("a"):
                pass
            with arrivals.place("b"):
                pass
        with arrivals.place("a"):  # and there is room again
            pass

    asyncio.run(fill())


async def pieces(*sizes, pause_s=0.0):
    for size in sizes:
        yield bytes(size)
        await asyncio.sleep(pause_s)


@pytest.mark.parametrize(
    ("clients", "words"),
    [("aaa", "together are larger than the server accepts"), ("abc", "no room for more uploads")],
)
def test_bodies_that_are_too_large_together_are_refused_as_they_arrive(tmp_path, clients, words):
    """There is room for two of the longest bodies of one client, or where each has its own, for two of all."""

    async def arrive():
        arrivals = Arrivals(Limits(upload_bytes=100, n_bodies_of_one=2, n_bodies=2 if clients == "abc" else 4))
        with contextlib.ExitStack() as stack:
            first, second, third = (stack.enter_context(arrivals.place(client)) for client in clients)
            await arrivals.save(first, pieces(100), tmp_path / "first")
            await arrivals.save(second, pieces(100), tmp_path / "second")
            with pytest.raises(BusyError, match=words):
                await arrivals.save(third, pieces(1), tmp_path / "third")

    asyncio.run(arrive())


def test_where_room_is_short_for_all_it_is_made_by_the_client_that_has_most(tmp_path):
    async def arrive():
        arrivals = Arrivals(Limits(upload_bytes=100, n_bodies_of_one=2, n_bodies=2))
        with arrivals.place("greedy") as greedy, arrivals.place("small") as small, arrivals.place("new") as new:
            slow = asyncio.create_task(arrivals.save(greedy, pieces(90, 60, pause_s=0.1), tmp_path / "greedy"))
            modest = asyncio.create_task(arrivals.save(small, pieces(10, 10, pause_s=0.1), tmp_path / "small"))
            await asyncio.sleep(0.15)
            await arrivals.save(new, pieces(40), tmp_path / "new")
            await modest
            with pytest.raises(BusyError, match="This upload was slow"):
                await slow

    asyncio.run(arrive())


@pytest.mark.skipif(not _FULL_DISK.exists(), reason="needs /dev/full")
def test_a_full_disk_is_a_sentence():
    async def arrive():
        arrivals = Arrivals(Limits())
        with (
            arrivals.place("a") as arrival,
            pytest.raises(HTTPException, match="cannot store this upload: No space left"),
        ):
            await arrivals.save(arrival, pieces(10), _FULL_DISK)

    asyncio.run(arrive())


def test_an_upload_is_not_read_for_who_has_gone():
    messages = [
        {"type": "http.request", "body": _LOG, "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive():
        return messages.pop(0)

    async def come_and_go():
        limits = Limits(reading_s=0.0)  # whoever was read after all would be told that it took too long
        stored = StoredUploads(most=1, most_bytes=2**20)
        scope = {"type": "http", "method": "POST", "headers": [], "client": ("127.0.0.1", 1)}
        request = Request(scope, receive)
        with pytest.raises(GoneError):
            await UploadIntake(stored, QuestionRunner(stored, limits), limits).take_log(request, "run.csv", None)

    asyncio.run(come_and_go())


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("testclient", "testclient"),
    ],
)
def test_a_client_is_an_address_or_its_network(host, client):
    assert client_of(host) == client
