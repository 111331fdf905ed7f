"""Tries the base install, without torch, with the lowest or the newest versions that pyproject.toml allows.

    python3.11 .ci/base.py lowest|newest

Makes .venv-lowest or .venv-newest and runs tests that need nothing else. A warning is an error there.
"""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
_TESTS = (
    "tests/hardware",
    "tests/memory",
    "tests/trace/test_known_answers.py",
    "tests/forecasting/test_forecast.py",
    "tests/planning/test_job.py",
    "tests/report/test_text.py",
    "tests/test_lognormal.py",
)
_NEEDS_TORCH = "test_layers_that_run_in_inference_have_no_backward"


def main() -> None:
    which = sys.argv[1]
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    wanted = [re.sub(r">=([^,]+).*", r"==\1", each) for each in declared] if which == "lowest" else declared
    python = ROOT / f".venv-{which}" / "bin" / "python"
    if not python.exists():
        venv.create(python.parent.parent, with_pip=True)
    _run(python, "-m", "pip", "install", "--quiet", "--upgrade", "pip>=25.1")
    _run(
        python, "-m", "pip", "install", "--quiet", "--editable", str(ROOT), *wanted, "pytest>=8.3", "hypothesis>=6.112"
    )
    _run(python, "-c", "import importlib.util as found, sys; sys.exit(found.find_spec('torch') is not None)")
    _run(python, "-m", "traincast", "forecast", "resnet50", "--on", "T4", "--batch", "64", "--json")
    _run(python, "-m", "traincast", "--help")
    _run(python, "-m", "pytest", "-p", "no:cacheprovider", "-k", f"not {_NEEDS_TORCH}", *_TESTS)


def _run(python: Path, *arguments: str) -> None:
    quiet = subprocess.DEVNULL if "traincast" in arguments else None
    subprocess.run([str(python), *arguments], check=True, cwd=ROOT, stdout=quiet)


if __name__ == "__main__":
    main()
