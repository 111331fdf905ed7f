"""What to rent for a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from traincast.api.models import trace_of
from traincast.errors import InputError, ParameterError
from traincast.options import catalog as o
from traincast.options.question import question
from traincast.units import shown_or_never

if TYPE_CHECKING:
    from pathlib import Path

    from traincast.hardware.machines import Machine
    from traincast.logs.log import Log
    from traincast.planning.candidates import Length, Terms
    from traincast.planning.plan import Plan
    from traincast.planning.space import Run
    from traincast.trace.trace import Trace

USUAL_BATCH = 256
SETUP_S = 300.0  # until the first step: a guess
CHECKPOINT_BYTES_PER_S = 125 * 2**20  # what a gp3 disk of AWS writes unless one pays for more
_OLD_DAYS = 365
_ONLY_SPOT = "only spot machines are interrupted and write checkpoints, so ask for spot machines, too"


@question
def plan(
    model: o.Model,
    *,
    n_samples: o.NeededSamples,
    n_epochs: o.NEpochs = 1,
    deadline_s: o.DeadlineS = None,
    budget_usd: o.BudgetUsd = None,
    confidence: o.Confidence = 0.8,
    target_accuracy: o.TargetAccuracy = None,
    curve: o.Curve = None,
    batch_size: o.FixedBatch = None,
    batch_sizes: o.BatchChoices = None,
    noise_scale: o.NoiseScale = None,
    precision: o.Precisions = None,
    optimizer: o.Optimizer = None,
    strategy: o.Strategies = None,
    provider: o.Providers = None,
    on: o.OfferedOn = None,
    spot: o.Spot = False,
    prices: o.Prices = None,
    max_gpus: o.MaxGpus = 64,
    max_nodes: o.MaxNodes = 8,
    setup_s: o.SetupS = SETUP_S,
    interruptions_per_day: o.InterruptionsPerDay = None,
    checkpoint_bytes_per_s: o.CheckpointBytesPerS = CHECKPOINT_BYTES_PER_S,
    **options: Unpack[o.PlanOptions],
) -> Plan:
    """What to rent: every offer, number of machines, batch, precision and strategy is timed and priced.

    The answer has the front of time and cost (`pareto`), the `cheapest` and the `fastest` plan that keep `deadline_s`
    and `budget_usd` with a probability of at least `confidence` (None where nothing does: `nearest` comes closest),
    and `price_dates`. `batch_size` is global and stays fixed unless `batch_sizes` allows others; with Pollux'
    `noise_scale` (in samples) these need more epochs. `target_accuracy` with the log of an earlier run (`curve`) takes
    the place of `n_epochs`. None for `precision`: fp32 and what a device's units speed up; for `strategy`: ddp, and
    fsdp where that does not fit in one pass. `on` compares only offers of these devices ("A100-SXM4-80GB"; "8xT4": of
    machines with eight) or machines ("p3.16xlarge"), `provider` only those of these providers. `spot` adds
    spot prices, with interruptions (per machine and day) and checkpoints. `prices` is a CSV file of your own prices.
    Other options are those of `forecast`.
    """
    from traincast.planning.pareto import Limits
    from traincast.planning.search import make_plan
    from traincast.planning.space import Space
    from traincast.scaling.strategy import find_strategy

    if options["mode"] == "inference":
        strategy = _of_inference(strategy, target_accuracy)
    limits = Limits(deadline_s=deadline_s, budget_usd=budget_usd, confidence=confidence)
    offers, remarks, warnings = _offers(_names(provider), _names(on), prices, options["devices"])
    usual = batch_size if batch_size is not None else (batch_sizes[0] if batch_sizes else USUAL_BATCH)
    space = Space(
        offers=offers,
        batch_sizes=tuple(batch_sizes or (usual,)),
        precisions=_precisions(precision),
        strategies=tuple(find_strategy(name) for name in _names(strategy) or ("ddp",)),
        fallback=find_strategy("fsdp") if strategy is None else None,
        max_devices=max_gpus,
        max_nodes=max_nodes,
        devices_file=options["devices"],
    )
    length, told = _length(n_samples, n_epochs, usual, noise_scale, target_accuracy, curve)
    if noise_scale is not None and noise_scale >= 0 and set(space.batch_sizes) == {usual}:
        raise ParameterError("noise_scale", noise_scale, "give several batch sizes to choose from, too")
    _check_spot(spot, interruptions_per_day, checkpoint_bytes_per_s)
    run = _run(model, optimizer, options)
    terms = _terms(run, spot, setup_s, interruptions_per_day, checkpoint_bytes_per_s, offers)
    remarks += told
    if batch_size is None and not batch_sizes:
        remarks.append(f"No batch size was given: {USUAL_BATCH} samples per update are assumed.")
    if len(space.batch_sizes) > 1 and noise_scale is None:
        warnings.append(
            "All batch sizes are assumed to need the same number of epochs; give a noise scale to model how "
            "many more larger ones need."
        )
    found = make_plan(run, space, length, terms, limits)
    return replace(found, remarks=tuple(remarks), warnings=tuple(warnings))


def _of_inference(strategy: str | Sequence[str] | None, target_accuracy: float | None) -> str:
    """Devices that predict side by side need no strategy, and learn nothing."""
    if target_accuracy is not None:
        raise InputError("Inference reaches no target, as it learns nothing: give the epochs instead.")
    others = [name for name in _names(strategy) if name != "ddp"]
    if others:
        raise InputError(f"Inference is modelled with a whole model on every device: leave '{others[0]}' out.")
    return "ddp"


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """One name, or several with commas between them or in a list."""
    if given is None:
        return ()
    listed = [given] if isinstance(given, str) else given
    return tuple(dict.fromkeys(part.strip() for one in listed for part in one.split(",")))


def _precisions(given: str | Sequence[str] | None) -> tuple[str, ...]:
    from traincast.trace.settings import FORECAST_PRECISIONS, check_choice

    names = _names(given)
    for name in names:
        check_choice("precision", name, FORECAST_PRECISIONS)
    return names


def _run(model: str | Path | Trace, optimizer: str | None, options: Mapping[str, Any]) -> Run:
    """The model comes last: it may have to be captured."""
    from traincast.hardware.host import DEFAULT_HOST, find_host
    from traincast.kernels.methods import make_method
    from traincast.planning.space import Run

    method = make_method(
        options["method"], layout=options["layout"], ppp=options["ppp"], weights=options["layer_weights"]
    )
    host = find_host(options["host"] or DEFAULT_HOST)
    trace = trace_of(model, options, optimizer=optimizer)
    return Run(
        trace=trace,
        settings=trace.defaults.chosen({**options, "optimizer": optimizer}),
        method=method,
        host=host,
        compiled=options["compiled"] or options["stack"] == "torch-compile",
        compile_mode=options["compile_mode"],
        input_samples_per_s=options["input_samples_per_s"],
    )


def _offers(
    providers: tuple[str, ...], places: tuple[str, ...], prices: str | Path | None, devices: str | Path | None
) -> tuple[tuple[Machine, ...], list[str], list[str]]:
    """Those that can be rented today, with the user's own prices; a remark and a warning on what is left out."""
    from traincast.planning.offers import all_offers, offers_of, offers_on, replaced
    from traincast.planning.price_file import read_prices

    own = () if prices is None else read_prices(prices, devices_file=devices)
    listed = offers_on(offers_of(replaced(all_offers(), own), providers), places)
    found = tuple(offer for offer in listed if not offer.is_retired)
    n_retired = len(listed) - len(found)
    told = [f"{n_retired} offers that are missing from newer catalogues are left out."] if n_retired else []
    old, warnings = _old(found), []
    if old:
        whose = ", ".join(sorted({offer.provider for offer in old}))
        warnings.append(
            f"Prices of {whose} are more than a year older than the newest ones: the spot prices of these {len(old)} "
            "offers are left out."
        )
    return tuple(replace(offer, spot_usd_per_hour=None) if offer in old else offer for offer in found), told, warnings


