"""How much of the code one forecast walks through, as `lab/walk.py` counts it: a bound, so that no loop comes back."""

import subprocess
import sys
from pathlib import Path

WALK = Path(__file__).parents[1] / "lab" / "walk.py"


def test_a_forecast_calls_fewer_than_55_000_functions():
    shown = subprocess.run([sys.executable, WALK], capture_output=True, text=True, check=True).stdout
    figures = {
        name.strip(): int(n.replace(",", "")) for name, n in (line.rsplit(maxsplit=1) for line in shown.splitlines())
    }
    assert 10_000 < figures["calls into traincast"] < 55_000
