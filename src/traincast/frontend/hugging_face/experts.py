"""Mixture-of-experts layers without values: every expert gets an equal share of the tokens.

Which expert a token goes to is decided by the router from values that a capture does not have. A router
trained with a balancing loss spreads tokens almost evenly, so each of the E experts is given 1/E of the
(token, expert) pairs: the flop and bytes are those of the real step, what an uneven router adds (the slowest
expert, dropped tokens) is left out.
"""

from __future__ import annotations

import math
from typing import Any

from traincast.errors import CaptureError

NAME = "traincast_balanced"
ASSUMPTION = "the router of the mixture-of-experts layers gives every expert an equal share of the tokens"


def register_balanced_experts() -> str:
    """Make the balanced layer known to transformers; the name to build a model with."""
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

    ALL_EXPERTS_FUNCTIONS.register(NAME, balanced_experts)
    return NAME


def are_in(model: Any) -> bool:
    """Whether the model runs the balanced layer."""
    return getattr(model.config, "_experts_implementation", None) == NAME and token_multiple(model.config) > 1


def token_multiple(config: Any) -> int:
    """The sequence length must be a multiple of this for every expert to get equally many tokens."""
    n_experts, n_chosen = (
        _first(config, ("num_experts", "num_local_experts", "n_routed_experts")),
        _first(config, ("num_experts_per_tok", "num_experts_per_token", "moe_k", "top_k")),
    )
    if not n_experts or not n_chosen:
        return 1
    return n_experts // math.gcd(n_experts, n_chosen)


def _first(config: Any, names: tuple[str, ...]) -> int | None:
    values = (getattr(config, name, None) for name in names)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def balanced_experts(layer: Any, hidden_states: Any, top_k_index: Any, top_k_weights: Any) -> Any:
    """What transformers' grouped experts do, as a batched product over experts with equally many rows."""
    import torch

    n_tokens, width = hidden_states.shape
    n_chosen, n_experts = top_k_index.size(-1), layer.num_experts
    n_rows = n_tokens * n_chosen
    if n_rows % n_experts:
        raise CaptureError(
            f"{n_tokens} tokens x {n_chosen} choices cannot be shared equally by {n_experts} experts; "
            f"choose a seqlen that is a multiple of {n_experts // math.gcd(n_experts, n_chosen)}."
        )
    expert, order = torch.sort(top_k_index.reshape(-1))
    rows = hidden_states[order // n_chosen]  # (n_rows, width), those of one expert side by side
    first = "gate_up_proj" if layer.has_gate else "up_proj"
    inner = _per_expert(layer, first, rows, expert)
    inner = layer._apply_gate(inner) if layer.has_gate else layer.act_fn(inner)
    outer = _per_expert(layer, "down_proj", inner, expert)
    if layer.has_post_expert_norm:
        outer = layer.post_expert_norm(outer)
    weighted = outer * top_k_weights.reshape(-1)[order].unsqueeze(-1)
    back = torch.empty_like(order).scatter_(0, order, torch.arange(n_rows, device=order.device))
    return weighted[back].view(n_tokens, n_chosen, width).sum(dim=1).to(hidden_states.dtype)


def _per_expert(layer: Any, name: str, rows: Any, expert: Any) -> Any:
    import torch

    weight = getattr(layer, name)  # (n_experts, in, out) if transposed, else (n_experts, out, in)
    weight = weight if layer.is_transposed else weight.transpose(-2, -1)
    out = torch.bmm(rows.view(layer.num_experts, -1, rows.size(-1)), weight).flatten(0, 1)
    return out + getattr(layer, f"{name}_bias")[expert] if layer.has_bias else out
