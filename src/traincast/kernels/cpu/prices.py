"""Which price the work of an op has, by its kind and name. All prices on one page.

phase.P       once in phase P of a step: what a loop, a loss or an optimizer costs before its first op
call.P        every op of phase P that does something; call.view: one that does not; call.module, call.parameter:
              Python around a module and around a parameter's update; call.K: what an op of kind K costs beside that
threads       an op large enough that ATen starts its threads
flop.W        products of kind W; flop.W.thin: those that fill up vectors of eight channels
bytes.W       bytes of operands and results of kind W
bytes.far     bytes of an op beyond what caches hold
bytes.fresh   bytes in pages that the system must hand out and clear; no op is charged for them (`memory_work.py`)
element.F     results of a function F;  window.F: places of a pooling window, for each result
steps.R       steps of a recurrent layer that wait for each other
"""

from __future__ import annotations

from traincast.trace.kinds import OpKind

_FUNCTIONS = {
    "exp": "gelu gelu_backward silu silu_ silu_backward sigmoid sigmoid_ exp exp_ erf elu elu_backward mish"
    " mish_backward softplus softplus_backward log log_ hardswish hardswish_ hardswish_backward sin cos"
    " log_sigmoid_forward log_sigmoid_backward",
    "tanh": "tanh tanh_ pow",
    "root": "sqrt sqrt_ rsqrt rsqrt_ div div_ addcdiv addcdiv_ reciprocal reciprocal_",
    "random": "bernoulli_ bernoulli rand_like native_dropout uniform_ normal_ randn rand",
}
_FUNCTION_OF = {f"aten.{word}": name for name, words in _FUNCTIONS.items() for word in words.split()}


def price_of(kind: OpKind, name: str, *, order: str, takes_statistics: bool = True) -> str | None:
    """For what an op does to its bytes or elements; None where it is made of products.

    `order` is that in which it reads them: "elementwise" (as they lie), "strided" (rows are whole) or "transposed".
    A batch norm that takes no statistics multiplies and adds, once for each element.
    """
    backward = ".backward" if "backward" in name else ""
    if name in _FUNCTION_OF:
        return f"element.{_FUNCTION_OF[name]}"
    if kind == OpKind.POOLING:
        return f"window.{'max' if 'max' in name else 'mean'}{backward}"
    if kind == OpKind.NORMALISATION and not (takes_statistics or backward):
        return "bytes.elementwise"
    if kind == OpKind.NORMALISATION:
        return f"bytes.{'batch_norm' if 'batch_norm' in name else 'row_norm'}{backward}"
    if kind in (OpKind.SOFTMAX, OpKind.EMBEDDING):
        return f"bytes.{kind.value}{backward}"
    if kind == OpKind.COPY:
        return f"bytes.{order}"
    if kind == OpKind.REDUCTION:
        return "bytes.reduction"
    if kind in (OpKind.ELEMENTWISE, OpKind.OPTIMIZER, OpKind.DROPOUT, OpKind.FACTORY):
        return "bytes.elementwise"
    return None
