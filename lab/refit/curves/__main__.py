"""`python -m lab.refit.curves --data DIR`: writes the priors that ship with traincast."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path

from lab.paths import PACKAGE
from lab.refit.curves.fit import drops_of, fit_priors
from lab.refit.curves.runs import read_runs
from lab.refit.curves.strangers import cases_of
from traincast.report.files import write_file

_TARGET = PACKAGE / "data" / "curves" / "priors.json"


def main() -> None:
    """Fits on all runs of the folder; what that is worth on runs left out is in docs/curves_accuracy.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the public measurements")
    parser.add_argument("--output", type=Path, default=_TARGET)
    given = parser.parse_args()
    runs = read_runs(given.data)
    drops = drops_of(runs)
    n_sources = len({run.source for run in runs})
    today = datetime.datetime.now(tz=datetime.UTC).date()
    cases = cases_of(given.data, runs)
    provenance = (
        f"{len(drops)} drops of {len(runs)} curves from {n_sources} sources, {today}; unknown rates: {len(cases)} "
        f"forecasts of curves from {len({case.source for case in cases})} sources"
    )
    priors = fit_priors(drops, runs, cases, provenance)
    write_file(given.output, json.dumps(priors.to_dict(), indent=1) + "\n")
    sys.stdout.write(f"Wrote {given.output}: {priors}\n")


if __name__ == "__main__":
    main()
