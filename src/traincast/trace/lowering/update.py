"""The update of a step: gradients clipped if that is asked for, the optimizer, and fp32 masters of 16-bit weights."""

from __future__ import annotations

from dataclasses import dataclass

from traincast.trace.dtypes import FLOAT32
from traincast.trace.graph import Phase, StorageKind
from traincast.trace.lowering.large_optimizers import add_adafactor, add_eight_bit, add_muon
from traincast.trace.lowering.optimizers import add_optimizer
from traincast.trace.lowering.program import SCALAR, Program
from traincast.trace.settings import Settings


@dataclass(frozen=True, slots=True)
class Roles:
    """Parameters (lowered tensors) that some optimizers treat apart: matrices inside blocks, and embedding tables."""

    hidden: frozenset[int] = frozenset()
    tables: frozenset[int] = frozenset()


def add_update(
    program: Program, settings: Settings, pairs: list[tuple[int, int]], roles: Roles, *, foreach: bool
) -> None:
    """Appends what follows backward for (parameter, gradient) pairs of lowered tensors."""
    if settings.optimizer == "none" or not pairs:
        return
    if settings.clip_gradients:
        pairs = _clipped(program, pairs, foreach=foreach)
    if not settings.keeps_masters:
        _add_optimizer(program, settings.update, pairs, roles, foreach=foreach)
        return
    master = {weight: _master(program, weight) for weight, _ in pairs}
    of_masters = Roles(
        *(frozenset(master[one] for one in part if one in master) for part in (roles.hidden, roles.tables))
    )
    masters = [(master[weight], gradient) for weight, gradient in pairs]
    _add_optimizer(program, settings.update, masters, of_masters, foreach=foreach)
    groups = [list(range(len(pairs)))] if foreach else [[place] for place in range(len(pairs))]
    for group in groups:
        weights, sources = [pairs[place][0] for place in group], [masters[place][0] for place in group]
        name = "aten._foreach_copy_" if foreach else "aten.copy_"
        _emit(program, name, [*weights, *sources], [program.again(weight) for weight in weights])


def _add_optimizer(
    program: Program, optimizer: str, pairs: list[tuple[int, int]], roles: Roles, *, foreach: bool
) -> None:
    if optimizer == "muon":
        others = [pair for pair in pairs if pair[0] not in roles.hidden]
        add_optimizer(program, "adamw", others, foreach=foreach)
        for weight, gradient in pairs:
            if weight in roles.hidden:
                add_muon(program, weight, gradient)
    elif optimizer == "adamw-8bit":
        for weight, gradient in pairs:
            add_eight_bit(program, weight, gradient, is_table=weight in roles.tables)
    elif optimizer == "adafactor":
        for weight, gradient in pairs:
            add_adafactor(program, weight, gradient)
    else:
        add_optimizer(program, optimizer, pairs, foreach=foreach)


def _master(program: Program, weight: int) -> int:
    """The fp32 weight that is updated; the one of 16 bits is a copy of it."""
    storage = program.storage(StorageKind.OPTIMIZER_STATE)
    return program.tensor(program.tensor_shape[weight], FLOAT32, storage)


def _clipped(program: Program, pairs: list[tuple[int, int]], *, foreach: bool) -> list[tuple[int, int]]:
    """`clip_grad_norm_`: a norm of every gradient, one of these, and all gradients scaled in place."""
    gradients = [gradient for _, gradient in pairs]
    norms = [program.tensor(SCALAR, FLOAT32, program.storage()) for _ in gradients]
    groups = [list(range(len(pairs)))] if foreach else [[place] for place in range(len(pairs))]
    kind = "aten._foreach_norm" if foreach else "aten.linalg_vector_norm"
    for group in groups:
        _emit(program, kind, [gradients[place] for place in group], [norms[place] for place in group])
    stacked = program.tensor(program.shape([(len(norms), 0)]), FLOAT32, program.storage())
    _emit(program, "aten.stack", norms, [stacked])
    total = program.tensor(SCALAR, FLOAT32, program.storage())
    _emit(program, "aten.linalg_vector_norm", [stacked], [total])
    factor = program.tensor(SCALAR, FLOAT32, program.storage())
    _emit(program, "aten.clamp", [total], [factor])
    scaled = [program.again(gradient) for gradient in gradients]
    for group in groups:
        written = [scaled[place] for place in group]
        name = "aten._foreach_mul_" if foreach else "aten.mul_"
        _emit(program, name, [*(gradients[place] for place in group), factor], written)
    return [(weight, gradient) for (weight, _), gradient in zip(pairs, scaled, strict=True)]


def _emit(program: Program, name: str, inputs: list[int], outputs: list[int]) -> None:
    program.emit(name, inputs, outputs, phase=Phase.OPTIMIZER, module=0)
