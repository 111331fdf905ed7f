"""Flop of a training step by PyTorch's own counter, on meta tensors."""

from torch.utils.flop_counter import FlopCounterMode

from traincast.frontend.capturing.meta_module import call
from traincast.frontend.capturing.run_step import scalar_loss


def counted_flop(module, inputs, loss=None):
    """Forward and backward flop. PyTorch takes attention apart on meta tensors and counts its batched products."""
    with FlopCounterMode(display=False) as counter:
        value = scalar_loss(call(module.train(), inputs), inputs, loss)
        forward = counter.get_total_flops()
        value.backward()
        return forward, counter.get_total_flops() - forward
