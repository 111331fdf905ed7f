"""What a step of n processes should take, from steps without communication and from the link.

DDP reduces a bucket while backward goes on, except the last, which is ready when backward ends. A GPU hides the others
behind its work, and so do cores that have nothing else to do. Where backward has all cores, nothing is taken to be
hidden: the copying and adding of an all-reduce needs a core too. That is an assumption, and measurements do not settle
it: docs/live_ddp.md has runs for it and runs against it.
"""

from __future__ import annotations

from dataclasses import dataclass

from traincast.measurement.processes.link_result import AllReduceMeasurement

# Gradients are scaled into their bucket and, reduced, copied back (torch/csrc/distributed/c10d/reducer.cpp,
# mark_variable_ready_dense and finalize_bucket_dense).
_N_COPIES = 2
# Buffers go out in one message a type: floating statistics and integer counters of batch norm.
_N_BROADCASTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedStep:
    """The parts of a step; they add up to `step_s`."""

    compute_s: float
    last_bucket_s: float
    other_buckets_s: float
    copies_s: float
    buffers_s: float

    @property
    def exposed_s(self) -> float:
        return self.last_bucket_s + self.other_buckets_s + self.copies_s + self.buffers_s

    @property
    def step_s(self) -> float:
        return self.compute_s + self.exposed_s


def expected_step(
    compute_s: float, bucket_bytes: tuple[int, ...], link: AllReduceMeasurement, *, has_buffers: bool = False
) -> ExpectedStep:
    """`compute_s` is a step of one process among as many independent ones (`slowest_s`), not of one alone.

    `bucket_bytes` are those of DDP in the order in which they are reduced. Backward is taken to be long enough to hide
    what can be hidden.
    """
    *others, last = [link.link.all_reduce_s(n_bytes) for n_bytes in bucket_bytes]
    n_messages = _N_BROADCASTS * (link.n_processes - 1).bit_length()
    return ExpectedStep(
        compute_s=compute_s,
        last_bucket_s=last,
        other_buckets_s=0.0 if link.has_free_cores else sum(others),
        copies_s=_N_COPIES * sum(bucket_bytes) / link.copy_bytes_per_s,
        buffers_s=n_messages * link.link.latency_s.median if has_buffers else 0.0,
    )
