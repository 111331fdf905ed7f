"""Uploads in progress, from their first byte until they have been read: how many and how large, and which give way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from traincast.errors import BusyError

if TYPE_CHECKING:
    from traincast.web.limits import Limits

_BRISK_BYTES_PER_S = 256 * 1024
_FIRST_S, _MOST_AHEAD_S = 0.02, 1.0
_GAVE_WAY = "This upload was slow and had to make room for another one: try again in a few seconds."
_OWN_PLACES = "Your address has {n} uploads in progress, the maximum per address: try again when one is done."
_OWN_BYTES = (
    "The uploads of your address together are larger than the server accepts at once: try again when one is done."
)
_ALL_BYTES = "The server has no room for more uploads now: try again in a few seconds."


@dataclass(slots=True, eq=False)
class Arrival:
    """One upload.

    It is slow once it is behind a brisk rate. What it is ahead counts for a second at most, so that nobody earns a long
    pause by sending much at first.
    """

    client: str
    n_bytes: int = 0
    is_complete: bool = False
    gave_way: bool = False
    on_time_until_s: float = field(default_factory=lambda: time.monotonic() + _FIRST_S)
    patience: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))

    def count(self, n_bytes: int) -> None:
        self.n_bytes += n_bytes
        ahead_until_s = self.on_time_until_s + n_bytes / _BRISK_BYTES_PER_S
        self.on_time_until_s = min(ahead_until_s, time.monotonic() + _MOST_AHEAD_S)

    def can_give_way(self) -> bool:
        return not self.is_complete and self.on_time_until_s < time.monotonic()

    def give_way(self) -> None:
        """Ends it, at the next moment that it waits for its client."""
        self.gave_way = True
        self.patience.reschedule(asyncio.get_running_loop().time())


class Arrivals:
    """All of them.

    Where a client reaches a limit, the slowest of its uploads gives way, and if none is slow, the newest.
    """

    def __init__(self, limits: Limits) -> None:
        self._n_of_one = limits.n_uploads_of_one
        self._bytes_of_one = limits.n_bodies_of_one * limits.upload_bytes
        self._bytes_of_all = limits.n_bodies * limits.upload_bytes
        self._arrivals: set[Arrival] = set()

    @contextmanager
    def place(self, client: str) -> Iterator[Arrival]:
        """A place for an upload, until the end of the block."""
        sentence = _OWN_PLACES.format(n=self._n_of_one)
        self._free(lambda: self._of(client), lambda own: len(own) < self._n_of_one, sentence)
        arrival = Arrival(client)
        self._arrivals.add(arrival)
        try:
            yield arrival
        finally:
            self._arrivals.discard(arrival)

    async def save(self, arrival: Arrival, pieces: AsyncIterable[bytes], path: Path) -> None:
        """Writes the body into a file."""
        try:
            with path.open("wb") as file:
                async with arrival.patience:
                    async for piece in pieces:
                        self._find_room(arrival, len(piece))
                        file.write(piece)
                        arrival.count(len(piece))
        except TimeoutError as error:
            raise BusyError(_GAVE_WAY) from error
        except OSError as error:
            raise HTTPException(507, f"The server cannot store this upload: {error.strerror or error}.") from error
        arrival.is_complete, arrival.gave_way = True, False

    def _find_room(self, arrival: Arrival, n_bytes: int) -> None:
        own, everybody = (lambda: self._of(arrival.client)), (lambda: self._of(self._greediest()))
        self._free(own, lambda own: _held(own) + n_bytes <= self._bytes_of_one, _OWN_BYTES)
        self._free(everybody, lambda _: _held(self._staying()) + n_bytes <= self._bytes_of_all, _ALL_BYTES)

    def _free(
        self, crowd_of: Callable[[], list[Arrival]], is_enough: Callable[[list[Arrival]], bool], sentence: str
    ) -> None:
        """Lets slow ones of a crowd give way until there is enough room."""
        while not is_enough(crowd := crowd_of()):
            slow = [arrival for arrival in crowd if arrival.can_give_way()]
            if not slow:
                raise BusyError(sentence)
            min(slow, key=lambda arrival: arrival.on_time_until_s).give_way()

    def _staying(self) -> list[Arrival]:
        return [arrival for arrival in self._arrivals if not arrival.gave_way]

    def _of(self, client: str) -> list[Arrival]:
        return [arrival for arrival in self._staying() if arrival.client == client]

    def _greediest(self) -> str:
        """The client whose uploads take most room: nobody else gives way where the room of all is short."""
        staying = self._staying()
        return max((arrival.client for arrival in staying), key=lambda client: _held(self._of(client)), default="")


def _held(arrivals: Iterable[Arrival]) -> int:
    return sum(arrival.n_bytes for arrival in arrivals)
