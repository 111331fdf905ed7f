"""Following the log of a run that is going on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from traincast.options import catalog as o
from traincast.options.question import question

if TYPE_CHECKING:
    from traincast.curves.status.watch_loop import Watch


@question
def watch(
    log: o.WatchedLog,
    *,
    display: Any,
    step_s: o.ExpectedStepS = None,
    interval_s: o.IntervalS = 2.0,
    stop_if: o.StopIf = None,
    strict: o.Strict = False,
    run: o.OneRun = None,
    **options: Unpack[o.WatchOptions],
) -> Watch:
    """A watch of a log that grows: `follow` goes on until the run is over, `once` takes one look.

    Both show what they see on `display` (see `watch_loop.Display`) and return 0, or 3 where `stop_if` holds. `step_s`
    is expected: the pace is that of the log's clock, and a slower one is warned of. Other options are those of
    `converge` and `read_log`.
    """
    from dataclasses import replace

    from traincast.api.converging import asked_of
    from traincast.api.logs import reading_of
    from traincast.curves.status.stop_rule import read_rule
    from traincast.curves.status.watch_loop import Watch as Loop
    from traincast.logs import argument_checks
    from traincast.logs.follow import LogFollower

    path, asked_for = argument_checks.path("A log", log), dict[str, Any](options)
    how = {name: asked_for[name] for name in o.ReadingOptions.__annotations__}
    reading = reading_of(metric=options["metric"], **how)
    return Loop(
        path,
        LogFollower(path, reading, run=run),
        replace(asked_of(options, path, reading, run), step_s=step_s),
        None if stop_if is None else read_rule(stop_if),
        interval_s,
        display,
        strict,
    )
