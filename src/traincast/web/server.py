"""Runs the application until somebody stops it."""

from __future__ import annotations

import socket
import sys
import threading

import uvicorn

from traincast.web.app import make_app
from traincast.web.connections import ImpatientProtocol, protocol_with
from traincast.web.limits import Limits

_BACKLOG = 256
_OTHER_FILES = 100  # uploads in progress, pipes to processes, libraries
_WARM_ON = "A100-SXM4-80GB"
_WARM_IN = ("fp32", "amp-fp16", "amp-bf16", "bf16")  # tf32 has the ops of fp32


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; who asks before the server runs waits for it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio sends small pieces at once; without, a reply waits 40 ms for the client.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def make_server(*, host: str = "127.0.0.1", limits: Limits | None = None) -> uvicorn.Server:
    """A server that is not running yet."""
    limits = limits or Limits()
    config = uvicorn.Config(
        make_app(limits=limits, host=host),
        http=_protocol(limits),
        ws="none",
        lifespan="off",
        log_level="warning",
        server_header=False,
        timeout_keep_alive=int(limits.idle_s),
        timeout_graceful_shutdown=3,
    )
    return uvicorn.Server(config)


def _protocol(limits: Limits) -> type[ImpatientProtocol]:
    """With no more connections than the system lets this process open: beyond that, it could not even refuse them."""
    n_connections = min(limits.n_connections, _n_open_files() - _OTHER_FILES)
    n_of_one = min(limits.n_connections_of_one, n_connections)
    return protocol_with(idle_s=limits.idle_s, n_connections=n_connections, n_connections_of_one=n_of_one)


def _n_open_files() -> int:
    try:
        import resource
    except ImportError:
        return sys.maxsize
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def warm_up() -> threading.Thread:
    """Works out once, beside the server, what every first question about a zoo model would wait for."""

    def work() -> None:
        from traincast.api.forecasts import forecasts
        from traincast.web.registers import model_names
        from traincast.web.stored_uploads import zoo_model

        for precision in _WARM_IN:
            for model in model_names().models:
                forecasts(zoo_model(model.name), [_WARM_ON], [8], precision=precision)

    thread = threading.Thread(target=work, name="warm-up", daemon=True)
    thread.start()
    return thread