def _length(
    n_samples: int,
    n_epochs: int,
    usual: int,
    noise_scale: float | None,
    target_accuracy: float | None,
    curve: Log | str | Path | None,
) -> tuple[Length, list[str]]:
    from traincast.hardware.cluster import check_count
    from traincast.planning.candidates import Length

    check_count(n_samples, "The number of samples")
    check_count(n_epochs, "The number of epochs")
    if (target_accuracy is None) != (curve is None):
        missing = "curve, the log of an earlier run" if curve is None else "target_accuracy"
        raise InputError(f"A target and a curve go together: give {missing}, too.")
    if target_accuracy is not None and n_epochs != 1:
        raise InputError(
            f"A target accuracy replaces the number of epochs, but both were given ({target_accuracy:g} and "
            f"{n_epochs:,} epochs): leave one out."
        )
    if target_accuracy is None or curve is None:
        return Length(n_samples=n_samples, n_epochs=n_epochs, at_batch=usual, noise_scale=noise_scale), []
    epochs, log_sd, probability, told = _epochs_to(target_accuracy, curve, usual / n_samples)
    length = Length(
        n_samples=n_samples,
        n_epochs=epochs,
        at_batch=usual,
        noise_scale=noise_scale,
        epochs_log_sd=log_sd,
        probability=probability,
    )
    return length, told


