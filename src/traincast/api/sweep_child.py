"""One batch size in a process of its own: python -m traincast.api.sweep_child REQUEST ANSWER_FILE

The request and the answer are JSON. Started by `traincast.api.sweeping`; the answer is always written, unless memory
ends so hard that the process is killed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traincast.errors import MeasurementError, MemoryEndedError, TraincastError


class _TooSlowError(MeasurementError):
    """The first step took longer than is wanted."""

    def __init__(self, step_s: float) -> None:
        super().__init__("too slow")
        self.step_s = step_s


def answer_to(request: Mapping[str, Any]) -> dict[str, Any]:
    """Measures, and says how it ended."""
    from traincast.measurement.sweeps.process_memory import limit_memory
    from traincast.measurement.training import is_cuda

    device = request["measure"]["device"]
    if request["memory_bytes"] is not None and not is_cuda(device):  # a GPU's memory ends by itself
        limit_memory(request["memory_bytes"])
    try:
        measured = _measured(request)
    except MemoryEndedError as error:
        return {"status": "out of memory", "message": str(error)}
    except _TooSlowError as slow:
        return {"status": "too slow", "first_step_s": slow.step_s, "peak_memory_bytes": _peak_bytes(device)}
    except MeasurementError as error:
        return {"status": "failed", "message": str(error)}
    except TraincastError as error:
        return {"status": "mistake", "message": str(error)}
    except MemoryError as error:  # before the model is there, while torch is imported
        return {"status": "out of memory", "message": str(error)}
    return {"status": "measured", "measurement": measured.to_dict(), "peak_memory_bytes": _peak_bytes(device)}


def _measured(request: Mapping[str, Any]) -> Any:
    from traincast.api.runnables import runnable_of
    from traincast.measurement.measure import measure_step

    runnable = runnable_of(request["model"], **request["options"])
    _import_all(request["measure"])
    start_s, most_s = time.perf_counter(), float(request["max_step_s"])

    def stop_early(n_done: int, n_to_do: int) -> None:
        """A step that takes for ever is not repeated to warm up."""
        took_s = time.perf_counter() - start_s
        if n_done == 1 and not n_to_do and took_s > most_s:
            raise _TooSlowError(took_s)

    return measure_step(runnable, **request["measure"], on_progress=stop_early)


def _import_all(how: Mapping[str, Any]) -> None:
    """torch imports parts of itself in its first step, which takes seconds that no batch size is to blame for."""
    import torch

    from traincast.measurement.runnable import Runnable
    from traincast.measurement.stopwatch import CpuStopwatch
    from traincast.measurement.training import Training, check_device

    device = check_device(how["device"])
    tiny = Runnable(
        name="tiny",
        module=torch.nn.Linear(1, 1),
        make_inputs=lambda batch_size: torch.zeros(batch_size, 1),
        forward=lambda module, inputs: module(inputs),
        loss=lambda output, inputs: output.mean(),
    )
    training = Training(tiny, optimizer=how["optimizer"], precision=how["precision"], device=device)
    training.step(training.inputs(1), CpuStopwatch())


def _peak_bytes(device: str) -> int | None:
    from traincast.measurement.training import is_cuda

    if is_cuda(device):
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    from traincast.measurement.sweeps.process_memory import peak_bytes

    return peak_bytes()


def main(arguments: list[str]) -> None:
    import json

    from traincast.child_process import end_with_parent
    from traincast.report.json_ import to_json

    end_with_parent()
    request, path = arguments
    Path(path).write_text(to_json(answer_to(json.loads(request))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
