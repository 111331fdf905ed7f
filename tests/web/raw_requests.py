"""Requests byte by byte, as no well-behaved client sends them."""

import contextlib
import json
import socket
import time

SERVERS = {}  # by address: those that run in this process


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


def error_in(received):
    return json.loads(received.partition(b"\r\n\r\n")[2])["error"]


@contextlib.contextmanager
def opened(address, count, data=b"", source=None):
    """Connections that send so much and then nothing, once the server has heard it or has closed them again."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            connection = socket.create_connection(address, timeout=20, source_address=source)
            made.append(stack.enter_context(connection))
            connection.sendall(data)
        until = time.monotonic() + 20
        while not all(_is_heard(address, connection, data) for connection in made):
            assert time.monotonic() < until
            time.sleep(0.01)
        yield made


def _is_heard(address, connection, data):
    known = {one.client: one for one in tuple(SERVERS[address].server_state.connections)}
    one = known.get(connection.getsockname())
    if one is None:
        return not is_open(connection)
    return not one.transport.is_closing() and (not data or one.cycle is not None or one.conn.trailing_data[0] != b"")


def is_open(connection):
    patience_s = connection.gettimeout()
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    finally:
        connection.settimeout(patience_s)
