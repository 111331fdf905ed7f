"""Records in one SQLite file: safe for several writing processes, whole after kill -9, each task stored once."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from traincast.errors import FileFormatError
from traincast.records.environment import Environment
from traincast.records.record import Record, canonical
from traincast.records.store_file import connect, one_sentence, transaction
from traincast.report.json_ import plain

DEFAULT_CAMPAIGN = "default"
# A failure gives way to a later answer; a result stays as it is.
_ADD = """INSERT INTO records (campaign, key, kind, task, value, failed, environment, created_s)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (campaign, key) DO UPDATE SET value = excluded.value, failed = excluded.failed,
environment = excluded.environment, created_s = excluded.created_s WHERE records.failed"""
_LAST_S = 6e10  # since 1970: the year 3871
_CHOSEN = "(?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR campaign = ?2)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The records of one kind and campaign, counted."""

    kind: str
    campaign: str
    n: int
    n_failed: int
    first_s: float
    last_s: float
    devices: tuple[str, ...]


class Store:
    """An open store; use it in a `with`. `create` makes the file where there is none."""

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        self._connection = connect(self.path, create=create)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Any]:
        """A connection on which all happens or nothing."""
        with transaction(self._connection, self.path):
            yield self._connection

    def add(self, record: Record, *, campaign: str = DEFAULT_CAMPAIGN) -> bool:
        """Store it, whole or not at all; False where the campaign has a result of this task already."""
        return self.add_all([record], campaign=campaign) == 1

    def add_all(self, records: Iterable[Record], *, campaign: str = DEFAULT_CAMPAIGN) -> int:
        """Store all of them or none, and count those that are new."""
        with self.transaction() as connection:
            return sum(insert(connection, record, campaign) for record in records)

    def keys(self, *, campaign: str, failed: bool | None = None) -> set[str]:
        """Of stored records; `failed` chooses those that could not be done, or the others."""
        query = "SELECT key FROM records WHERE campaign = ?1 AND (?2 IS NULL OR failed = ?2)"
        with one_sentence(self.path):
            return {key for (key,) in self._connection.execute(query, (campaign, failed))}

    def records(self, kind: str | None = None, *, campaign: str | None = None) -> list[Record]:
        """In the order in which they were stored."""
        return [record for _, record in self.rows(kind, campaign=campaign)]

    def rows(self, kind: str | None = None, *, campaign: str | None = None) -> Iterator[tuple[str, Record]]:
        """Each record with its campaign, in the order in which they were stored."""
        environments: dict[str, Environment] = {}
        query = (
            "SELECT records.id, campaign, kind, task, value, created_s, environment, content"
            f" FROM records JOIN environments ON environments.id = environment WHERE {_CHOSEN} ORDER BY records.id"
        )
        with one_sentence(self.path):
            for row in self._connection.execute(query, (kind, campaign)):
                number, name, kind_, task, value, created_s, environment, content = row
                where = f"record {number}"
                if environment not in environments:
                    environments[environment] = self._environment(content)
                if not (isinstance(name, str) and isinstance(kind_, str)):
                    raise self._damaged(where)
                yield (
                    name,
                    Record(
                        kind=kind_,
                        task=self._table(task, where),
                        values=self._table(value, where),
                        environment=environments[environment],
                        created_s=self._moment_s(created_s, where),
                    ),
                )

    def groups(self, kind: str | None = None) -> list[Group]:
        """What is in the store, by kind and campaign."""
        query = f"""SELECT kind, campaign, count(*), sum(failed), min(created_s), max(created_s),
            json_group_array(DISTINCT json_extract(content, '$.device'))
            FROM records JOIN environments ON environments.id = environment
            WHERE {_CHOSEN} GROUP BY kind, campaign ORDER BY min(records.id)"""
        with one_sentence(self.path):
            found = self._connection.execute(query, (kind, None)).fetchall()
        names = [field for field in Group.__dataclass_fields__ if field != "devices"]
        groups = [
            Group(**dict(zip(names, row, strict=True)), devices=self._devices(devices)) for *row, devices in found
        ]
        for group in groups:
            where = f"a record of campaign '{group.campaign}'"
            are_words = isinstance(group.kind, str) and isinstance(group.campaign, str)
            if not (are_words and isinstance(group.n_failed, int) and 0 <= group.n_failed <= group.n):
                raise self._damaged(where)
            for moment_s in (group.first_s, group.last_s):
                self._moment_s(moment_s, where)
        return groups

    def _moment_s(self, seconds_since_1970: object, where: str) -> float:
        """What is a day of some calendar."""
        if not isinstance(seconds_since_1970, int | float) or not abs(seconds_since_1970) < _LAST_S:
            raise self._damaged(where)
        return seconds_since_1970

    def _devices(self, content: str) -> tuple[str, ...]:
        """Their names, from the list that SQLite wrote: a number that is too large for it makes that no JSON."""
        try:
            return tuple(sorted(map(str, json.loads(content))))
        except ValueError:
            raise self._damaged("an environment") from None

    def _table(self, content: object, where: str) -> dict[str, Any]:
        """What a cell holds that we wrote as a JSON object."""
        try:
            found = json.loads(content) if isinstance(content, str) else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._damaged(where)
        return found

    def _damaged(self, where: str) -> FileFormatError:
        return FileFormatError(f"Store '{self.path}' is damaged: {where} was not written by traincast.")

    def _environment(self, content: str) -> Environment:
        try:
            return Environment.from_dict(self._table(content, "an environment"))
        except TypeError as error:  # a field that another version has or lacks
            raise FileFormatError(
                f"Store '{self.path}' was written by another version of traincast: {error}."
            ) from error


def insert(connection: Any, record: Record, campaign: str) -> bool:
    """Inside a transaction: whether the record is new."""
    content = canonical(record.environment.to_dict())
    environment = hashlib.sha256(content.encode()).hexdigest()
    connection.execute("INSERT OR IGNORE INTO environments VALUES (?, ?)", (environment, content))
    # In their own order, as people will read them.
    task, value = (json.dumps(plain(part), allow_nan=False) for part in (record.task, record.values))
    row = (campaign, record.key, record.kind, task, value, record.error is not None, environment, record.created_s)
    return connection.execute(_ADD, row).rowcount == 1
