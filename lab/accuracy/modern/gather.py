"""Everything that the section on today's GPUs is made of, from the measurements, the traces and the fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.accuracy.modern.asking import Answer, ask_all
from lab.accuracy.modern.cases import A100, H100, Rooms
from lab.accuracy.modern.left_out import Evidence
from lab.accuracy.modern.repeats import Repeats, kernel_repeats, language_repeats, repeats_of, software_repeats
from traincast.kernels.coefficients import shipped
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.modern.e2e_files import image_rows
from traincast.kernels.refit.modern.kernel_files import kernel_rows
from traincast.kernels.refit.modern.kernel_row import KernelRow, ask_anyway, askable, block_of
from traincast.kernels.refit.modern.language_blocks import is_teaching
from traincast.kernels.refit.modern.language_files import language_rows
from traincast.kernels.refit.modern.language_row import LanguageRow
from traincast.kernels.refit.modern.product_files import MISC, XLA
from traincast.kernels.refit.modern_sets import burst
from traincast.validation.blocks import Blocks, load_blocks, load_model_block
from traincast.validation.fits import load_fits, load_real_fits, problem_of
from traincast.validation.splits import Split, splits_of, wide_splits_of

# What a shortcut may hide most where the fold is large: these are also fitted anew.
REFITTED = (
    Split("generation", ("Hopper",)),
    Split("generation", ("Blackwell",)),
    Split("generation", ("Ampere",)),
    Split("source", ("llm-foundry",)),
)
_REFIT_STEPS = 4


@dataclass(frozen=True, eq=False, slots=True)
class Gathered:
    """Blocks, fits without each split, and the whole forecasts of language models with the fit that ships."""

    rooms: Rooms
    evidence: Evidence
    answers: tuple[Answer, ...]


def gather(data: Path, traces: Path, *, are_refitted: bool = True, n_processes: int = 1) -> Gathered:
    """Minutes at the first call; fits and blocks are kept beside the traces. Refits take some minutes each."""
    blocks = load_blocks(data, traces)
    return gathered_from(blocks, data, traces, are_refitted=are_refitted, n_processes=n_processes)


def gathered_from(blocks: Blocks, data: Path, traces: Path, *, are_refitted: bool, n_processes: int = 1) -> Gathered:
    problem = problem_of(blocks, n_processes)
    splits = [*wide_splits_of(blocks.all), *splits_of(blocks.all)]
    fits = load_fits(problem, splits, traces)
    chosen = [split for split in REFITTED if split in splits] if are_refitted else []
    refits = dict(zip(chosen, load_real_fits(problem, chosen, traces, n_steps=_REFIT_STEPS), strict=True))
    evidence = Evidence(shipped(), tuple(splits), tuple(fits), refits)
    answers = ask_all([row for row in _language(data) if row.source in ("llm-foundry", "internevo")], traces)
    return Gathered(rooms_of(blocks, data, traces), evidence, tuple(answers))


def rooms_of(blocks: Blocks, data: Path, traces: Path) -> Rooms:
    every = [*blocks.all, *_scored_only(data, traces)]
    return Rooms({block.name: block for block in every}, noise_by_kind(data, blocks.all))


def _scored_only(data: Path, traces: Path) -> Iterator[Block]:
    """Rows that no fit takes in: grouped products, DeepGEMM's, and image models under a newer PyTorch."""
    rows = kernel_rows(data)[MISC]
    grouped = [row for row in askable(rows) if row.device_name == "B200"]
    if grouped:
        yield burst(block_of("grouped products B200", grouped))
    eight_bit = [row for row in ask_anyway(rows) if row.precision == "fp8"]
    if eight_bit:
        yield burst(block_of("products fp8 H800", eight_bit))
    steps = [row.step for row in image_rows(data) if row.set_name == "eager nchw, PyTorch 2.9"]
    if steps:
        yield load_model_block("timm inference RTX-4090 nchw, PyTorch 2.9", steps, traces)[0]


def _language(data: Path) -> list[LanguageRow]:
    """Whole steps on one node, all settings told: those that the blocks hold."""
    return [row for rows in language_rows(data).values() for row in rows if is_teaching(row)]


def noise_by_kind(data: Path, blocks: Sequence[Block]) -> dict[str, str]:
    """How far repeats are apart, in words, where something was measured twice."""
    kernels, rows = kernel_rows(data), _language(data)
    attention = [row for file in kernels.values() for row in file if row.kernel == "attention"]
    found: dict[str, Repeats | None] = {
        f"language {device}": language_repeats(device, [row for row in rows if row.device_name == device])
        for device in (A100, H100)
    }
    found["attention"] = kernel_repeats("attention", attention)
    found["timm"] = software_repeats(image_rows(data))
    words = {kind: _words(each) for kind, each in found.items() if each is not None}
    if three := _three_types(kernels[XLA]):
        words["products B200"] = f"{_words(three)}, three types of fp8"
    return words | _of_examples(blocks)


def _words(repeats: Repeats) -> str:
    return f"{100 * repeats.median_fraction:.1f} % (n = {repeats.n_settings})"


def _three_types(rows: Sequence[KernelRow]) -> Repeats | None:
    """The same product in the mixtures of two kinds of fp8 that Blackwell multiplies at one rate."""
    chosen = [row for row in rows if row.precision == "fp8" and row.device_name == "B200"]
    large = [row for row in chosen if row.calls[0].flop >= 2.0**33]
    return repeats_of("products B200", ((row.shape, row.seconds) for row in large))


def _of_examples(blocks: Sequence[Block]) -> dict[str, str]:
    """Rows of NVIDIA's examples that are means of several runs tell how far these are apart."""
    texts = [text for block in blocks if "spread" in block.tags for text in block.tags["spread"].tolist()]
    spread = np.array([float(text) for text in texts if text])
    return {"examples": f"{100 * np.median(spread):.1f} % (n = {len(spread)})"} if len(spread) else {}
