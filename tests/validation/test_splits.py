"""A row is never predicted by a fit that saw its GPU or its family."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from lab.accuracy.shortcut import compare_with_refits
from traincast.kernels.coefficients import shipped
from traincast.kernels.refit.fit import Problem, as_point
from traincast.validation.blocks import Blocks
from traincast.validation.fits import FILE, load_fits, load_real_fits, without
from traincast.validation.splits import Split, family_of, gpu_of, held_out, splits_of


@pytest.mark.parametrize(
    ("device", "gpu"),
    [
        ("V100-SXM2-16GB", "V100"),
        ("V100-PCIe-32GB", "V100"),
        ("A100-PCIe-40GB", "A100"),
        ("T4", "T4"),
        ("RTX-2080-MaxQ", "RTX-2080-MaxQ"),
        ("Quadro-RTX-8000", "Quadro-RTX-8000"),
    ],
)
def test_memory_and_form_factor_do_not_make_another_gpu(device, gpu):
    assert gpu_of(device) == gpu


def test_one_architecture_is_one_family_in_all_sets():
    assert family_of("bert_large") == family_of("bert_base_squad") == "bert"
    assert family_of("convnext") == "convnext"


def test_every_row_is_in_one_split_of_gpus_and_every_step_in_one_of_families(ops, steps):
    splits = splits_of([ops, steps])
    for block in (ops, steps):
        by_gpu = sum(split.rows(block).astype(int) for split in splits if split.kind == "GPU")
        assert (by_gpu == 1).all()
    by_family = sum(split.rows(steps).astype(int) for split in splits if split.kind == "family")
    assert (by_family == 1).all()
    assert not any(split.rows(ops).any() for split in splits if split.kind == "family")


def test_all_cards_of_a_gpu_are_left_out_together(ops):
    rows = Split("GPU", ("V100",)).rows(ops)
    assert set(ops.tags["device"][rows]) == {"V100-PCIe-32GB", "V100-SXM2-16GB"}


def test_a_row_is_predicted_by_the_fit_of_its_own_split(ops):
    splits = [split for split in splits_of([ops]) if split.kind == "GPU"]
    known = shipped().coefficients
    # Each fit gives itself away by how slow it thinks a launch is.
    fits = [replace(known, values=known.values | {"launch_s": float(number)}) for number in range(len(splits))]
    predicted = held_out(ops, splits, fits, "GPU")
    for number, split in enumerate(splits):
        rows = split.rows(ops)
        assert predicted[rows] == pytest.approx(np.exp(number), rel=0.2)


def test_rows_without_a_family_have_no_prediction_without_it(ops):
    splits = splits_of([ops])
    assert np.isnan(held_out(ops, splits, [shipped().coefficients] * len(splits), "family")).all()


def _problem(*blocks):
    return Problem(tuple(blocks), tuple(100.0 for _ in blocks))


def test_what_a_gpu_took_does_not_reach_the_fit_without_it(ops, steps, tmp_path):
    splits = [Split("GPU", ("T4",)), Split("GPU", ("A10",)), Split("family", ("bert",))]
    spoiled = [_spoiled(block, splits[0]) for block in (ops, steps)]
    honest = load_fits(_problem(ops, steps), splits, tmp_path)
    (tmp_path / FILE).unlink()
    other = load_fits(_problem(*spoiled), splits, tmp_path)
    assert as_point(other[0]) == pytest.approx(as_point(honest[0]), abs=1e-6)
    for number in (1, 2):  # these see the spoiled rows
        assert np.abs(as_point(other[number]) - as_point(honest[number])).max() > 1e-3


def test_a_real_refit_sees_the_other_rows_only(ops, steps, tmp_path):
    split = Split("GPU", ("T4",))
    rest = without(_problem(ops, steps), split)
    assert all("T4" not in block.tags["device"] for block in rest.blocks)
    assert rest.weights == pytest.approx((75.0, 200 / 3))  # each row counts for what it did
    spoiled = [_spoiled(block, split) for block in (ops, steps)]
    (honest,) = load_real_fits(_problem(ops, steps), [split], tmp_path, n_steps=2)
    (tmp_path / FILE).unlink()
    (other,) = load_real_fits(_problem(*spoiled), [split], tmp_path, n_steps=2)
    assert as_point(other) == pytest.approx(as_point(honest))


def test_fits_are_kept_until_the_rows_change(ops, tmp_path, monkeypatch):
    splits = [Split("GPU", ("T4",))]
    (first,) = load_fits(_problem(ops), splits, tmp_path)
    monkeypatch.setattr("traincast.validation.fits.fit_without", None)  # would raise if it were called
    (again,) = load_fits(_problem(ops), splits, tmp_path)
    assert again.values == first.values
    with pytest.raises(TypeError):
        load_fits(_problem(_spoiled(ops, splits[0])), splits, tmp_path)


def _spoiled(block, split):
    return replace(block, observed_s=np.where(split.rows(block), 3.0 * block.observed_s, block.observed_s))


def test_refits_are_compared_on_lone_kernels_that_have_no_floor_too(ops, steps, tmp_path):
    """Kernels of today's GPUs are timed on the device alone: no row of theirs is at a floor."""
    kernels = replace(ops, name="products", tags={key: tag for key, tag in ops.tags.items() if key != "is_floor"})
    problem, split = _problem(ops, kernels), Split("GPU", ("T4",))
    (shortcut,) = load_fits(problem, [split], tmp_path)
    scored = SimpleNamespace(
        problem=problem, splits=(split,), fits=(shortcut,), blocks=Blocks((ops,), (), {}, (kernels,))
    )

    found = list(compare_with_refits(scored, [split], tmp_path))

    assert [each.set_name for each in found] == [ops.name, "products"]
