"""Which coefficients can move the predictions of a block, and which of its kernels each of them moves.

Nothing else needs an evaluation when slopes are worked out.
"""

from __future__ import annotations

import numpy as np

from traincast.hardware.catalog import find_device
from traincast.kernels.coefficients import IS_CONVOLUTION, IS_DEPTHWISE, IS_GROUPED, LAYOUTS, NAMES
from traincast.kernels.refit.block import Block
from traincast.kernels.work import (
    ATTENTION_WORKS,
    CONVOLUTION_WORKS,
    ELEMENT_WORKS,
    FIRST_BYTES,
    GROUPED_WORKS,
    NORM_WORKS,
    Work,
)

_PRODUCTS = tuple(work for work in Work if work < FIRST_BYTES)
# The kinds of work that a coefficient can move, by the first part of its name; those not named here may move any.
_MOVED: dict[str, tuple[Work, ...]] = {
    **dict.fromkeys(("energy_pj", "energy_per_process", "power_per_rate", "matrix_width", "amd", "pascal"), _PRODUCTS),
    **dict.fromkeys(("tile_loss", "lone", "k_overhead", "unaligned", "split_k", "pascal_unaligned"), _PRODUCTS),
    **dict.fromkeys(("winograd", "layout"), tuple(Work(work) for work in CONVOLUTION_WORKS)),
    **dict.fromkeys(("attention", "old_instructions"), ATTENTION_WORKS),
    **dict.fromkeys(("group_odd", "group_width"), GROUPED_WORKS),
    **dict.fromkeys(("batch_norm", "batch_norm_clocks"), (Work.BATCH_NORM, Work.BATCH_NORM_BACKWARD)),
    "pooling": (Work.POOLING, Work.POOLING_BACKWARD),
    "norm_row_clocks": NORM_WORKS,
    "dropout_clocks": (Work.DROPOUT,),
    "element_clocks": ELEMENT_WORKS,
    "label_wait_s": (Work.LABEL_LOSS, Work.EMBEDDING),
    "list_tensor_s": (Work.OPTIMIZER,),
}


def moved_works(name: str) -> tuple[Work, ...]:
    """The kinds of work that a coefficient can move."""
    kind, _, rest = name.partition(".")
    if kind in ("efficiency", "passes"):
        return (Work[rest.partition(".")[0].upper()],)
    return _MOVED.get(kind, tuple(Work))


def reaching(block: Block) -> list[int]:
    """Numbers of the coefficients, in the order of NAMES."""
    works = {Work(work) for work in np.unique(block.kernels.work).tolist()}
    has_products = any(work < FIRST_BYTES for work in works)
    has_convolutions = any(IS_CONVOLUTION[work] for work in works)
    absent = {
        "winograd": not block.kernels.is_winograd.any(),
        "attention": not works & set(ATTENTION_WORKS),
        "old_instructions": not works & set(ATTENTION_WORKS),
        "recurrent_step_s": Work.RECURRENT not in works,
        "layout": not has_convolutions or block.layout != "nchw",
        "group_odd": not any(IS_GROUPED[work] for work in works),
        "group_width": not any(IS_GROUPED[work] for work in works),
        **dict.fromkeys(("energy_pj", "energy_per_process", "power_per_rate", "matrix_width"), not has_products),
        **dict.fromkeys(("tile_loss", "lone", "k_overhead", "unaligned", "split_k", "pascal"), not has_products),
        **dict.fromkeys(("dram.amd", "amd"), not any(find_device(name).vendor == "AMD" for name in block.devices)),
    }
    return [
        number
        for number, name in enumerate(NAMES)
        if not absent.get(name) and not absent.get(name.partition(".")[0]) and _is_of(name, works, block.layout)
    ]


def _is_of(name: str, works: set[Work], layout: str) -> bool:
    """Whether a name that ends in a kind of work, or in a layout, speaks of this block."""
    kind, _, rest = name.partition(".")
    work, _, last = rest.partition(".")
    if (last in LAYOUTS and last != layout) or (rest in LAYOUTS and rest != layout):
        return False
    if kind in ("efficiency", "passes"):
        return Work[work.upper()] in works
    if rest in ("convolution", "weight"):
        return any(IS_CONVOLUTION[one] and not IS_DEPTHWISE[one] for one in works)
    return True
