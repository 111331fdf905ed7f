"""The plan of docs/paper_scale.md: stages that fit, and totals that add up."""

import importlib
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def plans():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("paper_scale_plan")


def test_stages_that_err_together_add_up_end_by_end(plans):
    parts = [plans.Range(1.0, 2.0, 4.0), plans.Range(10.0, 20.0, 40.0)]
    assert plans.together(parts) == plans.Range(11.0, 22.0, 44.0)


def test_a_stage_costs_the_hours_of_all_machines_and_keeps_its_order(plans):
    one = plans.plan(plans.IMAGENET.stages[0], "8xp3.16xlarge")
    hours = one.total_s.middle / 3600
    assert one.gpu_hours.middle == pytest.approx(64 * hours)
    assert one.cost_usd.middle == pytest.approx(8 * 24.48 * hours)
    assert one.total_s.low < one.total_s.middle < one.total_s.high


def test_scoring_ten_times_the_images_takes_ten_times_as_long(plans):
    few, many = (
        plans.plan(plans.replace(plans.BILLION.stages[1], n_images=64 * 128 * n), "8xp4d.24xlarge") for n in (10, 100)
    )
    assert many.total_s.middle == pytest.approx(10 * few.total_s.middle)
    assert few.forecast.question.trace.mode == "inference"


def test_a_batch_that_memory_cannot_hold_is_split_into_passes(plans):
    teacher = plans.replace(plans.BILLION.stages[0], batch_size=64 * 96)
    one = plans.plan(teacher, "16xg4dn.12xlarge")
    assert one.forecast.fits
    assert one.forecast.question.accumulation_steps > 1
    assert one.forecast.question.micro_batch_size * one.forecast.question.accumulation_steps == 96


def test_every_stage_of_every_job_fits_on_every_cluster_and_is_on_the_page(plans):
    page = (ROOT / "docs" / "paper_scale.md").read_text(encoding="utf-8")
    for on in plans.CLUSTERS:
        assert f"`{on}`" in page
        for stage in dict.fromkeys(stage for job in plans.JOBS for stage in job.stages):
            assert plans.plan(stage, on).forecast.fits
            assert f"| {stage.name} |" in page
