"""The run that `traincast forecast` is asked about: its options, or a job file with the options in its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.api.forecasts import forecasts
from traincast.errors import FileFormatError, InputError
from traincast.hardware.place_text import read_place
from traincast.options.option import declared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincast.cli.command import CommandLine
    from traincast.planning.gates import Gates

_FILES = ("devices", "curve")
_ONE_ANSWER = ("region", "grid_g_per_kwh")  # two ways to answer one question: what is typed replaces both


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Keyword arguments of `forecasts`, limits, and where an earlier forecast is."""

    options: dict[str, Any]
    gates: Gates | None  # None: no limits
    job: str | None
    typed: Mapping[str, Any]  # options of the run that stand on the line
    compare: str | None
    against: str | None

    def __post_init__(self) -> None:
        """What cannot be compared is told before anything is forecast."""
        if self.compare is not None and self.against is not None:
            raise InputError("--compare and --against are two answers to one question: give one of them.")
        if self.against is not None and self.job is None:
            raise InputError("--against compares a job file with itself at another commit: give a job file (.toml).")
        is_compared = self.compare is not None or self.against is not None
        if is_compared and len(self.options["on"]) * len(self.options["batch_sizes"] or [0]) > 1:
            raise InputError("Differences are told of one choice: name one place and one batch size.")

    def earlier(self) -> tuple[str, dict[str, Any]] | None:
        """Where the earlier forecast is from, and what it said."""
        if self.compare is not None:
            return Path(self.compare).name, _read(Path(self.compare))
        if self.against is None or self.job is None:
            return None
        from traincast.api.at_commit import forecast_at

        found = forecast_at(self.against, self.job, tuple(_words(self.typed)))
        (place,) = self.options["on"]
        return self.against, found | ({"on": place} if found.get("on") == _absolute("on", place) else {})


def run_of(line: CommandLine) -> Run:
    """Of a whole command line."""
    options, own = dict(line.options), line.own
    options["on"] = list(dict.fromkeys(options["on"] or []))
    job = options["model"] if options["model"].lower().endswith(".toml") else None
    gates = None if own["fail_over"] is None else _limits(own["fail_over"])
    typed = {name: value for name, value in options.items() if name in line.typed and name != "model"}
    if job is None:
        _check_whole(options)
    else:
        from traincast.api.job import read_job

        written = read_job(job)
        options = written.options(Path(job).parent)
        if typed.keys() & set(_ONE_ANSWER):
            options |= dict.fromkeys(_ONE_ANSWER)
        options |= typed
        gates = written.gates if gates is None else written.gates.override(gates)
    return Run(
        options=options,
        gates=gates,
        job=job,
        typed=typed,
        compare=own["compare"],
        against=own["against"],
    )


def _limits(text: str) -> Gates:
    from traincast.planning.gates import gates_of

    return gates_of(text)


def _words(typed: Mapping[str, Any]) -> list[str]:
    """Options as words of a command line that means the same in another folder: files as absolute paths."""
    words = []
    for one in declared(forecasts):
        value = typed.get(one.name)
        if value is True:
            words.append(one.flag)
        elif isinstance(value, list) and one.option.typed is None:
            words += [word for item in value for word in (one.flag, _absolute(one.name, item))]
        elif isinstance(value, list):
            words += [one.flag, ",".join(str(item) for item in value)]
        elif one.name in typed:
            words += [one.flag, _absolute(one.name, value)]
    return words


def _absolute(name: str, value: Any) -> str:
    """A file that an option names is the one that the user sees: of today, and beside the user."""
    if name in _FILES:
        return str(Path(value).resolve())
    if name != "on" or not (place := read_place(str(value))).is_file:
        return str(value)
    return str(replace(place, name=str(Path(place.name).resolve())))


def _check_whole(options: Mapping[str, Any]) -> None:
    for name, flag in (("on", "--on"), ("batch_sizes", "--batch")):
        if not options[name] and not (name == "batch_sizes" and _has_usual_batch(options["model"])):
            raise InputError(f"Missing option '{flag}': a forecast needs a place and a batch size, or a job file.")
    for place in options["on"]:
        if "," in place and not read_place(place).is_file:
            several = " ".join(f"--on {one.strip()}" for one in place.split(","))
            raise InputError(f"--on '{place}' is not one place: name several as {several}.")


def _has_usual_batch(model: Any) -> bool:
    """A language model by name is asked about with as many sequences as fit."""
    from traincast.frontend.models.named import find_named
    from traincast.frontend.models.registry import ZOO

    text = str(model)
    return find_named(text) is not None or (text in ZOO and ZOO[text].loss == "next-token")


def _read(path: Path) -> dict[str, Any]:
    from traincast.report.input_files import regular
    from traincast.report.parsing import parse_json

    try:
        data = parse_json(regular(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}.") from None
    except ValueError:  # not UTF-8, or not JSON
        raise FileFormatError(f"'{path}' is not JSON: give what 'traincast forecast --json' printed.") from None
    if not isinstance(data, dict):
        raise FileFormatError(f"'{path}' is not what 'traincast forecast --json' prints for one choice.")
    return data
