"""Plans: what they try, how likely they keep their limits, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

import traincast as tc
from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.planning.candidates import candidates
from traincast.planning.offers import all_offers
from traincast.planning.space import Space, places_of, precisions_for

MODEL = "cifar_resnet20"
N_SAMPLES, N_EPOCHS = 50_000, 20
PLAIN = {"n_samples": N_SAMPLES, "n_epochs": N_EPOCHS, "method": "roofline"}


@pytest.fixture(scope="module")
def trace():
    return tc.load_model(MODEL)


@pytest.fixture
def few_offers(monkeypatch):
    """A plan of these alone."""
    listed = {offer.name: offer for offer in all_offers()}

    def use(names):
        monkeypatch.setattr("traincast.planning.offers.all_offers", lambda: tuple(listed[name] for name in names))

    return use


def test_a_choice_is_told_by_the_forecast_of_its_words(trace, few_offers):
    few_offers(["g5.12xlarge"])
    plan = tc.plan(trace, batch_size=256, precision="fp32", max_nodes=2, setup_s=0.0, **PLAIN)
    quick = plan.fastest
    f = tc.forecast(trace, on=quick.place, batch_size=256, precision="fp32", **PLAIN)
    assert quick.total_s == pytest.approx(f.total_s)
    assert quick.cost_usd == pytest.approx(f.cost_usd)
    assert quick.interval("total_s") == pytest.approx(f.interval("total_s"))
    assert quick.forecast.peak_memory_bytes == f.peak_memory_bytes
    assert quick.to_dict()["bound_by"] == f.bound_by
    assert "<th>cheapest</th><td>g5.12xlarge</td>" in plan._repr_html_()
    assert "cheapest Choice(g5.12xlarge: " in repr(plan)


def test_a_batch_that_does_not_fit_is_cut_into_the_fewest_passes_that_do(few_offers):
    few_offers(["g4dn.xlarge"])
    plan = tc.plan("resnet50", n_samples=1_000, batch_size=512, precision="fp32", max_nodes=1, strategy="ddp")
    (choice,) = plan.pareto
    passes = choice.question.accumulation_steps
    assert passes > 1
    assert choice.forecast.fits
    fewer = replace(choice.question, accumulation_steps=passes // 2)
    whole = tc.forecast("resnet50", "T4", 512, accumulation_steps=fewer.accumulation_steps)
    assert not whole.fits


def test_where_ddp_needs_several_passes_fsdp_is_tried_too(few_offers):
    few_offers(["g4dn.12xlarge"])
    fits = tc.plan("resnet18", n_samples=1_000, batch_size=64, precision="fp32", max_nodes=1)
    assert {fits.steps.strategies[n].name for n in fits.steps.strategy} == {"ddp"}
    tight = tc.plan("gpt2", n_samples=1_000, batch_size=64, precision="fp32", optimizer="adamw", max_nodes=1)
    assert {tight.steps.strategies[n].name for n in tight.steps.strategy} == {"ddp", "fsdp"}


def test_machines_that_only_cost_differently_are_timed_once():
    named = {offer.name: offer for offer in all_offers()}
    offers = tuple(named[name] for name in ("g4dn.xlarge", "g4dn.2xlarge", "n1-standard-8+1xT4"))
    alone = places_of(Space(offers=offers, batch_sizes=(64,), max_nodes=1))
    assert [place.offers for place in alone] == [[0, 1, 2]]
    joined = places_of(Space(offers=offers, batch_sizes=(64,), max_nodes=2))
    assert [place.offers for place in joined] == [[0, 1, 2], [0], [1], [2]]  # 5, 10 and 16 Gb/s between them


def test_a_device_is_tried_in_the_precisions_that_it_has_units_for():
    assert precisions_for(find_device("P100-PCIe-16GB"), ()) == ("fp32",)
    assert precisions_for(find_device("T4"), ()) == ("fp32", "amp-fp16")
    assert precisions_for(find_device("A10G"), ()) == ("fp32", "tf32", "amp-bf16")
    assert precisions_for(find_device("T4"), ("amp-bf16",)) == ("amp-bf16",)


def test_spot_costs_less_takes_longer_and_says_how_often_to_save(trace, few_offers):
    few_offers(["g4dn.xlarge"])
    options = {"batch_size": 256, "precision": "fp32", "max_nodes": 1, **PLAIN}
    plan = tc.plan(trace, spot=True, **options)
    on_demand, spot = sorted(plan.pareto, key=lambda choice: choice.is_spot)
    assert spot.total_s > on_demand.total_s
    assert spot.cost_usd < on_demand.cost_usd
    assert spot.checkpoint_interval_s > 0
    assert plan.cheapest.is_spot
    often = tc.plan(trace, spot=True, interruptions_per_day=100.0, **options).cheapest
    assert often.total_s > spot.total_s


def test_the_chance_of_a_spot_run_is_that_of_simulated_runs(trace, few_offers):
    few_offers(["g4dn.xlarge"])
    options = {"batch_size": 256, "precision": "fp32", "max_nodes": 1, "interruptions_per_day": 12.0}
    options |= PLAIN | {"n_epochs": 2000}
    expected_s = tc.plan(trace, spot=True, **options).cheapest.total_s
    plan = tc.plan(trace, spot=True, deadline_s=1.1 * expected_s, confidence=0.5, **options)
    choice = plan.cheapest
    work_s = tc.forecast(trace, on="g4dn.xlarge", batch_size=256, **PLAIN | {"n_epochs": 2000}).total_s
    draw = np.random.default_rng(3)
    steady_s = np.array([_one_run(draw, work_s, choice, plan.terms, 0.0) for _ in range(2_000)])
    assert steady_s.mean() == pytest.approx(expected_s, rel=0.02)  # at the median speed
    finished_s = np.array([_one_run(draw, work_s, choice, plan.terms, choice.forecast.log_sd) for _ in range(2_000)])
    assert (finished_s <= 1.1 * expected_s).mean() == pytest.approx(choice.probability, abs=0.04)


def _one_run(draw, work_s, choice, terms, log_sd):
    """A speed is drawn once, then segments are tried until all of the work is saved."""
    left_s = work_s * math.exp(log_sd * draw.standard_normal())
    time_s, between_s, interval_s = terms.setup_s, 86_400 / 12, choice.checkpoint_interval_s
    while left_s > 0:
        segment_s = min(interval_s, left_s) + terms.checkpoint_s
        until_s = draw.exponential(between_s)
        if until_s >= segment_s:
            time_s, left_s = time_s + segment_s, left_s - interval_s
            continue
        time_s += until_s
        while (until_s := draw.exponential(between_s)) < terms.setup_s:  # a restart that is interrupted itself
            time_s += until_s
        time_s += terms.setup_s
    return time_s


def test_spot_that_cannot_finish_is_never_recommended(trace, few_offers):
    few_offers(["g4dn.xlarge"])
    plan = tc.plan(trace, spot=True, interruptions_per_day=300.0, batch_size=256, max_nodes=1, **PLAIN)
    assert not any(choice.is_spot for choice in (plan.cheapest, plan.fastest, *plan.pareto))
    assert np.isinf(plan.candidates.total_s[plan.candidates.is_spot]).all()
    assert (plan.candidates.probability[plan.candidates.is_spot] == 0).all()


def test_larger_batches_need_more_epochs_where_gradients_have_little_noise(trace, few_offers):
    few_offers(["gpu_8x_v100"])
    options = {"batch_size": 128, "batch_sizes": [128, 4096], "precision": "fp32", **PLAIN}
    free = tc.plan(trace, **options)
    assert free.fastest.question.batch_size == 4096
    assert any("the same number of epochs" in warning for warning in free.warnings)
    dear = tc.plan(trace, noise_scale=64.0, **options)
    assert dear.fastest.question.batch_size == 128
    assert dear.fastest.n_epochs == N_EPOCHS
    big = tc.plan(trace, noise_scale=64.0, **{**options, "batch_sizes": [4096]})
    assert big.fastest.n_epochs == pytest.approx(N_EPOCHS * (64 + 4096) / (64 + 128))


def test_a_loader_that_binds_is_in_the_time_and_in_the_chances(trace, few_offers):
    few_offers(["gpu_8x_v100"])
    plan = tc.plan(trace, batch_size=256, input_samples_per_s=1_000.0, deadline_s=900.0, setup_s=0.0, **PLAIN)
    assert plan.cheapest is None
    assert plan.nearest.total_s == pytest.approx(math.ceil(N_SAMPLES / 256) * N_EPOCHS * 256 / 1_000)
    assert plan.nearest.probability == 0
    rate = 80_000.0  # close to what the devices do: the fast half of the distribution waits
    choice = tc.plan(trace, batch_size=256, precision="fp32", input_samples_per_s=rate, setup_s=0.0, **PLAIN).fastest
    f = tc.forecast(trace, on="gpu_8x_v100", batch_size=256, input_samples_per_s=rate, **PLAIN)
    assert choice.total_s == pytest.approx(f.total_s)
    assert choice.interval("total_s") == pytest.approx(f.interval("total_s"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_samples": 0}, "n_samples cannot be 0"),
        ({"n_epochs": 0}, "n_epochs cannot be 0"),
        ({"target_accuracy": 0.9}, "A target and a curve go together"),
        ({"setup_s": -1.0}, "setup_s cannot be -1.0"),
        ({"interruptions_per_day": -1.0}, "interruptions_per_day cannot be -1.0: give a number of at least 0."),
        ({"checkpoint_bytes_per_s": 0.0}, "checkpoint_bytes_per_s cannot be 0.0"),
        ({"precision": "fp4"}, "precision 'fp4' is not known."),
        ({"strategy": "ddq"}, "No strategy named 'ddq'."),
        ({"max_gpus": 0}, "max_gpus cannot be 0"),
        ({"batch_size": 0}, "0"),
        ({"noise_scale": -1.0, "batch_sizes": [64]}, "A noise scale is a number of samples and should not be below 0"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(trace, options, words):
    with pytest.raises(InputError) as caught:
        tc.plan(trace, **{"n_samples": 100, "provider": "Lambda", **options})
    assert words in str(caught.value)


def test_a_model_that_fits_nowhere_is_told_in_a_sentence(few_offers):
    few_offers(["g4dn.xlarge"])
    with pytest.raises(InputError, match="'gpt2-xl' fits on none of 1 offers with up to 64 devices"):
        tc.plan("gpt2-xl", n_samples=100, batch_size=8, optimizer="adamw", max_nodes=1)


LOG = "epoch,val_accuracy\n" + "\n".join(f"{n},{0.95 - 0.6 * n**-0.7:.4f}" for n in range(1, 31)) + "\n"


def test_a_target_takes_its_epochs_from_an_earlier_run(trace, few_offers, tmp_path):
    few_offers(["g4dn.xlarge"])
    path = tmp_path / "log.csv"
    path.write_text(LOG, encoding="utf-8")
    plan = tc.plan(trace, n_samples=50_000, batch_size=256, target_accuracy=0.9, curve=path, method="roofline")
    assert plan.length.n_epochs == pytest.approx((0.6 / 0.05) ** (1 / 0.7), rel=0.25)  # where the curve is 0.9
    assert 0 < plan.length.probability <= 1
    assert any("epochs reach an accuracy of 0.9" in remark for remark in plan.remarks)
    with pytest.raises(InputError, match="chance to reach an accuracy of"):
        tc.plan(trace, n_samples=50_000, target_accuracy=0.999, curve=path)
    with pytest.raises(InputError, match="above 0 and at most 1"):
        tc.plan(trace, n_samples=50_000, target_accuracy=92, curve=path)


@pytest.mark.parametrize("reached", [0.6, 0.85, 1.0])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.8, 0.95])
def test_the_chance_of_a_target_in_time_counts_runs_that_never_arrive_once(long_plan, share, reached):
    """Simulated: epochs are lognormal, the slowest of them are runs that never arrive, and steps vary beside them."""
    choice, log_sd = long_plan.cheapest, 0.3
    draw = np.random.default_rng(5)
    rank, step = draw.uniform(size=20_000), np.exp(choice.forecast.log_sd * draw.standard_normal(20_000))
    epochs = np.exp(log_sd * ndtri(rank))
    work_s = choice.median_s * np.where(rank < reached, epochs * step, np.inf)
    deadline_s = choice.setup_s + choice.median_s * float(np.exp(log_sd * ndtri(share)))
    length = replace(long_plan.length, epochs_log_sd=log_sd, probability=reached)
    limits = replace(long_plan.limits, deadline_s=deadline_s)
    found = candidates(long_plan.steps, long_plan.space, length, long_plan.terms, limits, None)
    in_time = float((choice.setup_s + work_s <= deadline_s).mean())
    assert found.probability[0] == pytest.approx(in_time, abs=0.03)


@pytest.fixture(scope="module")
def long_plan():
    """Of one candidate, whose start is short beside its steps."""
    listed = {offer.name: offer for offer in all_offers()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("traincast.planning.offers.all_offers", lambda: (listed["g4dn.xlarge"],))
        plan = tc.plan(MODEL, batch_size=256, precision="fp32", max_nodes=1, **PLAIN | {"n_epochs": 2000})
    assert len(plan.candidates) == 1
    return plan


@pytest.mark.parametrize(("spot", "given_"), [(False, None), (True, 2.0)])
def test_own_spot_prices_are_planned_with_where_their_interruptions_are_known(tmp_path, spot, given_):
    """Also where the machine of that price is too small to be chosen."""
    path = tmp_path / "prices.csv"
    path.write_text("offer,device,usd_per_hour,spot_usd_per_hour,date\nbox,K80,0.5,0.2,2026-11-01\n", encoding="utf-8")
    options = {"n_samples": 100, "prices": path, "max_nodes": 1, "provider": "own,AWS", "precision": "fp32"}
    plan = tc.plan("gpt2-xl", batch_size=8, method="roofline", spot=spot, interruptions_per_day=given_, **options)
    assert not any(plan.space.offers[n].name == "box" for n in plan.candidates.offer)
    assert plan.to_dict()["interruptions_per_day"] == ({"AWS": 2.0, "own": 2.0} if spot else None)
    with pytest.raises(InputError, match="How often 'own' reclaims spot machines such as 'box' is not known"):
        tc.plan("gpt2-xl", batch_size=8, method="roofline", spot=True, **options)
