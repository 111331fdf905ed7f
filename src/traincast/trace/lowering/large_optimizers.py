"""Optimizers of large models that are no list of elementwise lines: 8-bit AdamW, Adafactor and Muon.

They update one parameter after the other, as their public code does (bitsandbytes, transformers, torch.optim.Muon).
"""

from __future__ import annotations

from traincast.trace.dtypes import BFLOAT16, CODE, FLOAT32
from traincast.trace.graph import Phase, StorageKind
from traincast.trace.lowering.program import SCALAR, Program

_EIGHT_BITS_FROM = 4096  # elements; smaller tensors keep states of 32 bits
_BLOCK = 256  # elements that share a scale
_NEWTON_SCHULZ_STEPS = 5

Dims = list[tuple[int, int]]


def add_eight_bit(program: Program, weight: int, gradient: int, *, is_table: bool) -> None:
    """One kernel a parameter over states of a byte and their scales; embeddings keep 32 bits, as Trainer asks."""
    n_elements = _elements(program, weight)
    if is_table or n_elements < _EIGHT_BITS_FROM:
        dims = program.dims_of(program.tensor_shape[weight])
        states = [_state(program, dims, FLOAT32) for _ in "mv"]
    else:
        n_blocks = -(-n_elements // _BLOCK)
        states = [_state(program, [(n_elements, 0)], CODE["uint8"]) for _ in "mv"]
        states += [_state(program, [(n_blocks, 0)], FLOAT32) for _ in "mv"]
    written = [program.again(tensor) for tensor in (weight, *states)]
    _emit(program, "_fused_adamw_8bit_", [weight, gradient, *states], written)


def add_adafactor(program: Program, weight: int, gradient: int) -> None:
    """Squares are kept by row and by column, without a momentum; all of it is worked out in fp32."""
    dims = program.dims_of(program.tensor_shape[weight])
    own = program.tensor_dtype[weight]
    wide = _wide(program, weight), _wide(program, gradient)
    square = _emit_new(program, "mul", [wide[1], wide[1]], dims)
    if len(dims) >= 2:
        parts = [dims[:-1], [*dims[:-2], dims[-1]]]
        sums = []
        for part in parts:
            state = _state(program, part, FLOAT32)
            mean = _emit_new(program, "mean", [square], part)
            sums.append(program.again(state))
            _emit(program, "lerp_", [state, mean], [sums[-1]])
        update = _emit_new(program, "mul", sums, dims)
        _emit(program, "mul_", [update, wide[1]], [program.again(update)])
    else:
        state = _state(program, dims, FLOAT32)
        _emit(program, "lerp_", [state, square], [program.again(state)])
        update = _emit_new(program, "rsqrt", [state], dims)
        _emit(program, "mul_", [update, wide[1]], [program.again(update)])
    norm = program.tensor(SCALAR, FLOAT32, program.storage())
    _emit(program, "linalg_vector_norm", [update], [norm])
    _emit(program, "div_", [update, norm], [program.again(update)])
    if own == FLOAT32:
        _emit(program, "add_", [weight, update], [program.again(weight)])
        return
    _emit(program, "add_", [wide[0], update], [program.again(wide[0])])
    _emit(program, "copy_", [weight, wide[0]], [program.again(weight)])


def add_muon(program: Program, weight: int, gradient: int) -> None:
    """Momentum, made orthogonal by five steps of Newton and Schulz in bf16: three products each."""
    dims = program.dims_of(program.tensor_shape[weight])
    dtype = program.tensor_dtype[weight]
    momentum = _state(program, dims, dtype)
    _emit(program, "lerp_", [momentum, gradient], [program.again(momentum)])
    update = _emit_new(program, "lerp", [gradient, momentum], dims, dtype=dtype)
    narrow = update if dtype == BFLOAT16 else _emit_new(program, "_to_copy", [update], dims, dtype=BFLOAT16)
    short, long = sorted(dims)
    x = _seen(program, narrow, [short, long])
    norm = program.tensor(SCALAR, BFLOAT16, program.storage())
    _emit(program, "linalg_vector_norm", [x], [norm])
    x = _emit_new(program, "div", [x, norm], [short, long], dtype=BFLOAT16)
    for _ in range(_NEWTON_SCHULZ_STEPS):
        flipped = _seen(program, x, [long, short])
        gram = _emit_new(program, "mm", [x, flipped], [short, short], dtype=BFLOAT16)
        mixed = _emit_new(program, "addmm", [gram, gram, gram], [short, short], dtype=BFLOAT16)
        x = _emit_new(program, "addmm", [x, mixed, x], [short, long], dtype=BFLOAT16)
    _emit(program, "mul_", [weight], [scaled := program.again(weight)])
    _emit(program, "add_", [scaled, _seen(program, x, dims)], [program.again(weight)])


def _elements(program: Program, tensor: int) -> int:
    n_elements = 1
    for base, _ in program.dims_of(program.tensor_shape[tensor]):
        n_elements *= base
    return n_elements


def _wide(program: Program, tensor: int) -> int:
    if program.tensor_dtype[tensor] == FLOAT32:
        return tensor
    dims = program.dims_of(program.tensor_shape[tensor])
    return _emit_new(program, "_to_copy", [tensor], dims)


def _state(program: Program, dims: Dims, dtype: int) -> int:
    return program.tensor(program.shape(dims), dtype, program.storage(StorageKind.OPTIMIZER_STATE))


def _seen(program: Program, tensor: int, dims: Dims) -> int:
    """The same memory as a matrix of this form."""
    seen = program.tensor(program.shape(dims), program.tensor_dtype[tensor], program.tensor_storage[tensor])
    _emit(program, "transpose", [tensor], [seen])
    return seen


def _emit_new(program: Program, name: str, inputs: list[int], dims: Dims, *, dtype: int = FLOAT32) -> int:
    made = program.tensor(program.shape(dims), dtype, program.storage())
    _emit(program, name, inputs, [made])
    return made


def _emit(program: Program, name: str, inputs: list[int], outputs: list[int]) -> None:
    program.emit(f"aten.{name}", inputs, outputs, phase=Phase.OPTIMIZER, module=0)
