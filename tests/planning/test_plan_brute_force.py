"""Plans against brute force: every choice as a forecast of its own, and the best of them by a plain loop."""

import math
from dataclasses import dataclass
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import traincast as tc
from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.planning.offers import all_offers, interruptions_per_day
from traincast.planning.space import precisions_for
from traincast.planning.spot import spot_time

N_SAMPLES, N_EPOCHS, SETUP_S = 500_000, 4, 300.0
# One device and several, with and without a network, with and without a spot price, of 15 to 39 GiB.
NAMES = ("g4dn.xlarge", "g4dn.12xlarge", "g5.12xlarge", "n1-standard-8+1xP100", "a2-highgpu-2g", "1x_RTX3090_SECURE")
OFFERS = {offer.name: offer for offer in all_offers()}


@cache
def trace_of(model):
    """One that fits everywhere, and one whose weights, states and buckets are more than a T4 has."""
    if model == "small":
        return tc.load_model("cifar_resnet20")
    torch = pytest.importorskip("torch")
    with torch.device("meta"):
        layers = [torch.nn.Linear(17_000, 17_000, bias=False) for _ in range(3)]
    return tc.capture(torch.nn.Sequential(*layers), lambda n: torch.zeros(n, 17_000), optimizer="adamw")


@dataclass(frozen=True)
class Asked:
    """What a plan is asked besides its model."""

    names: tuple[str, ...]
    batches: tuple[int, ...]
    precisions: tuple[str, ...] | None
    strategies: tuple[str, ...] | None
    method: str
    spot: bool
    deadline_s: float
    budget_usd: float


ASKED = st.builds(
    Asked,
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple),
    batches=st.lists(st.sampled_from([96, 256, 1024, 65_536]), min_size=1, max_size=2, unique=True).map(tuple),
    precisions=st.sampled_from([None, ("fp32",), ("fp32", "amp-fp16")]),
    strategies=st.sampled_from([None, ("ddp",), ("fsdp",), ("ddp", "zero1")]),
    method=st.sampled_from(["traincast", "roofline"]),
    spot=st.booleans(),
    deadline_s=st.floats(600, 100_000),
    budget_usd=st.floats(0.2, 60),
)


@dataclass(frozen=True)
class Plain:
    """A choice as the loop sees it."""

    total_s: float
    cost_usd: float
    probability: float


def best_forecast(trace, cluster, batch, precision, strategy, method):
    """With the fewest passes of 1, 2, 4 ... that share the batch and fit; None where it fits in none."""
    passes = 1
    while batch % passes == 0 and batch >= passes * cluster.n_devices:
        options = {"precision": precision, "strategy": strategy, "accumulation_steps": passes, "method": method}
        f = tc.forecast(trace, cluster, batch, n_samples=N_SAMPLES, n_epochs=N_EPOCHS, **options)
        if f.fits:
            return f
        passes *= 2
    return None


def forecasts_of(trace, asked, cluster, batch, precision):
    """By every strategy that was asked for; by default ddp, and fsdp beside it where ddp needs more than one pass."""
    tried = asked.strategies or ("ddp",)
    if cluster.n_devices == 1:
        tried = tried[:1]
    found = [best_forecast(trace, cluster, batch, precision, name, asked.method) for name in tried]
    is_at_once = found[0] is not None and found[0].question.accumulation_steps == 1
    if asked.strategies is None and cluster.n_devices > 1 and not is_at_once:
        found.append(best_forecast(trace, cluster, batch, precision, "fsdp", asked.method))
    return [f for f in found if f is not None]


