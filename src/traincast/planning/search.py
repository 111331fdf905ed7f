"""From a run and a space to a plan: steps, prices, the front, and what to recommend."""

from __future__ import annotations

import numpy as np

from traincast.errors import InputError
from traincast.planning.candidates import Candidates, Length, Terms, candidates
from traincast.planning.pareto import Limits, cheapest, fastest, front, nearest
from traincast.planning.plan import Choice, Plan
from traincast.planning.space import Run, Space, places_of
from traincast.planning.steps import StepTable, step_table


def make_plan(run: Run, space: Space, length: Length, terms: Terms, limits: Limits) -> Plan:
    """The best of all candidates. Raises where the model fits nowhere."""
    _check_interruptions(space, terms)
    places = places_of(space)
    if not places:
        raise InputError(f"No offer has {space.max_devices} devices or fewer: raise the largest number of devices.")
    steps = step_table(run, space, places)
    if not len(steps):
        raise InputError(_fits_nowhere(run, space))
    found = candidates(steps, space, length, terms, limits, run.input_samples_per_s)
    if not len(found):
        raise InputError("None of the offers has a price of the requested kind.")
    made = _Maker(run, space, steps, found, length, terms)
    is_kept = found.probability >= limits.confidence
    best = cheapest(found.total_s, found.cost_usd, is_kept)
    quick = fastest(found.total_s, found.cost_usd, is_kept)
    near = nearest(found.total_s, limits.time_s(found.usd_per_hour), found.probability) if best is None else None
    return Plan(
        model=run.trace.name,
        optimizer=run.settings.optimizer,
        length=length,
        limits=limits,
        terms=terms,
        pareto=tuple(made.choice(int(number)) for number in front(found.total_s, found.cost_usd)),
        cheapest=None if best is None else made.choice(best),
        fastest=None if quick is None else made.choice(quick),
        nearest=None if near is None else made.choice(near),
        space=space,
        steps=steps,
        candidates=found,
    )


class _Maker:
    """Turns the number of a candidate into a choice."""

    def __init__(
        self, run: Run, space: Space, steps: StepTable, found: Candidates, length: Length, terms: Terms
    ) -> None:
        self.run, self.space, self.steps, self.found = run, space, steps, found
        self.length, self.terms = length, terms

    def choice(self, number: int) -> Choice:
        found, steps = self.found, self.steps
        row, offer = int(found.row[number]), self.space.offers[int(found.offer[number])]
        place, batch_size = steps.places[steps.place[row]], int(steps.batch_size[row])
        n_steps = float(self.length.n_steps(np.array([batch_size]))[0])
        question = self.run.question(
            place.device,
            steps.precisions[steps.precision[row]],
            batch_size,
            cluster=offer.cluster(place.n_nodes, devices_file=self.space.devices_file),
            strategy=steps.strategies[steps.strategy[row]],
            n_passes=int(steps.n_passes[row]),
        )
        is_spot = bool(found.is_spot[number])
        return Choice(
            offer=offer,
            question=question,
            is_spot=is_spot,
            usd_per_hour=float(found.usd_per_hour[number]),
            total_s=float(found.total_s[number]),
            median_s=float(found.median_s[number]),
            log_sd=float(found.log_sd[number]),
            least_s=float(found.least_s[number]),
            setup_s=self.terms.setup_s,
            probability=float(found.probability[number]),
            n_epochs=n_steps / float(np.ceil(self.length.n_samples / batch_size)),
            checkpoint_interval_s=float(found.interval_s[number]) if is_spot else None,
            n_interruptions=float(found.n_interruptions[number]),
        )


def _check_interruptions(space: Space, terms: Terms) -> None:
    """Of every offer with a spot price it has to be known how often it is taken back, whether or not it is chosen."""
    for offer in space.offers if terms.with_spot else ():
        if offer.spot_usd_per_hour is not None and offer.provider not in terms.per_day:
            raise InputError(
                f"How often '{offer.provider}' reclaims spot machines such as '{offer.name}' is not known: give "
                "interruptions_per_day."
            )


def _fits_nowhere(run: Run, space: Space) -> str:
    batches = ", ".join(f"{size:,}" for size in space.batch_sizes[:3])
    names = " or ".join(strategy.name for strategy in space.all_strategies)
    return (
        f"'{run.trace.name}' fits on none of {len(space.offers)} offers with up to {space.max_devices} devices at a "
        f"batch of {batches} ({names}): try a smaller batch, the strategy fsdp, more devices or an amp precision."
    )
