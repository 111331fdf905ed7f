"""What `traincast forecast` is asked: its flags, or a job file with the flags that were given in its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import FileFormatError, InputError
from traincast.planning.gates import Gates, gates_of
from traincast.report.input_files import regular
from traincast.report.parsing import parse_json

if TYPE_CHECKING:
    import typer

# Flags by the names that `answers` gives them; the rest have the same name there.
_OPTION = {
    "batch": "batch_sizes",
    "accumulate": "accumulation_steps",
    "price": "price_usd_per_hour",
    "devices_file": "devices",
}
_FILES = ("devices_file", "curve")
_PLACE_FILE = re.compile(r"(?P<part>[0-9]+\s+of\s+)?(?P<file>.+\.toml)", re.IGNORECASE)  # 'own.toml', '3 of own.toml'
_MODEL = ("n_classes", "image_size", "seqlen", "head")
_NOT_OF_THE_RUN = ("model", "fail_over", "compare", "against", "as_json", "html", "png")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Keyword arguments of `answers`, limits, and where an earlier forecast is."""

    options: dict[str, Any]
    gates: Gates
    job: str | None
    flags: tuple[str, ...]  # those of the run, as they were given; files as absolute paths
    compare: Path | None
    against: str | None

    def __post_init__(self) -> None:
        """What cannot be compared is told before anything is forecast."""
        if self.compare is not None and self.against is not None:
            raise InputError("--compare and --against are two answers to one question: give one of them.")
        if self.against is not None and self.job is None:
            raise InputError("--against compares a job file with itself at another commit: give a job file (.toml).")
        is_compared = self.compare is not None or self.against is not None
        if is_compared and len(self.options["on"]) * len(self.options["batch_sizes"]) > 1:
            raise InputError("Differences are told of one choice: name one place and one batch size.")

    def earlier(self) -> tuple[str, dict[str, Any]] | None:
        """Where the earlier forecast is from, and what it said."""
        if self.compare is not None:
            return self.compare.name, _read(self.compare)
        if self.against is None or self.job is None:
            return None
        from traincast.api.at_commit import forecast_at

        found = forecast_at(self.against, self.job, self.flags)
        (place,) = self.options["on"]
        return self.against, found | ({"on": place} if found.get("on") == _absolute("on", place) else {})


def asked_of(context: typer.Context) -> Asked:
    """Of a whole command line."""
    values, given = context.params, _given(context)
    job = values["model"] if values["model"].lower().endswith(".toml") else None
    own = {name: value for name, value in values.items() if name not in _NOT_OF_THE_RUN and name not in _MODEL}
    shape = {name: values[name] for name in _MODEL if values[name] is not None}
    gates = Gates() if values["fail_over"] is None else gates_of(values["fail_over"])
    if job is None:
        _check_whole(values)
        options = {_OPTION.get(name, name): _read_flag(name, value) for name, value in own.items()}
        options |= {"model": values["model"], "model_options": shape}
    else:
        from traincast.planning.job import read_job

        written = read_job(job)
        options = written.options(Path(job).parent)
        changed = {_OPTION.get(name, name): _read_flag(name, own[name]) for name in own if name in given}
        for one, other in (("region", "grid_g_per_kwh"), ("grid_g_per_kwh", "region")):
            if one in changed:
                options[other] = None  # the flag answers the question that the file answered otherwise
        options |= {**changed, "model_options": {**options["model_options"], **shape}}
        gates = written.gates.override(gates)
    return Asked(
        options=options,
        gates=gates,
        job=job,
        flags=tuple(_words(context, given)),
        compare=None if values["compare"] is None else Path(values["compare"]),
        against=values["against"],
    )


def _given(context: typer.Context) -> set[str]:
    """Flags that stand on the command line, whatever their value."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _words(context: typer.Context, given: set[str]) -> list[str]:
    """The flags of the run as words of a command line that means the same in another folder."""
    words = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in given or name in _NOT_OF_THE_RUN:
            continue
        value = context.params[name]
        if value is True:
            words.append(parameter.opts[0])
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words += [parameter.opts[0], _absolute(name, one)]
    return words


def _absolute(name: str, value: Any) -> str:
    """A file that a flag names is the one that the user sees: of today, and beside the user."""
    if name in _FILES:
        return str(Path(value).resolve())
    place = _PLACE_FILE.fullmatch(str(value)) if name == "on" else None
    return str(value) if place is None else f"{place['part'] or ''}{Path(place['file']).resolve()}"


def _check_whole(values: dict[str, Any]) -> None:
    for name in ("on", "batch"):
        if not values[name]:
            raise InputError(f"Missing option '--{name}': a forecast needs a place and a batch size, or a job file.")
    for place in values["on"]:
        if "," in place and _PLACE_FILE.fullmatch(place) is None:
            several = " ".join(f"--on {one.strip()}" for one in place.split(","))
            raise InputError(f"--on '{place}' is not one place: name several as {several}.")


def _read_flag(name: str, value: Any) -> Any:
    if name == "batch":
        return _batch_sizes(value)
    return list(dict.fromkeys(value)) if name == "on" else value


def _batch_sizes(text: str) -> list[int]:
    """Each once, in the order given."""
    try:
        return list(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise InputError(
            f"--batch '{text}' is not a whole number or a list of them: write 128, or 32,64,128."
        ) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        data = parse_json(regular(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}.") from None
    except ValueError:  # not UTF-8, or not JSON
        raise FileFormatError(f"'{path}' is not JSON: give what 'traincast forecast --json' printed.") from None
    if not isinstance(data, dict):
        raise FileFormatError(f"'{path}' is not what 'traincast forecast --json' prints for one choice.")
    return data
