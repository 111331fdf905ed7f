"""Fitting the predictor: on rows made by known coefficients, so that the right answer is known."""

from dataclasses import replace

import numpy as np
import pytest

from lab.refit.kernel_folds import device_folds, family_folds, fit_folds, held_out
from traincast.hardware.host import find_host
from traincast.kernels.coefficients import NAMES, Coefficients, prior_coefficients
from traincast.kernels.kernels_of import SIZES
from traincast.kernels.refit.block import Block, Kernels, residuals
from traincast.kernels.refit.fit import _STEP, Problem, _robust, as_coefficients, as_point, fit, fit_without
from traincast.kernels.refit.processes import at_once
from traincast.kernels.refit.spread import group_shares, kernel_log_sd, step_log_sds
from traincast.kernels.work import Work

DEVICES = ("A100-PCIe-40GB", "P100-PCIe-16GB", "T4", "V100-PCIe-32GB")
TRUE = Coefficients(prior_coefficients().values | {"efficiency.linear.simt": -0.25, "dram": -0.2})


def made_block(*, name="gemm", n_rows=200, noise=0.0, coefficients=TRUE, seed=0):
    """Rows of large products and long additions, timed by known coefficients."""
    rng = np.random.default_rng(seed)
    is_product = rng.random(n_rows) < 0.5
    m, n, k = rng.integers(512, 4096, (3, n_rows)).astype(float)
    sizes = {key: np.ones(n_rows) for key in SIZES} | {"m": m, "n": n, "k": k}
    sizes |= {"flop": np.where(is_product, 2 * m * n * k, 0.0), "bytes": 4 * (m * k + k * n + m * n)}
    device = rng.integers(0, len(DEVICES), n_rows)
    false = np.zeros(n_rows, dtype=bool)
    block = Block(
        name=name,
        kernels=Kernels(
            work=np.where(is_product, Work.LINEAR, Work.ELEMENTWISE),
            item=np.full(n_rows, 4),
            is_bf16=false,
            is_winograd=false,
            is_unaligned=false,
            is_masked=false,
            sizes=sizes,
        ),
        row=np.arange(n_rows),
        count=np.ones(n_rows),
        device=device,
        devices=DEVICES,
        observed_s=np.ones(n_rows),
        floor_s=np.zeros(n_rows),
        tags={"device": np.array(DEVICES)[device], "family": np.array([f"f{i % 10}" for i in range(n_rows)])},
        n_dispatched=np.zeros(n_rows),
    )
    observed = block.predict(coefficients) * np.exp(noise * rng.standard_normal(n_rows))
    return Block(**{**{f: getattr(block, f) for f in Block.__dataclass_fields__}, "observed_s": observed})


@pytest.fixture(scope="module")
def problem():
    return Problem((made_block(noise=0.05),), (20_000.0,))


@pytest.fixture(scope="module")
def fitted(problem):
    return fit(problem, n_steps=8)


def test_the_fit_finds_the_coefficients_that_made_the_rows(fitted):
    assert fitted["efficiency.linear.simt"] == pytest.approx(-0.25, abs=0.04)
    assert fitted["dram"] == pytest.approx(-0.2, abs=0.03)


def test_what_the_rows_are_silent_about_stays_where_physics_put_it(fitted):
    for name in ("passes.batch_norm", "efficiency.convolution.matrix", "recurrent_step_s"):
        assert fitted[name] == pytest.approx(prior_coefficients()[name])


def test_leaving_rows_out_by_small_steps_meets_the_fit_that_never_saw_them(problem, fitted):
    (block,) = problem.blocks
    left_out = block.tags["device"] == "T4"
    short = fit_without(problem, fitted, problem.jacobian(as_point(fitted)), [left_out])
    weight = 20_000.0 * (~left_out).mean()
    full = fit(Problem((block.take(~left_out),), (weight,)), start=fitted, n_steps=8)
    test = block.take(left_out)
    assert np.abs(residuals(test, short) - residuals(test, full)).max() < 0.01


def test_every_row_is_predicted_by_a_fit_that_did_not_see_its_device(problem, fitted):
    (block,) = problem.blocks
    folds = device_folds(problem.blocks)
    assert [fold.values for fold in folds] == [(name,) for name in DEVICES]
    fits = fit_folds(problem, fitted, folds)
    predicted = held_out(block, folds, fits)
    for fold, coefficients in zip(folds, fits, strict=True):
        rows = block.tags["device"] == fold.values[0]
        assert predicted[rows] == pytest.approx(block.take(rows).predict(coefficients))
    assert np.median(np.abs(predicted / block.observed_s - 1)) < 0.1


