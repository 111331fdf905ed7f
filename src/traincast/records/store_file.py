"""The file of a store: one SQLite database that says whose it is, opened so that many processes can write to it.

WAL lets readers read while one writes, and a process killed at any instant leaves the last whole transaction. FULL
makes a commit wait for the disk: a row takes a millisecond longer and is still there after a power cut.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from traincast.errors import FileFormatError, InputError, StoreError

APPLICATION_ID = 0x74726361  # "trca"
VERSION = 1
BUSY_S = 60.0  # a writer holds the file for milliseconds; who waits longer waits for a stopped process
_SCHEMA = (
    "CREATE TABLE environments (id TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE records (
        id INTEGER PRIMARY KEY,
        campaign TEXT NOT NULL,
        key TEXT NOT NULL,
        kind TEXT NOT NULL,
        task TEXT NOT NULL,
        value TEXT NOT NULL,
        failed INTEGER NOT NULL,
        environment TEXT NOT NULL REFERENCES environments (id),
        created_s REAL NOT NULL,
        UNIQUE (campaign, key)
    )""",
    """CREATE TABLE claims (
        campaign TEXT NOT NULL,
        key TEXT NOT NULL,
        owner TEXT NOT NULL,
        expires_s REAL NOT NULL,
        PRIMARY KEY (campaign, key)
    ) WITHOUT ROWID""",
)


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """A connection to the store at this path; a new one is made there where `create` allows it."""
    _check_place(path, create=create)
    with one_sentence(path):
        connection = sqlite3.connect(path.absolute(), timeout=BUSY_S, isolation_level=None)
        try:
            if not _is_ours(connection, path):
                if not create:
                    raise FileFormatError(f"Store '{path}' is empty and not a store of measurements.")
                _make(connection, path)
            _use_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """All of it or nothing. It takes the writer's lock at once, so that what is read in it still holds when writing."""
    with one_sentence(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # the first error is the one to tell
                if connection.in_transaction:  # a full disk ends it by itself
                    connection.execute("ROLLBACK")
            raise


@contextlib.contextmanager
def one_sentence(path: Path) -> Iterator[None]:
    """SQLite's errors, in words that name the file and say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explained(error, path) from error


def _explained(error: sqlite3.Error, path: Path) -> Exception:
    text = str(error)
    if "not a database" in text:
        return FileFormatError(f"'{path}' is not a SQLite database, so it is not a store of measurements.")
    if "malformed" in text:
        return FileFormatError(f"Store '{path}' is damaged: SQLite calls it '{text}'. Restore a copy, or start over.")
    if "full" in text:
        return StoreError(
            f"The disk of store '{path}' is full. What was stored before is safe: make room and run the command again."
        )
    if "locked" in text or "busy" in text:
        return StoreError(
            f"Store '{path}' has been held by another program for {BUSY_S:g} s; try again when it is done."
        )
    if "readonly" in text or "unable to open" in text:
        return StoreError(
            f"Store '{path}' cannot be written here ({text}): copy it to a folder where you have write permission."
        )
    if isinstance(error, sqlite3.OperationalError):
        return StoreError(f"Store '{path}' cannot be used now: {text}.")
    return error


def check_store(path: Path) -> None:
    """Whether records can be stored there later: told before hours of measuring, and without making the file."""
    _check_place(path, create=True)
    if path.exists() and path.stat().st_size:
        connect(path, create=False).close()
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise StoreError(f"Store '{path}' cannot be written: choose a folder where you have write permission.")


def _check_place(path: Path, *, create: bool) -> None:
    try:
        if path.is_dir():
            raise InputError(f"Store '{path}' is a folder; name a file such as '{path / 'measured.db'}'.")
        if path.exists() and not path.is_file():
            raise InputError(f"Store '{path}' is not a regular file.")
        if not path.exists() and not create:
            raise InputError(f"There is no store '{path}'; 'traincast bench' makes one.")
        if not path.parent.is_dir():
            raise InputError(f"Store '{path}' cannot be made: the folder '{path.parent}' does not exist.")
    except OSError as error:  # a folder that may not be entered, a name that is too long
        raise InputError(f"Store '{path}' cannot be reached: {error.strerror}.") from None


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """True for a store, False for a database with nothing in it yet; anything else is not for us to write to."""
    application, version, n_tables = connection.execute(
        "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),"
        " (SELECT count(*) FROM sqlite_master)"
    ).fetchone()
    if (application, version, n_tables) == (0, 0, 0):
        return False
    if application != APPLICATION_ID:
        raise FileFormatError(f"'{path}' is a SQLite database of another program, not a store of measurements.")
    if version != VERSION:
        raise FileFormatError(
            f"Store '{path}' has version {version}, and this traincast reads version {VERSION}: "
            "use the traincast that wrote it to export the records."
        )
    return True


def _make(connection: sqlite3.Connection, path: Path) -> None:
    """Two processes may come here at once: the second waits for the first, and finds a store."""
    with transaction(connection, path):
        if _is_ours(connection, path):
            return
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Changing to WAL needs the file alone, and SQLite does not wait for that by itself."""
    deadline_s = time.monotonic() + BUSY_S
    while True:
        is_late = time.monotonic() > deadline_s
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or is_late:
                raise
        else:
            if mode == "wal":
                return
            if is_late:
                raise sqlite3.OperationalError(f"it stays in journal mode '{mode}' and never comes to 'wal'")
        time.sleep(0.01)
