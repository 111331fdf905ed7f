"""Requests byte by byte, as no well-behaved client sends them."""

import contextlib
import json
import socket
import time


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
    """Connections that send so much and then nothing."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            connection = socket.create_connection(address, timeout=10, source_address=source)
            made.append(stack.enter_context(connection))
            connection.sendall(data)
        time.sleep(0.2)
        yield made


def is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
