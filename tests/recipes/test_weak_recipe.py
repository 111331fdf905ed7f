"""Pretraining on tags, then fine-tuning and a linear probe on clean labels, really trained on a few digits."""

import pytest
import torch
from few_digits import Broken, breaks_after, few_digits, one_epoch

from traincast.errors import InputError
from traincast.recipes.engine.checkpoint import load_checkpoint
from traincast.recipes.weak_labels.recipe import WeakRecipe
from traincast.recipes.weak_labels.result import WeakResult, WeakRun, WeakSeed

torch.set_num_threads(1)


def recipe(**changes):
    settings = {"clean_fraction": 0.2, "noise_fractions": (0.0, 0.5), "imbalance": 4.0, "n_seeds": 1}
    return WeakRecipe(**{"data": few_digits(), "settings": one_epoch(), **settings, **changes})


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """One run, told of as it went."""
    folder, told = tmp_path_factory.mktemp("whole"), []
    return folder, recipe().run(folder, lambda done, total: told.append((done, total))), told


def test_every_stage_of_the_forecast_is_run_and_timed(ran):
    _, result, told = ran
    stages = recipe().stages()
    assert [stage.name for stage in stages] == list(result.stage_seconds)
    n_steps = sum(stage.n_steps for stage in stages)
    assert told[-1] == (n_steps, n_steps)


def test_both_ways_of_drawing_have_the_same_tags(ran):
    _, result, _ = ran
    runs = result.seeds[0].runs
    assert [(run.is_resampled, run.noise_fraction) for run in runs] == [
        (False, 0.0), (False, 0.5), (True, 0.0), (True, 0.5),
    ]  # fmt: skip
    assert [run.right_fraction for run in runs[:2]] == [run.right_fraction for run in runs[2:]]
    assert runs[1].right_fraction < runs[0].right_fraction


def test_a_probe_changes_the_last_layer_alone(ran):
    folder, _, _ = ran
    where = folder / "seed-0" / "noise-0-as-is"
    before = load_checkpoint(where / "pretraining" / "checkpoint.pt")["module"]
    after = load_checkpoint(where / "linear-probe" / "checkpoint.pt")["module"]
    changed = {name for name in before if not torch.equal(before[name], after[f"module.{name}"])}
    assert changed == {"fc.weight", "fc.bias"}


def test_fine_tuning_changes_every_layer(ran):
    folder, _, _ = ran
    where = folder / "seed-0" / "noise-0-as-is"
    before, after = (
        load_checkpoint(where / each / "checkpoint.pt")["module"] for each in ("pretraining", "fine-tuning")
    )
    assert all(not torch.equal(before[name], after[name]) for name in before if name.endswith("weight"))


def test_the_same_folder_gives_the_same_result_without_a_step(ran):
    folder, result, _ = ran
    assert recipe().run(folder).to_dict() == result.to_dict()


def test_broken_off_and_begun_again_it_comes_to_the_same(ran, tmp_path):
    _, whole, _ = ran
    with pytest.raises(Broken):
        recipe().run(tmp_path, breaks_after(20))
    assert recipe().run(tmp_path).seeds == whole.seeds


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clean_fraction": 0.0}, "share of clean labels should be above 0 and below 1, not 0"),
        ({"noise_fractions": (0.1, 1.2)}, "Shares of noise should be between 0 and 1, not 0.1, 1.2"),
        ({"imbalance": 0.5}, "at least as many images as the rarest, not 0.5 times"),
        ({"imbalance": float("nan")}, "at least as many images as the rarest, not nan times"),
        ({"imbalance": float("inf")}, "at least as many images as the rarest, not inf times"),
        ({"n_seeds": 0}, "n_seeds cannot be 0: give a whole number of at least 1"),
        ({"settings": one_epoch(seed=2**31 - 1), "n_seeds": 2}, "seed 2147483648 is too large"),
    ],
)
def test_what_cannot_be_is_one_sentence(changes, words):
    with pytest.raises(InputError, match=words):
        recipe(**changes)


def test_what_resampling_adds_is_paired_by_seed_and_noise():
    def run(noise, is_resampled, tuned):
        return WeakRun(
            noise_fraction=noise,
            is_resampled=is_resampled,
            n_images=10,
            right_fraction=0.9,
            fine_tuned_accuracy=tuned,
            probe_accuracy=tuned - 0.1,
        )

    def seed(number, shift):
        plain, drawn = [run(0.0, False, 0.5 + shift), run(0.5, False, 0.4 + shift)], [run(0.0, True, 0.6 + shift)]
        return WeakSeed(seed=number, clean_accuracy=0.3 + shift, runs=(*plain, *drawn, run(0.5, True, 0.4 + shift)))

    seeds = (seed(0, 0.0), seed(1, 0.2))
    result = WeakResult(model="small", n_clean=1, n_tagged=10, n_test=9, seeds=seeds, stage_seconds={})
    none, half = result.resampling
    assert (none.fine_tuned.low, none.fine_tuned.high) == (pytest.approx(0.1), pytest.approx(0.1))
    assert (half.noise_fraction, half.probe.mean) == (0.5, pytest.approx(0))
    assert result.lines[0].gain.mean == pytest.approx(0.2)
