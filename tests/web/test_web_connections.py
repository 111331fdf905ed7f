"""Connections on which nothing comes keep nobody else from asking."""

import pytest
from raw_requests import error_in, is_open, opened, talk

from traincast.web.limits import Limits
from traincast.web.server import make_server

_ICON = b"GET /icon.svg HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
_HALF_A_BODY = b"POST /api/logs?name=a.csv HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nstep"
_SOMEBODY_ELSE = ("127.0.0.2", 0)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b""),
        (_HALF_A_BODY, b"HTTP/1.1 408"),
    ],
)
def test_who_is_waited_for_longest_makes_room_for_who_comes(run_server, data, told):
    with run_server(Limits(n_connections=3, n_connections_of_one=3)) as address, opened(address, 3, data) as held:
        received, _ = talk(address, _ICON)
        assert received.startswith(b"HTTP/1.1 200")
        assert held[0].recv(65536).startswith(told)
        assert [is_open(connection) for connection in held] == [False, True, True]


def test_many_connections_of_one_client_are_at_their_own_expense(run_server):
    """Others keep theirs, though they are older, and whether the client or the server has too many."""
    for limits in (Limits(n_connections_of_one=3), Limits(n_connections=4, n_connections_of_one=4)):
        with (
            run_server(limits) as address,
            opened(address, 1) as (old,),
            opened(address, 10, source=_SOMEBODY_ELSE) as crowd,
        ):
            assert sum(map(is_open, crowd)) == 3
            assert is_open(old)


def test_who_comes_while_everybody_is_worked_for_is_told_so(run_server):
    """Two whole uploads wait for readers, of which there are none."""
    upload = _HALF_A_BODY.replace(b"1000", b"4")
    limits = Limits(n_connections=2, n_connections_of_one=2, n_readers=0)
    with run_server(limits) as address, opened(address, 2, upload) as held:
        received, _ = talk(address, _ICON)
        assert all(map(is_open, held))
    assert received.startswith(b"HTTP/1.1 503")
    assert error_in(received) == "The server is busy with other visitors: try again soon."


def test_there_are_never_more_connections_than_the_system_lets_the_server_open():
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (350, hard))
    try:
        protocol = make_server().config.http
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (protocol.n_connections, protocol.n_connections_of_one) == (250, 250)
