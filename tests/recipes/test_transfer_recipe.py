"""The transfer experiment on a small image folder: its runs, its stages, and what they are forecast to take."""

import colorsys
from dataclasses import replace

import pytest
import torch
from PIL import Image

from traincast.api.logs import read_log
from traincast.api.recipe_forecast import forecast_stages
from traincast.errors import InputError
from traincast.recipes.data.load import load_dataset
from traincast.recipes.models import build_model
from traincast.recipes.transfer_learning.recipe import TransferRecipe

torch.set_num_threads(1)
N_CLASSES, SIDE = 4, 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Visual Decathlon's layout: train/<class>/*.png and val/<class>/*.png. A class is a colour, with some noise."""
    root = tmp_path_factory.mktemp("data") / "colours"
    noise = torch.Generator().manual_seed(0)
    for part, n_images in (("train", 8), ("val", 4)):
        for number in range(N_CLASSES):
            place = root / part / f"{number + 1:04d}"
            place.mkdir(parents=True)
            colour = [round(255 * channel) for channel in colorsys.hsv_to_rgb(number / N_CLASSES, 1, 0.8)]
            for image in range(n_images):
                pixels = torch.tensor(colour) + torch.randint(-20, 21, (SIDE, SIDE, 3), generator=noise)
                Image.fromarray(pixels.clamp(0, 255).byte().numpy()).save(place / f"{image}.png")
    return root


