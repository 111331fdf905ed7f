"""How a published language model is usually trained: what the form holds when somebody chooses its name.

Enough H100 of AWS for weights, masters, gradients and Adam's states (18 bytes a parameter) and one pass of activations,
sharded by FSDP where that takes more than one (405B and some models of many experts need more than FSDP on the 512 that
the page answers for, and their answer says so); and 20 tokens a parameter, which is what Hoffmann et al. 2022
(arXiv 2203.15556) found best for a given amount of computing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traincast.frontend.models.named import NamedModel

_TOKENS_PER_PARAMETER = 20
_TOKENS_OF_A_PASS = 8192
_SELECTIVE_UP_TO = 1e10  # parameters
# (parameters up to, place, its devices)
_PLACES = (
    (1.3e9, "p5.4xlarge", 1),
    (1.6e10, "p5.48xlarge", 8),
    (1e11, "8xp5.48xlarge", 64),
    (float("inf"), "64xp5.48xlarge", 512),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualRun:
    """Settings by the names of the options."""

    on: str
    batch_size: int
    seqlen: int
    n_tokens: int
    precision: str
    optimizer: str
    strategy: str | None
    recompute: str | None


def usual_run(model: NamedModel) -> UsualRun | None:
    """None of a model that has no length: it reads no tokens, or not only."""
    if model.seqlen is None:
        return None
    on, n_devices = next((place, n) for most, place, n in _PLACES if model.n_parameters <= most)
    each = max(_TOKENS_OF_A_PASS // model.seqlen, 1) if n_devices == 1 else 1
    tokens = _TOKENS_PER_PARAMETER * model.n_parameters
    size = 10 ** (len(str(tokens)) - 2)
    is_shared = n_devices > 1
    return UsualRun(
        on=on,
        batch_size=n_devices * each,
        seqlen=model.seqlen,
        n_tokens=round(tokens / size) * size,
        precision="amp-bf16" if "config" in model.sizes else "bf16",
        optimizer="adamw",
        strategy="fsdp" if is_shared else None,
        recompute=_recompute(model.n_parameters) if is_shared else None,
    )


def _recompute(n_parameters: int) -> str:
    return "full" if n_parameters > _SELECTIVE_UP_TO else "selective"
