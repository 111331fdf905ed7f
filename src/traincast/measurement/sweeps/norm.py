"""The same model without its batch norms."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from traincast.measurement.runnable import Runnable


def without_batch_norm(runnable: Runnable) -> tuple[Runnable, int]:
    """A copy in which every batch norm passes its input on, and how many there were."""
    module = copy.deepcopy(runnable.module)
    if isinstance(module, _BatchNorm):
        return replace(runnable, module=nn.Identity()), 1
    n_replaced = sum(_replace_children(each) for each in list(module.modules()))
    return replace(runnable, name=f"{runnable.name} without batch norm", module=module), n_replaced


def _replace_children(module: Any) -> int:
    found = [name for name, child in module.named_children() if isinstance(child, _BatchNorm)]
    for name in found:
        setattr(module, name, nn.Identity())
    return len(found)