def test_family_folds_keep_a_family_together_and_touch_image_models_only():
    images, others = made_block(name="timm train nchw"), made_block(name="gemm")
    folds = family_folds([images, others])
    assert sorted(name for fold in folds for name in fold.values) == sorted(set(images.tags["family"]))
    assert not any(fold.rows(others).any() for fold in folds)


def test_a_part_of_a_block_predicts_as_it_does_in_the_whole():
    block = made_block()
    rows = np.arange(block.n_rows) % 3 == 0
    assert block.take(rows).predict(TRUE) == pytest.approx(block.predict(TRUE)[rows])


def test_a_step_is_never_shorter_than_its_dispatch():
    block = made_block()
    n_ops = np.full(200, 10.0 / find_host("torch-eager").forward_dispatch_s)  # ten seconds of dispatch
    busy = Block(**{**{f: getattr(block, f) for f in Block.__dataclass_fields__}, "n_dispatched": n_ops})
    assert busy.predict(TRUE) == pytest.approx(np.full(200, 10.0))


def test_held_out_errors_give_an_interval_that_holds_eight_of_ten():
    rng = np.random.default_rng(1)
    shares = np.tile([0.5, 0.0, 0.0, 0.0, 0.5], (4000, 1))
    errors = 0.3 * rng.standard_normal(4000)
    found = step_log_sds([errors], [shares], [4000.0], ["same GPU"])["same GPU"]
    sd = np.sqrt(0.076**2 + 0.25 * found["matrix products"] ** 2 + 0.25 * found["other bytes"] ** 2)
    assert np.mean(np.abs(errors) < 1.2816 * sd) == pytest.approx(0.8, abs=0.03)
    assert kernel_log_sd(errors) == pytest.approx(0.3, rel=0.05)


def test_a_generation_that_no_fit_saw_is_never_surer_than_a_gpu_that_was_measured():
    rng = np.random.default_rng(0)
    shares = [np.tile([1.0, 0.0, 0.0, 0.0, 0.0], (2000, 1)) for _ in range(3)]
    errors = [scale * rng.standard_normal(2000) for scale in (0.2, 0.3, 0.1)]
    found = step_log_sds(errors, shares, [1.0] * 3, ["same GPU", "same generation", "new generation"])
    near, middle, far = (found[name]["matrix products"] for name in found)
    assert near < middle == far


def test_shares_of_the_time_add_up():
    shares = group_shares(made_block(), TRUE)
    assert shares.sum(axis=1) == pytest.approx(np.ones(200))
    assert set(NAMES) == set(TRUE.values)


def block_of_every_work():
    """Each kind of work in two widths on each device, its convolutions with and without Winograd."""
    works = np.tile(np.repeat([int(work) for work in Work], 4), 2)
    n = len(works)
    block = made_block(n_rows=n)
    kernels = replace(
        block.kernels,
        work=works,
        item=np.where(np.arange(n) < n / 2, 2, 4),
        is_winograd=(np.arange(n) % 4 < 2) & np.isin(works, (Work.CONVOLUTION, Work.CONVOLUTION_INPUT)),
        is_unaligned=np.arange(n) % 4 == 1,
        sizes=block.kernels.sizes | {"image": block.kernels.sizes["bytes"], "patches_2": np.full(n, 1e4)},
    )
    return replace(block, kernels=kernels)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_slopes_from_the_kernels_that_move_are_those_of_the_whole_block(layout):
    """What is not timed again must not have moved."""
    block = replace(block_of_every_work(), layout=layout)
    point = as_point(TRUE)
    slopes = Problem((block,), (float(block.n_rows),)).jacobian(point)[: block.n_rows]
    before = _robust(residuals(block, TRUE))
    for number, name in enumerate(NAMES):
        moved = point.copy()
        moved[number] += _STEP
        whole = (_robust(residuals(block, as_coefficients(moved))) - before) / _STEP
        assert slopes[:, number] == pytest.approx(whole, abs=1e-9), name


def test_kernels_that_many_rows_run_are_timed_once_and_counted_for_all():
    block = made_block(n_rows=60)
    twice = replace(
        block,
        kernels=block.kernels.select(np.tile(np.arange(60), 2)),
        row=np.tile(block.row, 2),
        count=np.tile(block.count, 2),
        device=np.tile(block.device, 2),
    )
    seconds = twice.kernel_seconds(TRUE)
    assert seconds[60:] == pytest.approx(block.kernel_seconds(TRUE), rel=1e-15)
    assert seconds[:60] == pytest.approx(seconds[60:], rel=0)


def test_several_processes_make_the_same_fits(problem, fitted):
    folds = device_folds(problem.blocks)
    alone = fit_folds(problem, fitted, folds)
    together = fit_folds(replace(problem, n_processes=2), fitted, folds)
    assert [each.values for each in together] == [each.values for each in alone]
    assert at_once(str, [3, 4, 5], 2) == ["3", "4", "5"]
