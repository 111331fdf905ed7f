"""What every test of a command needs."""

import pytest


@pytest.fixture(autouse=True)
def unwrapped(monkeypatch):
    """Lines as a pipe gets them, however wide the terminal of whoever runs the tests is."""
    monkeypatch.delenv("COLUMNS", raising=False)