@pytest.fixture(scope="module")
def data(folder):
    return load_dataset(str(folder), image_side=SIDE)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A network of ten classes that was trained on something else (in truth, on nothing)."""
    path = tmp_path_factory.mktemp("weights") / "resnet20.pt"
    torch.save(build_model("cifar_resnet20", 10, seed=3).state_dict(), path)
    return path


def recipe_of(data, weights, **changed):
    chosen = {"n_epochs": 1, "batch_size": 16, "n_seeds": 1, "rates": (0.01,), **changed}
    return TransferRecipe(model="cifar_resnet20", data=data, weights=weights, **chosen)


def test_the_grid_is_that_of_the_course(data, weights):
    recipe = TransferRecipe(model="cifar_resnet20", data=data, weights=weights)
    found = {(run.approach, run.learning_rate) for run in recipe.grid()}
    slow, fast = (0.1, 0.01, 0.001), (1.0, 0.1, 0.01, 0.001)
    assert found == {("fine-tune", rate) for rate in slow} | {(a, rate) for a in ("frozen", "cached") for rate in fast}
    settings = recipe.settings(next(recipe.grid()))
    assert (settings.optimizer, settings.batch_size, len(settings.milestones)) == ("momentum", 64, 3)


def test_every_approach_runs_to_its_end_and_is_not_run_again(data, weights, tmp_path):
    recipe, told = recipe_of(data, weights, n_seeds=2), []
    result = recipe.run(tmp_path, lambda done, total: told.append((done, total)))
    assert [outcome.approach for outcome in result.outcomes] == ["fine-tune", "frozen", "cached"]
    assert all(outcome.accuracy.n == 2 and not outcome.n_diverged for outcome in result.outcomes)
    assert dict(result.stage_runs) == {"features": 1, "fine-tune": 2, "frozen": 2, "cached": 2}
    assert all(seconds > 0 for seconds in result.stage_seconds.values())
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == 12  # 2 steps for each of 6 runs
    logs = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("log.csv")}
    assert len(logs) == 6
    again = recipe.run(tmp_path)
    assert again == result
    assert logs == {path: path.stat().st_mtime_ns for path in logs}


def test_a_folder_of_other_weights_is_not_gone_on_with(data, weights, tmp_path):
    recipe_of(data, weights, approaches=("frozen",)).run(tmp_path / "runs")
    other = tmp_path / "other.pt"
    torch.save(build_model("cifar_resnet20", 10, seed=4).state_dict(), other)
    with pytest.raises(InputError, match="has another run"):
        recipe_of(data, other, approaches=("frozen",)).run(tmp_path / "runs")


def test_cached_features_teach_the_last_layer_what_a_frozen_trunk_would(data, weights, tmp_path):
    """In one batch the order of the images plays no part, and without augmentation both see the same ones."""
    whole = {"batch_size": data.train.n_samples, "n_epochs": 4, "augmentation": None, "rates": (0.1,)}
    recipe_of(data, weights, approaches=("frozen", "cached"), **whole).run(tmp_path)
    ends = {
        approach: torch.load(tmp_path / approach / "rate-0.1" / "seed-0" / "checkpoint.pt", weights_only=True)["module"]
        for approach in ("frozen", "cached")
    }
    torch.testing.assert_close(ends["cached"]["weight"], ends["frozen"]["module.fc.weight"], rtol=1e-3, atol=1e-5)


def test_features_of_another_source_are_computed_anew(data, weights, tmp_path):
    recipe = recipe_of(data, weights, approaches=("cached",))
    recipe.run(tmp_path / "runs")
    other = tmp_path / "other.pt"
    torch.save(build_model("cifar_resnet20", 10, seed=4).state_dict(), other)
    changed = recipe_of(data, other, approaches=("cached",))
    (tmp_path / "changed").mkdir()
    (tmp_path / "runs" / "features.pt").rename(tmp_path / "changed" / "features.pt")
    before = (tmp_path / "changed" / "features.pt").read_bytes()
    changed.run(tmp_path / "changed")
    assert (tmp_path / "changed" / "features.pt").read_bytes() != before


def test_a_run_that_diverges_is_noted_and_cannot_win(data, weights, tmp_path):
    recipe = recipe_of(data, weights, approaches=("fine-tune",), rates=(1e30, 0.01), n_epochs=2)
    result = recipe.run(tmp_path)
    diverged, calm = result.outcomes
    assert (diverged.n_diverged, diverged.accuracy) == (1, None)
    assert result.winner == calm
    assert result.stage_runs["fine-tune"] == 1


def test_a_run_that_diverged_is_not_run_again(data, weights, tmp_path):
    recipe = recipe_of(data, weights, approaches=("fine-tune",), rates=(1e30,), n_epochs=2)
    first = recipe.run(tmp_path)
    logs = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("log.csv")}
    assert recipe.run(tmp_path) == first
    assert logs == {path: path.stat().st_mtime_ns for path in logs}


def test_the_rate_falls_tenfold_three_times(data, weights, tmp_path):
    recipe = recipe_of(data, weights, approaches=("cached",), n_epochs=10)  # of two steps each
    recipe.run(tmp_path)
    log = read_log(tmp_path / "cached" / "rate-0.01" / "seed-0" / "log.csv")
    assert log.learning_rate.values.tolist() == pytest.approx([0.01] * 10 + [1e-3] * 5 + [1e-4] * 3 + [1e-5] * 2)


def test_how_the_source_is_learned_plays_no_part_where_weights_are_given(data, weights):
    assert recipe_of(data, weights, n_source_epochs=0).source is None
    with pytest.raises(InputError, match="n_source_epochs cannot be 0"):
        recipe_of(data, None, n_source_epochs=0)


def test_without_weights_half_of_the_classes_are_learned_first(data, tmp_path):
    recipe = recipe_of(data, None, approaches=("frozen",), n_source_epochs=1)
    assert recipe.source.train.class_names == ("0001", "0002")
    assert recipe.target.train.class_names == ("0003", "0004")
    assert sorted(set(recipe.target.train.labels.tolist())) == [0, 1]
    taken = recipe.target.train.images.read(torch.tensor([0]))
    assert torch.equal(taken, data.train.images.read((data.train.labels == 2).nonzero().flatten()[:1]))
    assert [stage.name for stage in recipe.stages()] == ["source", "frozen"]
    result = recipe.run(tmp_path)
    assert 0 <= result.source_accuracy <= 1
    assert set(result.stage_seconds) == {"source", "frozen"}


def test_where_two_classes_are_too_few_to_learn_half_of_them_first_made_up_shapes_come_first(folder):
    two = load_dataset(str(folder), image_side=SIDE)
    few = TransferRecipe(model="cifar_resnet20", data=two, n_seeds=1).target  # two of the four
    recipe = TransferRecipe(model="cifar_resnet20", data=few, n_seeds=1)
    assert recipe.source.name == "shapes"
    assert recipe.target is few


def test_choices_that_cannot_be_are_refused(data, weights):
    with pytest.raises(InputError, match="approach"):
        recipe_of(data, weights, approaches=("thaw",))
    with pytest.raises(InputError, match="repeats one"):
        recipe_of(data, weights, rates=(0.1, 0.1))
    with pytest.raises(InputError, match="learning_rate"):
        recipe_of(data, weights, rates=(-1.0,))
    with pytest.raises(InputError, match="n_seeds cannot be 0"):
        recipe_of(data, weights, n_seeds=0)


@pytest.mark.parametrize("place", ["this-machine", "V100-SXM2-16GB"])
def test_frozen_is_forecast_faster_than_fine_tuning_and_smaller(data, weights, place):
    recipe = recipe_of(data, weights, n_seeds=3, batch_size=8)
    found = {stage.name: stage for stage in forecast_stages(recipe.stages(), on=place).stages}
    assert found["frozen"].train_s < 0.7 * found["fine-tune"].train_s
    assert found["frozen"].peak_memory_bytes < found["fine-tune"].peak_memory_bytes
    assert found["features"].train_s + found["cached"].train_s < found["frozen"].train_s
    assert found["fine-tune"].stage.n_steps == 3 * 4  # all seeds


def test_runs_that_are_mostly_log_and_checkpoint_are_named(data, weights):
    """A training of a second's length is judged run by run: three short ones do not make a long one."""
    recipe = recipe_of(data, weights, n_seeds=3, approaches=("cached",))
    _, cached = recipe.stages()
    assert cached.n_runs == recipe.n_runs("cached") == cached.n_epochs // recipe.n_epochs
    said = "Writing logs and checkpoints is not forecast, but it dominates runs as short as those of 'cached'."
    assert said in forecast_stages([cached]).warnings
    long = replace(cached, n_epochs=10**6 * cached.n_epochs)
    assert said not in forecast_stages([long]).warnings


def test_a_forecast_step_of_frozen_has_hardly_any_backward(data, weights):
    recipe = recipe_of(data, weights, approaches=("fine-tune", "frozen"))
    tuned, frozen = forecast_stages(recipe.stages(), on="V100-SXM2-16GB").stages
    assert frozen.step.backward_s < 0.1 * tuned.step.backward_s
    assert frozen.step.forward_s == pytest.approx(
        tuned.step.forward_s, rel=0.3
    )  # batch norms do less in evaluation mode
