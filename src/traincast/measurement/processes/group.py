"""This process as one of several: gloo between CPUs, nccl between GPUs.

Who it is comes from the environment that torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), so the
same code runs under our own torchrun on one machine and under the user's on many.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch.distributed as dist
import torch.distributed.nn.functional

from traincast.errors import InputError, LostProcessError
from traincast.measurement.failures import one_line
from traincast.measurement.training import check_device

_NEEDED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """All processes, seen from one of them."""

    rank: int
    n_processes: int
    n_local: int  # of them on this machine
    device: str
    backend: str

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def barrier(self) -> None:
        """Waits for all."""
        dist.barrier()

    def gather(self, value: Any) -> list[Any]:
        """What every process says, in the order of the ranks. All get it: they then decide alike."""
        said: list[Any] = [None] * self.n_processes
        dist.all_gather_object(said, value)
        return said

    def all_reduce(self, values: torch.Tensor) -> None:
        """Adds up in place."""
        dist.all_reduce(values)


def join(device: str, *, timeout_s: float) -> Group:
    """Meets the others, until this process ends. Nobody waits for another longer than `timeout_s`."""
    missing = [name for name in _NEEDED if name not in os.environ]
    if missing:
        raise InputError(f"{missing[0]} is not set: start the processes with torchrun, which sets it.")
    check_device(device)
    if device not in ("cpu", "cuda"):
        raise InputError(f"Several processes run on 'cpu' or on 'cuda' (one GPU each), not on '{device}'.")
    backend, own = "gloo", "cpu"
    if device == "cuda":
        local_rank = int(os.environ["LOCAL_RANK"])
        if local_rank >= torch.cuda.device_count():
            raise InputError(f"Process {local_rank} of this machine has no GPU: there are {torch.cuda.device_count()}.")
        backend, own = "nccl", f"cuda:{local_rank}"
        torch.cuda.set_device(own)
    if not dist.is_initialized():
        try:
            dist.init_process_group(backend, timeout=timedelta(seconds=timeout_s))
        except (RuntimeError, ValueError) as error:
            where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
            raise LostProcessError(f"The processes could not connect at {where} ({one_line(error)}).") from error
        atexit.register(part)
    n_processes = dist.get_world_size()
    return Group(
        rank=dist.get_rank(),
        n_processes=n_processes,
        n_local=int(os.environ.get("LOCAL_WORLD_SIZE", n_processes)),
        device=own,
        backend=backend,
    )


def part() -> None:
    """Ends gloo's threads while the interpreter is whole: one that drops a tensor after that aborts the process.

    They end with the last reference to the group. Reducers that are only in cycles hold some, and so do the defaults of
    `torch.distributed.nn.functional` (`group=group.WORLD`) where it is first imported after the meeting, as DDP would:
    hence its import above.
    """
    gc.collect()
    dist.destroy_process_group()


def leave() -> NoReturn:
    """Ends this process at once when all are done, whatever still holds a reducer."""
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)


@contextlib.contextmanager
def losses_told() -> Iterator[None]:
    """Around all that needs the others: what torch raises where one of them is gone, as an error of ours."""
    try:
        yield
    except RuntimeError as error:
        if not is_loss_of_another(error):
            raise
        raise LostProcessError(f"Another process was lost ({one_line(error)}).") from error


def is_loss_of_another(error: BaseException) -> bool:
    """Whether this process failed only because another one had: the cause is to be found there."""
    is_torchs = isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo/" in str(error))
    return is_torchs or isinstance(error, LostProcessError)