def _epochs_to(target: float, curve: Log | str | Path, epochs_per_step: float) -> tuple[float, float, float, list[str]]:
    """Epochs to an accuracy by an earlier run's curve: the median, how sure it is, and whether it gets there at all."""
    import math

    from traincast.api.converging import converge
    from traincast.lognormal import log_sd_of

    if not 0 < target <= 1:
        raise InputError(f"A target accuracy should be above 0 and at most 1, such as 0.92, not {target:g}.")
    status = converge(curve, metric="accuracy", target=target)
    assert status.arrival is not None  # a target was asked for, and converge raises where there are too few points
    factor = 1.0 if status.unit == "epoch" else epochs_per_step
    found = status.arrival.epochs or status.arrival.steps.times(factor)
    if not math.isfinite(found.p50):
        share = f"{100 * status.arrival.probability:.0f} %"
        raise InputError(
            f"According to its curve this run has only a {share} chance to reach an accuracy of {target:g}: "
            "no plan can be made."
        )
    # Where a tenth never gets there, the lower half tells how wide the distribution is.
    log_sd = log_sd_of(found.p10, found.p90 if math.isfinite(found.p90) else found.p50**2 / found.p10)
    spread = f"p10 {found.p10:.3g}, p90 {shown_or_never(found.p90, '{:.3g}'.format)}"
    told = f"According to the log's curve, {found.p50:.3g} epochs reach an accuracy of {target:g} ({spread})."
    return found.p50, log_sd, status.arrival.probability, [told]


def _terms(
    run: Run,
    spot: bool,
    setup_s: float,
    interruptions_per_day: float | None,
    checkpoint_bytes_per_s: float,
    offers: tuple[Machine, ...],
) -> Terms:
    from traincast.planning.candidates import Terms
    from traincast.planning.offers import interruptions_per_day as assumed
    from traincast.planning.saved_state import checkpoint_bytes
    from traincast.trace.lowering.lower import lower

    graph = lower(run.trace, target="cuda", settings=replace(run.settings, precision="fp32"))
    per_day = dict(assumed())
    if interruptions_per_day is not None:
        per_day = dict.fromkeys((offer.provider for offer in offers), interruptions_per_day)
    return Terms(
        with_spot=spot,
        setup_s=setup_s,
        checkpoint_bytes=checkpoint_bytes(graph),
        checkpoint_bytes_per_s=checkpoint_bytes_per_s,
        per_day=per_day,
    )


def _check_spot(spot: bool, interruptions_per_day: float | None, checkpoint_bytes_per_s: float) -> None:
    """Before a model is captured, which may take long."""
    if not spot and interruptions_per_day is not None:
        raise ParameterError("interruptions_per_day", interruptions_per_day, _ONLY_SPOT)
    if not spot and checkpoint_bytes_per_s != CHECKPOINT_BYTES_PER_S:
        raise ParameterError("checkpoint_bytes_per_s", checkpoint_bytes_per_s, _ONLY_SPOT)


def _old(offers: tuple[Machine, ...]) -> list[Machine]:
    """Whose price has not been looked up for a year, counted from the newest. Spot prices are worth nothing by then."""
    import datetime

    days = {offer.name: datetime.date.fromisoformat(offer.price_date) for offer in offers}
    newest = max(days.values(), default=None)
    return [] if newest is None else [one for one in offers if (newest - days[one.name]).days > _OLD_DAYS]
