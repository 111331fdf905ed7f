"""A short part of the attack: damaged files of every kind, and a sentence or an answer for each.

The long one is `python benchmarks/fuzz_files.py`, which also tells of hangs and peaks, in processes of its own.
"""

import warnings
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SEED, N_FILES = 19, 5
# They import torch, Keras or transformers, for seconds; their own tests have what the attack found.
SLOW = {"image", "ONNX", "Keras", "HF text", "HF images", "checkpoint", "weights: torch", "weights: safetensors"}


@pytest.fixture(scope="module")
def attack():
    """The modules of the attack, which lie beside its command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        from attack import kinds, trial

        yield kinds, trial


def names():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        from attack.kinds import KINDS

        return sorted(set(KINDS) - SLOW)


def test_there_are_at_least_21_kinds_and_the_slow_ones_are_among_them(attack):
    kinds, _ = attack
    assert len(kinds.KINDS) >= 21
    assert kinds.KINDS.keys() >= SLOW


@pytest.mark.parametrize("name", names())
def test_damaged_files_get_a_sentence_or_an_answer(attack, tmp_path, monkeypatch, name):
    kinds, trial = attack
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path))  # the attack sets it anew, and here it is put back
    first = trial.n_valid(kinds.KINDS[name])
    outcomes = [trial.tried(name, SEED, number, tmp_path / "files") for number in range(first, first + N_FILES)]
    assert not [(one.number, one.wrong, one.what) for one in outcomes if one.wrong]


def test_the_same_seed_makes_the_same_files(attack):
    kinds, trial = attack
    kind = kinds.KINDS["log: csv"]
    assert trial.damaged(kind, 1, 50) == trial.damaged(kind, 1, 50) != trial.damaged(kind, 2, 50)


def test_the_first_files_of_a_kind_are_not_damaged(attack, tmp_path, monkeypatch):
    _, trial = attack
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path))
    outcome = trial.tried("prices", SEED, 0, tmp_path / "files")
    assert (outcome.code, outcome.wrong) == (0, "")


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"raise", "traceback"),
        (b"warn", "warning"),
        (b"say", ""),
        (b"fill", "peak"),
    ],
)
def test_what_breaks_is_told_from_what_is_refused(attack, tmp_path, monkeypatch, content, wrong):
    from attack.kind import Kind
    from traincast.errors import FileFormatError

    def read(path):
        found = path.read_bytes()
        if found == b"raise":
            raise KeyError("of a bug")
        if found == b"warn":
            warnings.warn("of a library", RuntimeWarning, stacklevel=1)
        if found == b"say":
            raise FileFormatError(f"{path} says too little.")
        if found == b"fill":
            raise MemoryError

    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path))
    kind = Kind(name="made up", file="a.txt", valid=bytes, damage=lambda data, rng: data, reader=read)
    _, trial = attack
    assert trial.asked(kind, content, "", tmp_path / "files").wrong == wrong