def priced(f, asked, price, between_s=None, checkpoint_s=0.0):
    """The run at a price an hour; with interruptions so far apart on average, if it is a spot machine."""
    median_s, variance, mean_s = f.total_s, f.log_sd**2, f.total_s
    if between_s is not None:
        spot = spot_time(f.total_s, checkpoint_s=checkpoint_s, restart_s=SETUP_S, between_s=between_s)
        if checkpoint_s + SETUP_S >= between_s:
            return Plain(math.inf, math.inf, 0.0)
        mean_s = float(spot.mean_s)
        own = math.log1p(float(spot.variance_s2) / mean_s**2)
        median_s, variance = mean_s * math.exp(-own / 2), variance + own
    limit_s = min(asked.deadline_s, 3600 * asked.budget_usd / price) - SETUP_S
    distance = math.log(limit_s / median_s) / math.sqrt(variance) if limit_s > 0 else -math.inf
    total_s = SETUP_S + mean_s
    return Plain(total_s, price * total_s / 3600, 0.5 * (1 + math.erf(distance / math.sqrt(2))))


def brute_force(trace, asked, checkpoint_s):
    found = []
    for name in asked.names:
        offer = OFFERS[name]
        for n_nodes in (1, 2) if offer.network is not None else (1,):
            cluster = offer.cluster(n_nodes)
            for precision in asked.precisions or precisions_for(find_device(offer.device), ()):
                for batch in asked.batches:
                    for f in forecasts_of(trace, asked, cluster, batch, precision):
                        found.append(priced(f, asked, n_nodes * offer.price_usd_per_hour))
                        if asked.spot and offer.spot_usd_per_hour is not None:
                            between_s = 86_400 / (n_nodes * interruptions_per_day()[offer.provider])
                            price = n_nodes * offer.spot_usd_per_hour
                            found.append(priced(f, asked, price, between_s, checkpoint_s))
    return found


def planned(trace, asked):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("traincast.planning.offers.all_offers", lambda: tuple(OFFERS[name] for name in asked.names))
        return tc.plan(
            trace,
            n_samples=N_SAMPLES,
            n_epochs=N_EPOCHS,
            deadline_s=asked.deadline_s,
            budget_usd=asked.budget_usd,
            confidence=0.8,
            batch_sizes=asked.batches,
            precision=asked.precisions,
            strategy=asked.strategies,
            method=asked.method,
            spot=asked.spot,
            setup_s=SETUP_S,
            max_nodes=2,
        )


def beats(one, other):
    """Is nowhere worse, and somewhere better."""
    pairs = ((one.total_s, other.total_s), (one.cost_usd, other.cost_usd))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


@settings(max_examples=40)
@given(model=st.sampled_from(["small", "wide", "wide"]), asked=ASKED)
def test_a_plan_is_the_best_of_all_forecasts(model, asked):
    trace = trace_of(model)
    if not brute_force(trace, asked, 0.0):
        with pytest.raises(InputError, match="fits on none of"):
            planned(trace, asked)
        return
    plan = planned(trace, asked)
    expected = brute_force(trace, asked, plan.terms.checkpoint_s)
    assert len(plan.candidates) == len(expected)
    finite = [one for one in expected if math.isfinite(one.total_s)]
    best = [one for one in finite if not any(beats(other, one) for other in finite)]
    assert [choice.total_s for choice in plan.pareto] == pytest.approx(sorted({one.total_s for one in best}))
    kept = [one for one in finite if one.probability >= 0.8]
    if not kept:
        assert (plan.cheapest, plan.fastest) == (None, None)
        assert plan.nearest.probability == pytest.approx(max(one.probability for one in finite), abs=1e-9)
    else:
        assert plan.cheapest.cost_usd == pytest.approx(min(one.cost_usd for one in kept))
        assert plan.fastest.total_s == pytest.approx(min(one.total_s for one in kept))
        assert plan.nearest is None


def test_the_random_problems_have_passes_sharding_and_what_does_not_fit():
    """What the comparison above is worth: its wide model needs several passes, sharding, or more memory."""
    small, large = OFFERS["g4dn.12xlarge"].cluster(), OFFERS["g5.12xlarge"].cluster()
    trace = trace_of("wide")
    assert best_forecast(trace, small, 96, "fp32", "ddp", "roofline") is None
    assert best_forecast(trace, small, 96, "fp32", "fsdp", "roofline") is not None
    cut = best_forecast(trace, large, 65_536, "fp32", "ddp", "roofline")
    assert cut.question.accumulation_steps > 1
