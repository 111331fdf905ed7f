"""Small tables beside the long one: whole answers, published ceilings, the older sets, refits, and the worst rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab.accuracy.modern.asking import Answer
from lab.accuracy.modern.cases import Rooms, older_rows, with_tag
from lab.accuracy.modern.left_out import Case, Evidence, LeftOut, columns_of
from lab.accuracy.modern.ranking import reference_products
from traincast.kernels.coefficients import shipped
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.modern_sets import burst
from traincast.validation.bad_cases import BadRow
from traincast.validation.errors import ErrorSummary, summarise
from traincast.validation.splits import Kind

# Median errors of docs/accuracy.md before any GPU since the A100 was fitted (commit 30afdee): what was left out, and %.
LAST_PAGE: dict[str, tuple[Kind, float]] = {
    "gemm": ("GPU", 10.7),
    "convolution": ("GPU", 14.6),
    "elementwise": ("GPU", 4.0),
    "softmax and layer norm": ("GPU", 10.2),
    "timm train nchw": ("family", 5.4),
    "timm train nhwc": ("family", 7.3),
    "timm inference nchw": ("family", 7.1),
    "timm inference nhwc": ("family", 7.4),
    "transformers fp32": ("GPU", 9.5),
    "nvidia examples fp32": ("GPU", 8.2),
    "nvidia examples tf32": ("GPU", 9.7),
    "nvidia examples amp-fp16": ("GPU", 6.0),
}
MAY_GROW = 0.5  # points


@dataclass(frozen=True, slots=True, kw_only=True)
class Older:
    """A set of the last page, the same rows then and now."""

    name: str
    left_out: str
    summary: ErrorSummary
    before_percent: float

    @property
    def growth_points(self) -> float:
        return 100 * self.summary.median_absolute_fraction - self.before_percent


def older_sets(rooms: Rooms, evidence: Evidence) -> Iterator[Older]:
    for name, (left_out, before) in LAST_PAGE.items():
        if name not in rooms.blocks:
            continue
        block = rooms.blocks[name]
        scored = block.take(~block.tags["is_floor"]) if "is_floor" in block.tags else older_rows(block)
        found = summarise(evidence.seconds(scored, left_out), scored.observed_s, evidence.log_sd(scored, left_out))
        yield Older(name=name, left_out=left_out, summary=found, before_percent=before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Language models of one GPU by the fit that ships: kernels alone, and all that `tc.forecast` answers."""

    what: str
    kernels: ErrorSummary
    whole: ErrorSummary


def whole_answers(rooms: Rooms, evidence: Evidence, answers: Sequence[Answer]) -> Iterator[Whole]:
    told = [answer for answer in answers if not answer.refused]
    blocks = rooms.named("language models")
    for device in sorted({str(answer.row.device_name) for answer in told}):
        for recompute, words in (("none", "nothing recomputed"), ("full", "recomputed")):
            own = [with_tag(with_tag(b, "device", device), "recompute", recompute) for b in blocks]
            some = [a for a in told if a.row.device_name == device and a.row.recompute == recompute]
            if some:
                yield Whole(
                    what=f"{device}, {words}",
                    kernels=_of_blocks([block for block in own if block.n_rows], evidence),
                    whole=summarise(
                        np.array([a.step_s for a in some]),
                        np.array([a.row.step_s for a in some]),
                        np.array([a.log_sd for a in some]),
                    ),
                )


def _of_blocks(blocks: Sequence[Block], evidence: Evidence) -> ErrorSummary:
    return summarise(*columns_of(Case(what="", blocks=tuple(blocks), left_out="nothing"), evidence))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The fastest product that was found on a GPU."""

    device: str
    precision: str
    shape: str
    observed_flop_per_s: float
    errors: Mapping[str, float]  # by what was left out
    fastest_flop_per_s: float  # of the forecasts for our reference products, timed alike: no more than the measured one


def ceilings_of(rooms: Rooms, evidence: Evidence) -> Iterator[Ceiling]:
    kinds: tuple[LeftOut, ...] = ("nothing", "source", "generation")
    for block in rooms.named("product ceilings"):
        seconds = {kind: evidence.seconds(block, kind) for kind in kinds}
        flop = np.bincount(block.row, weights=block.kernels.sizes["flop"], minlength=block.n_rows)
        for row in range(block.n_rows):
            yield Ceiling(
                device=str(block.tags["device"][row]),
                precision=str(block.tags["precision"][row]),
                shape=str(block.tags["shape"][row]),
                observed_flop_per_s=float(flop[row] / block.observed_s[row]),
                errors={kind: float(seconds[kind][row] / block.observed_s[row] - 1.0) for kind in kinds},
                fastest_flop_per_s=_fastest(str(block.tags["device"][row]), str(block.tags["precision"][row])),
            )


def _fastest(device: str, precision: str) -> float:
    block = burst(reference_products(device, precision))
    return float(np.max(block.kernels.sizes["flop"] / block.predict(shipped().coefficients)))


_NAMES = ("family", "model", "kernel", "direction", "precision", "seqlen", "recompute", "batch", "shape")


def worst_of(cases: Sequence[Case], evidence: Evidence, *, most: int = 10, most_a_set: int = 2) -> list[BadRow]:
    """The rows furthest off, twice as slow as bad as twice as fast; a few a set, since bad rows come in swarms."""
    found: dict[str, dict[str, BadRow]] = {}
    for case in cases:
        for block in case.blocks:
            for each in _far_rows(block, case, evidence, most_a_set):
                found.setdefault(block.name, {}).setdefault(f"{each.row} {each.observed_s}", each)
    kept = [row for rows in found.values() for row in sorted(rows.values(), key=_nearness)[:most_a_set]]
    return sorted(kept, key=_nearness)[:most]


def _nearness(row: BadRow) -> float:
    return -abs(float(np.log(row.predicted_s / row.observed_s)))


def _far_rows(block: Block, case: Case, evidence: Evidence, most: int) -> Iterator[BadRow]:
    predicted_s = evidence.seconds(block, case.left_out)
    off = np.nan_to_num(np.abs(np.log(predicted_s / block.observed_s)))
    for row in [row for row in np.argsort(-off)[:most].tolist() if off[row] > 0]:
        yield BadRow(
            set_name=f"{block.name}, {case.told or case.left_out} left out",
            row=_row_name(block, row),
            observed_s=float(block.observed_s[row]),
            predicted_s=float(predicted_s[row]),
        )


def _row_name(block: Block, row: int) -> str:
    words = [str(block.tags[key][row]).replace('"', "") for key in _NAMES if key in block.tags]
    return ", ".join([*(word for word in words if word), str(block.tags["device"][row])])
