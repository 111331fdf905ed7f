"""The host: what dispatches the ops, and how long it needs for each.

A profile belongs to a framework on a CPU of ordinary speed, not to a device. `this-machine` is what calibration wrote
into the user's own profile.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from traincast.errors import FileFormatError, InputError, close_names
from traincast.report.input_files import regular
from traincast.report.parsing import parse_toml
from traincast.report.small_files import shipped_rows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

THIS_MACHINE = "this-machine"
DEFAULT_HOST = "torch-eager"
_SECONDS = ("forward_dispatch_s", "backward_dispatch_s", "optimizer_dispatch_s", "view_dispatch_s", "call_s")
_MOST_S = 1e6  # no host takes days for an op, and sums over the ops of a step stay finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Seconds that the host spends on each op before the device can have it.

    The loss counts as forward. Views and allocations launch no kernel and have a price of their own. What a step costs
    whatever it holds (`session.run`, a Keras step with its callbacks) is `call_s`, spent before the first op.
    """

    name: str
    forward_dispatch_s: float
    backward_dispatch_s: float
    optimizer_dispatch_s: float
    view_dispatch_s: float
    call_s: float
    source: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("A host profile needs a name.")
        for field in _SECONDS:
            value = getattr(self, field)
            if not 0 <= value <= _MOST_S:
                raise InputError(f"Host '{self.name}': {field} cannot be {value}, only 0 to {_MOST_S:,.0f} s.")


@lru_cache(maxsize=1)
def all_hosts() -> tuple[Host, ...]:
    """The profiles that ship with traincast."""
    return tuple(_host(row, "hosts.csv") for row in shipped_rows("hosts.csv"))


def find_host(name: str) -> Host:
    """The profile of that name; `this-machine` without a profile of its own is torch-eager, and its notes say so."""
    hosts = {host.name: host for host in all_hosts()}
    key = name.strip().lower()
    if key == THIS_MACHINE:
        return _this_machine(hosts[DEFAULT_HOST])
    if key not in hosts:
        known = (*hosts, THIS_MACHINE)
        raise InputError(f"No host named '{name}'.{close_names(name, known)} Choose from: {', '.join(known)}.")
    return hosts[key]


def profile_path() -> Path:
    """Where the host profile of this machine is kept: host.toml beside its device profile."""
    from traincast.hardware.this_machine import settings_folder

    return settings_folder() / "host.toml"


def _this_machine(fallback: Host) -> Host:

    path = profile_path()
    try:
        content = parse_toml(regular(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        note = f"This machine has no host profile ('{path}'), so the dispatch times of {fallback.name} are used."
        return replace(fallback, notes=note)
    except OSError as error:
        raise InputError(f"Host profile '{path}' cannot be read: {error.strerror}.") from None
    except ValueError as error:  # neither UTF-8 nor TOML
        raise FileFormatError(f"Host profile '{path}' is not TOML: {str(error).rstrip('.')}.") from None
    return _host({"name": THIS_MACHINE, **content}, str(path))


def _host(row: Mapping[str, Any], where: str) -> Host:
    known = {field.name for field in fields(Host)}
    for column in row:
        if column not in known | {"accessed"}:
            raise FileFormatError(f"Host profile '{where}': unknown field '{column}'.{close_names(column, known)}")
    given: dict[str, Any] = {column: str(value) for column, value in row.items() if column in known}
    for field in _SECONDS:
        if field not in given:
            raise FileFormatError(f"Host profile '{where}': {field} is missing.")
        try:
            given[field] = float(given[field])
        except ValueError:
            raise FileFormatError(f"Host profile '{where}': {field} {given[field]!r} is not a number.") from None
    try:
        return Host(**given)
    except InputError as error:
        raise FileFormatError(f"Host profile '{where}': {error}") from None
