"""A campaign on a Ray cluster: one task a device at a time, and every result into the store of the driver.

The driver decides what runs where, so that two timings never share a device. Ray runs a task again whose worker was
killed; a task whose node is gone goes to another one.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from traincast.errors import InputError, MeasurementError, MissingExtraError, StoreError
from traincast.measurement.failures import one_line
from traincast.records.campaign import POLL_S, OnProgress, Run, attempt
from traincast.records.environment import Environment
from traincast.records.record import Record
from traincast.records.work_list import Progress, Task, WorkList

LOCAL = "local"
MOST_RETRIES = 3
LONGEST_WITHOUT_NODES_S = 60.0
_LONGEST_CONNECT_S = 10.0
_GO_ON = "Finished work is stored; run the same command again to do the rest."


@dataclass(frozen=True, slots=True)
class Slot:
    """Room for one task at a time: a GPU, or the CPUs of a node or a share of them."""

    node: str
    host: str
    number: int
    n_cpus: int
    n_gpus: int


@contextlib.contextmanager
def ray_cluster(address: str, *, n_cpus: int | None = None) -> Iterator[Any]:
    """Ray, connected to the cluster at this address; "local" starts one here (with `n_cpus`) and ends it again."""
    ray = _import_ray()
    # Whoever starts a cluster is asked whether it may report usage; a benchmark should not, and should not ask.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # How newer Rays treat tasks without GPU; without it they say so on every start.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    _check_answers(address)
    started: dict[str, Any] = {"num_cpus": n_cpus, "include_dashboard": False} if address == LOCAL else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error", **started)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _no_cluster(address, error) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Ray itself tries for minutes before it gives up."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), timeout=_LONGEST_CONNECT_S).close()
        except (OSError, OverflowError) as error:
            raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: Exception) -> InputError:
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return InputError(
        f"Cannot use a Ray cluster at '{address}' ({reason}): give the address that 'ray start --head' printed, "
        f"or '{LOCAL}' to start one here."
    )


def check_division(on_ray: str | None, device: str, cpus_per_task: int | None) -> None:
    """Whether tasks can be given these devices and CPUs."""
    on_gpu = device.partition(":")[0] == "cuda"
    if cpus_per_task is not None and (on_ray is None or on_gpu or cpus_per_task < 1):
        raise InputError(
            f"CPUs per task ({cpus_per_task}) should be at least one, and apply to the CPUs of a Ray cluster only."
        )
    if on_ray is not None and on_gpu and device != "cuda":
        raise InputError(f"On Ray every task sees one GPU, whichever is free: give 'cuda', not '{device}'.")


def slots_of(nodes: Iterable[Mapping[str, Any]], *, device: str, cpus_per_task: int | None = None) -> list[Slot]:
    """Where tasks may run, of the nodes that are alive: one a GPU, or one a node's CPUs, or one a share of these."""
    found = []
    for node in nodes:
        n_gpus, n_cpus = (int(node["Resources"].get(name, 0)) for name in ("GPU", "CPU"))
        if not node["Alive"] or not n_cpus:
            continue
        if device.partition(":")[0] == "cuda":
            n_slots, each = n_gpus, max(n_cpus // max(n_gpus, 1), 1)
        else:
            each = cpus_per_task or n_cpus
            n_slots, n_gpus = n_cpus // each, 0
        found += [
            Slot(node["NodeID"], node["NodeManagerHostname"], number, each, min(n_gpus, 1)) for number in range(n_slots)
        ]
    return found


def run_on_ray(
    ray: Any,
    work: WorkList,
    run: Run,
    *,
    device: str = "cpu",
    cpus_per_task: int | None = None,
    on_progress: OnProgress | None = None,
) -> Progress:
    """Do what is left of a campaign on the cluster; ends, resumes and shares as `run_campaign` does."""
    tell = on_progress or (lambda _: None)
    pool = _Pool(ray, run, lambda: slots_of(ray.nodes(), device=device, cpus_per_task=cpus_per_task))
    if not pool.free_slots() and not work.is_done:
        wanted = "a GPU" if device.startswith("cuda") else f"{cpus_per_task or 1} CPUs"
        raise InputError(f"No node of this Ray cluster has {wanted} to measure on.")
    tell(work.progress)
    had_room_s = time.monotonic()
    try:
        while not work.is_done:
            pool.fill(work)
            for task, outcome in pool.wait():
                if isinstance(outcome, Record):
                    work.finish(outcome)
                else:
                    work.give_back([task])
            tell(work.progress)
            had_room_s = time.monotonic() if pool.has_room() else had_room_s
            if time.monotonic() - had_room_s > LONGEST_WITHOUT_NODES_S:
                raise MeasurementError(f"All nodes of the Ray cluster have left. {_GO_ON}")
    except ray.exceptions.RayError as error:
        if isinstance(error, ray.exceptions.RayTaskError):  # what a task raised, not what became of the cluster
            raise
        raise MeasurementError(f"The Ray cluster no longer answers ({one_line(error)}). {_GO_ON}") from error
    finally:
        with contextlib.suppress(ray.exceptions.RayError):
            pool.cancel()
        with contextlib.suppress(StoreError):  # what ended us is what to tell; a claim left behind ends with us
            work.give_back(work.taken)
    return work.progress


class _Pool:
    """Tasks in flight, at most one a slot. Nodes may come and go."""

    def __init__(self, ray: Any, run: Run, slots: Callable[[], list[Slot]]) -> None:
        self._ray, self._run, self._slots = ray, run, slots
        self._remote = ray.remote(attempt)
        self._running: dict[Any, tuple[Slot, Task]] = {}

    def free_slots(self) -> list[Slot]:
        busy = {slot for slot, _ in self._running.values()}
        return [slot for slot in self._slots() if slot not in busy]

    def has_room(self) -> bool:
        """Whether anything runs, or could."""
        return bool(self._running) or bool(self._slots())

    def fill(self, work: WorkList) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        for slot in self.free_slots():
            task = work.take()
            if task is None:
                return
            options = self._remote.options(
                num_cpus=slot.n_cpus,
                num_gpus=slot.n_gpus,
                max_retries=MOST_RETRIES,
                scheduling_strategy=NodeAffinitySchedulingStrategy(slot.node, soft=False),
            )
            self._running[options.remote(task, self._run)] = (slot, task)

    def wait(self) -> list[tuple[Task, Record | None]]:
        """What came back in the last half second; None for a task whose node was lost, which is to be done again."""
        if not self._running:
            time.sleep(POLL_S)
            return []
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=POLL_S)
        return [self._outcome(reference, *self._running.pop(reference)) for reference in ready]

    def cancel(self) -> None:
        for reference in self._running:
            self._ray.cancel(reference, force=True)

    def _outcome(self, reference: Any, slot: Slot, task: Task) -> tuple[Task, Record | None]:
        errors = self._ray.exceptions
        try:
            return task, self._ray.get(reference)
        except (errors.WorkerCrashedError, errors.OutOfMemoryError) as error:
            return task, _died(task, slot, error)
        except (errors.NodeDiedError, errors.TaskUnschedulableError, errors.ObjectLostError):
            return task, None
        except ModuleNotFoundError as error:
            raise MeasurementError(
                f"'{slot.host}' cannot run the task ({one_line(error)}): every node needs the same traincast "
                "as this one."
            ) from error


def _died(task: Task, slot: Slot, error: Exception) -> Record:
    """A task that kills every worker it is given to is a result too; what ran it can no longer be asked."""
    device = str(task.settings.get("device", "cpu"))
    environment = Environment(
        device="unknown",
        device_kind=device.partition(":")[0],
        host=slot.host,
        n_threads=slot.n_cpus,
        n_cores=slot.n_cpus,
        versions={},
        clocks={},
    )
    sentence = f"The Ray worker on '{slot.host}' died {MOST_RETRIES + 1} times ({type(error).__name__})."
    return Record(
        kind=task.kind,
        task=task.settings,
        values={"error": sentence},
        environment=environment,
        created_s=time.time(),
    )


def _import_ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise MissingExtraError("A campaign on Ray", extra="ray") from error
    return ray
