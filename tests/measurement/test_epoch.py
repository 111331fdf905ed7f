"""An epoch over a real loader: data, copy and the phases of a step."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from fake_gpu import FakeGpu
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import traincast as tc
from traincast.errors import InputError, MeasurementError
from traincast.measurement.epoch import measure_epoch, n_samples_of
from traincast.measurement.runnable import Runnable
from traincast.measurement.stopwatch import CudaStopwatch
from traincast.measurement.synthetic_data import SyntheticDataset

torch.set_num_threads(1)


def make_inputs(batch_size):
    return (torch.randn(batch_size, 8),)


def runnable(act=lambda: None):
    def forward(module, inputs):
        act()
        return module(inputs[0])

    return Runnable(
        name="net",
        module=nn.Linear(8, 2),
        make_inputs=make_inputs,
        forward=forward,
        loss=lambda output, inputs: output.mean(),
    )


def loader(n_samples=24, cost_s=0.0, n_workers=0, **options):
    return DataLoader(SyntheticDataset(make_inputs, n_samples, cost_s, **options), batch_size=4, num_workers=n_workers)


class Broken(Dataset):
    """A data set whose sample 9 does not come."""

    def __init__(self, act):
        self._act = act

    def __len__(self):
        return 20

    def __getitem__(self, index):
        if index == 9:
            self._act()
        return (torch.zeros(8),)


def file_is_gone():
    raise FileNotFoundError("sample 9 is gone")


def worker_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def test_an_epoch_has_six_phases_and_every_sample():
    told = []
    result = measure_epoch(runnable(), loader(), on_progress=lambda done, to_do: told.append((done, to_do)))
    assert list(result.phases) == ["data", "copy", "forward", "loss", "backward", "optimizer"]
    assert (result.n_batches, result.n_samples, result.n_workers) == (6, 24, 0)
    assert result.batch.n == 4  # the first two start things up
    assert sum(result.share(phase) for phase in result.phases) == pytest.approx(1.0)
    assert told[-1] == (6, 6)
    assert result.start_s <= result.epoch_s


@pytest.mark.parametrize("is_busy", [True, False])
def test_a_loader_of_known_cost_is_waited_for_as_long_as_it_costs(is_busy):
    result = measure_epoch(runnable(), loader(cost_s=0.005, is_busy=is_busy))
    assert result.phases["data"].minimum >= 4 * 0.005
    assert result.data_fraction > 0.5


def test_workers_load_while_the_model_works():
    slow_step = runnable(lambda: time.sleep(0.05))
    alone = measure_epoch(slow_step, loader(cost_s=0.010, is_busy=False))
    helped = measure_epoch(slow_step, loader(cost_s=0.010, is_busy=False, n_workers=1))
    assert helped.n_workers == 1
    assert helped.data_fraction < alone.data_fraction / 2


def test_any_iterable_of_batches_will_do_and_may_have_no_length():
    told = []
    batches = (make_inputs(3) for _ in range(10))
    result = measure_epoch(runnable(), batches, n_batches=5, on_progress=lambda *steps: told.append(steps))
    assert (result.n_batches, result.n_samples, result.n_workers) == (5, 15, None)
    assert told[-1] == (5, 5)


def test_on_a_gpu_the_phases_are_those_of_the_device():
    gpu = FakeGpu(launch_s=0.0)
    result = measure_epoch(runnable(lambda: gpu.ask(0.5)), loader(), stopwatch=CudaStopwatch(gpu, "cuda"))
    assert result.phases["forward"].median == pytest.approx(0.5)


def test_an_error_in_a_worker_is_told_in_one_sentence_and_the_batches_before_are_kept():
    with pytest.raises(MeasurementError) as caught:
        measure_epoch(runnable(), DataLoader(Broken(file_is_gone), batch_size=4, num_workers=1))
    told = "The data loader, asked for batch 3, failed (FileNotFoundError: sample 9 is gone)."
    assert str(caught.value) == told
    assert caught.value.partial.n_batches == 2


def epoch_with_a_killed_worker():
    try:
        measure_epoch(runnable(), DataLoader(Broken(worker_is_killed), batch_size=4, num_workers=1))
    except MeasurementError as error:
        print(error, flush=True)
    os._exit(0)


def test_a_worker_that_is_killed_is_told_in_one_sentence():
    """In a process of its own: torch raises from a signal handler wherever Python is, also in whoever runs tests."""
    code = "from test_epoch import epoch_with_a_killed_worker; epoch_with_a_killed_worker()"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=120
    )
    assert re.match(r"The data loader, one of whose workers died before batch [123],", ran.stdout), ran.stderr


def test_a_loader_that_dies_without_workers_keeps_two_whole_batches():
    with pytest.raises(MeasurementError) as caught:
        measure_epoch(runnable(), DataLoader(Broken(file_is_gone), batch_size=4))
    assert caught.value.partial.n_samples == 8
    assert caught.value.partial.warnings[0] == "Stopped after 2 batches."


def test_a_model_that_fails_is_not_blamed_on_the_loader():
    with pytest.raises(MeasurementError, match=r"^The step on batch 1 failed .FileNotFoundError"):
        measure_epoch(runnable(file_is_gone), loader())


def test_ctrl_c_gives_the_batches_so_far():
    result = measure_epoch(runnable(), DataLoader(Broken(lambda: signal.raise_signal(signal.SIGINT)), batch_size=4))
    assert result.is_partial
    assert result.n_batches == 2


def test_an_empty_loader_is_refused():
    with pytest.raises(InputError, match="yielded no batch"):
        measure_epoch(runnable(), [])


def test_a_synthetic_data_set_travels_to_other_processes():
    data = pickle.loads(pickle.dumps(SyntheticDataset(lambda n: {"x": torch.ones(n, 3)}, 5)))  # noqa: S301
    assert len(data) == 5
    assert data[4]["x"].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(IndexError):
        data[5]


@pytest.mark.parametrize(("n_samples", "cost_s"), [(0, 0.0), (1, -1.0)])
def test_a_data_set_without_samples_or_of_negative_cost_cannot_be(n_samples, cost_s):
    with pytest.raises(InputError, match="at least 1 sample of at least 0 s"):
        SyntheticDataset(make_inputs, n_samples, cost_s)


def test_samples_of_a_batch_are_counted_wherever_the_tensors_are():
    assert n_samples_of(torch.zeros(3, 2)) == 3
    assert n_samples_of([{"a": torch.zeros(5, 1)}, torch.zeros(2)]) == 5
    assert n_samples_of({"id": ["a", "b"], "scale": torch.tensor(2.0), "x": torch.zeros(2, 3)}) == 2


def test_a_loss_that_is_no_number_is_told_with_its_batch():
    batches = [(torch.full((4, 8), float("nan") if number == 3 else 1.0),) for number in range(1, 6)]
    result = measure_epoch(runnable(), batches, optimizer="none")  # which would spread it
    assert "The loss was nan at batch 3 and not finite at 1 of 5 batches: " in result.warnings[0]


def test_the_batch_size_of_an_epoch_is_not_that_of_its_short_last_batch():
    assert measure_epoch(runnable(), loader(n_samples=18)).batch_size == 4


@pytest.mark.parametrize("n_batches", [0, -1])
def test_no_batches_cannot_be_timed(n_batches):
    with pytest.raises(InputError, match=f"{n_batches} batches cannot be timed: give 1 or more"):
        measure_epoch(runnable(), loader(), n_batches=n_batches)


def test_an_example_that_fails_for_one_sample_is_one_sentence():
    with pytest.raises(MeasurementError, match=r"An example batch of 1 sample failed \(KeyError: 1\)"):
        SyntheticDataset({2: torch.zeros(2, 8)}.__getitem__, 8)


def test_an_epoch_goes_over_the_users_own_loader_and_module_which_stays_as_it_is():
    data = torch.utils.data.TensorDataset(torch.randn(20, 8), torch.randint(2, (20,)))
    net = nn.Linear(8, 2)
    before = net.weight.clone()
    result = tc.measure_epoch(
        net,
        DataLoader(data, batch_size=4, shuffle=True),
        inputs=lambda batch: batch[0],
        loss=lambda output, batch: nn.functional.cross_entropy(output, batch[1]),
        optimizer="adam",
    )
    assert (result.model, result.batch_size, result.n_samples) == ("Linear", 4, 20)
    assert torch.equal(net.weight, before)
    with pytest.raises(MeasurementError, match="The step on batch 1 failed"):  # the label is no input of the module
        tc.measure_epoch(net, DataLoader(data, batch_size=4))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            TensorDataset(torch.zeros(8, 4)),
            r"a data set \(TensorDataset\), which yields single samples: pass DataLoader",
        ),
        ("data.csv", "should yield batches, as a torch DataLoader does, but str does not"),
        (5, "should yield batches, as a torch DataLoader does, but int does not"),
    ],
)
def test_what_gives_no_batches_is_no_loader(given, words):
    with pytest.raises(InputError, match=words):
        measure_epoch(runnable(), given)
