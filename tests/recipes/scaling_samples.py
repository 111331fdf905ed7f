"""Runs of a scaling experiment whose numbers can be checked in one's head."""

from traincast.recipes.scaling_experiment.result import CellRun, Split
from traincast.recipes.scaling_experiment.settings import Cell, ScalingSettings

SETTINGS = ScalingSettings(model="cifar_resnet20", data="digits", batch_sizes=(10, 20), n_devices=(1, 2), n_threads=1)
N_SAMPLES, N_PARAMETERS = 100, 1000


def split(exposed_s=0.1):
    return Split(
        step_s=1.0,
        compute_s=1.0 - exposed_s,
        exposed_s=exposed_s,
        all_reduce_s=0.05,
        gradient_bytes=4 * N_PARAMETERS,
        n_buckets=1,
        peak_bus_bytes_per_s=160e3,
    )


def sample_run(n_devices, batch_size, epoch_s, *, exposed_s=0.1, input_s=0.5):
    return CellRun(
        cell=Cell(n_devices, batch_size),
        n_samples=N_SAMPLES,
        n_parameters=N_PARAMETERS,
        epochs_s=(99.0, epoch_s - 1, epoch_s + 1),
        parts_s={"input": input_s, "forward": 1.0, "loss": 0.1, "backward": 2.0, "optimizer": 0.1},
        loss=2.0,
        accuracy=0.25,
        device="a CPU",
        backend="gloo",
        split=split(exposed_s) if n_devices > 1 else None,
    )


# Seconds of an epoch by devices and batch of each; both definitions share the runs on one device and 2 x 10.
RUNS = [
    sample_run(1, 10, 8.0),
    sample_run(1, 20, 6.0),
    sample_run(2, 5, 10.0),
    sample_run(2, 10, 5.0),
    sample_run(2, 20, 4.0),
]
