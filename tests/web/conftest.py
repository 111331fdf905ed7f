"""A client of the application, a server on a free port, and a browser."""

import asyncio
import contextlib
import os
import shutil
import socket
import threading

import pytest
from playwright.sync_api import sync_playwright
from raw_requests import SERVERS
from starlette.testclient import TestClient

from traincast.web.app import make_app
from traincast.web.limits import Limits
from traincast.web.server import bound_socket, make_server


@pytest.fixture(scope="session")
def client():
    with TestClient(make_app(), base_url="http://localhost") as made:
        yield made


@contextlib.contextmanager
def running(limits=None):
    """The address of a server that runs in a thread until the end of the block."""
    listening: socket.socket = bound_socket("127.0.0.1", 0)
    server = make_server(limits=limits)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
    thread.start()
    address = listening.getsockname()
    SERVERS[address] = server
    try:
        yield address
    finally:
        del SERVERS[address]
        server.should_exit = True
        thread.join(timeout=10)
        listening.close()


@pytest.fixture
def run_server():
    """For servers with limits of their own."""
    return running


@pytest.fixture(scope="session")
def server():
    """One with short patience, for those who try it."""
    with running(Limits(body_pace_s=1.0, idle_s=0.6)) as address:
        yield address


@pytest.fixture(scope="session")
def page_address():
    with running() as (host, port):
        yield f"http://{host}:{port}/"


def _browser_path() -> str | None:
    return os.environ.get("TRAINCAST_BROWSER") or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )


@pytest.fixture(scope="module")  # no longer: while it is open, no other test can have an event loop of its own
def browser():
    path = _browser_path()
    if path is None:
        pytest.skip("The page is tested in a real browser: install chromium (Debian: apt-get install chromium).")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])  # CI runs as root
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def context(browser):
    made = browser.new_context(viewport={"width": 1280, "height": 900})
    yield made
    made.close()


@pytest.fixture
def page(context):
    """A page whose errors, and whose calls to anybody else, fail the test."""
    problems = []
    opened = context.new_page()
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda one: problems.append(one.text) if "Content Security" in one.text else None)
    opened.on("request", lambda one: problems.append(one.url) if not _is_local(one.url) else None)
    yield opened
    opened.close()
    assert problems == []


def _is_local(url):
    return url.startswith(("http://127.0.0.1:", "data:", "blob:"))
