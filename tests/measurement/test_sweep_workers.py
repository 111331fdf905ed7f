"""Loader workers: the best number on a loader of known cost, and a data share that a profiler confirms."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from sweep_samples import ENVIRONMENT, SlowLinear, all_alike, runnable
from traincast.errors import InputError, MeasurementError
from traincast.measurement.epoch import EPOCH_PHASES, EpochMeasurement, measure_epoch
from traincast.measurement.sweeps.loading import BatchLoader, LoadCost, as_inputs, check_dataset, measure_load
from traincast.measurement.sweeps.workers import WorkersRow, WorkersSweep, _rows, sweep_workers
from traincast.measurement.synthetic_data import SyntheticDataset
from traincast.views.sweep import workers_document

torch.set_num_threads(1)
N_WARMUPS = 2


def inputs(batch_size):
    return (torch.zeros(batch_size, 4),)


def row(n_workers, data_s, step_s=0.020, batch_size=8):
    seconds = dict.fromkeys(EPOCH_PHASES, 0.0) | {"data": data_s, "forward": step_s}
    epoch = EpochMeasurement(
        model="m",
        batch_size=batch_size,
        optimizer="sgd",
        precision="fp32",
        device="cpu",
        n_workers=n_workers,
        n_batches=10,
        n_samples=10 * batch_size,
        phases={name: all_alike(value) for name, value in seconds.items()},
        batch=all_alike(data_s + step_s),
        start_s=0.1,
        epoch_s=1.0,
        environment=ENVIRONMENT,
    )
    return WorkersRow(n_workers=n_workers, epoch=epoch)


def sweep_of(*rows, load_s, cpu_fraction=1.0, n_cores=2):
    load = LoadCost(sample_s=load_s, cpu_fraction=cpu_fraction)
    return WorkersSweep(model="m", data="d", batch_size=8, n_cores=n_cores, load=load, rows=rows)


@pytest.mark.parametrize(("batch_ms", "step_ms"), [(100, 40), (60, 45)])
def test_enough_workers_are_found_on_a_loader_of_known_cost(batch_ms, step_ms):
    """Waiting needs no core, so on any machine a batch comes every batch_ms / workers, and no sooner than step_ms.

    Of several numbers that are enough, a busy machine decides which is a little quicker: that choice is tested on rows
    that are made up.
    """
    data = SyntheticDataset(inputs, 64, batch_ms / 1000 / 2, is_busy=False)
    sweep = sweep_workers(runnable(SlowLinear(step_ms / 1000), inputs), data, data="d", batch_size=2, n_batches=10)
    assert sweep.best.n_workers >= sweep.n_needed
    assert sweep.n_needed == math.ceil(batch_ms / step_ms)
    assert not sweep.load.is_busy
    assert f"{sweep.n_needed} worker" in sweep.verdict


def test_what_was_noticed_while_loading_is_shown_once():
    noticed = replace(
        row(0, 0.0).epoch, warnings=("The machine was busy before the measurement: a load of 9 on 2 cores.",)
    )
    rows = (WorkersRow(n_workers=0, epoch=noticed), WorkersRow(n_workers=1, epoch=noticed))
    notes = workers_document(sweep_of(*rows, load_s=1e-5)).notes
    assert [note for note in notes if note.startswith("Warning: The machine was busy")] == [notes[-1]]


@pytest.mark.parametrize("n_workers", [0, 2])
def test_the_share_of_data_loading_agrees_with_torchs_profiler(n_workers):
    data = SyntheticDataset(inputs, 64, 0.005, is_busy=False)
    loader = BatchLoader(data, inputs(1), batch_size=4, n_batches=12, num_workers=n_workers)
    with profile(activities=[ProfilerActivity.CPU]) as watched:
        epoch = measure_epoch(runnable(SlowLinear(0.002), inputs), loader, n_batches=12)
    events = [event for event in watched.events() if event.name.startswith("enumerate(DataLoader)#")]
    events.sort(key=lambda event: event.time_range.start)
    profiled_s = sum(event.cpu_time_total for event in events[N_WARMUPS : epoch.n_batches]) * 1e-6
    assert epoch.phases["data"].total == pytest.approx(profiled_s, rel=0.2, abs=0.005)
    assert epoch.data_fraction == pytest.approx(profiled_s / epoch.batch.total, abs=0.1)


def test_a_loader_that_costs_nothing_needs_no_workers():
    sweep = sweep_of(row(0, 0.0001), row(1, 0.0001), row(2, 0.0001), load_s=1e-5)
    assert sweep.best.n_workers == 0
    assert sweep.verdict.startswith("No workers are needed: 398 samples/s without, and more do not help.")


def test_where_cores_limit_that_is_the_reason():
    sweep = sweep_of(row(0, 0.080), row(1, 0.060), row(2, 0.030), row(4, 0.030), load_s=0.010)
    assert sweep.n_needed == 4
    assert sweep.best.n_workers == 2
    assert "with 2 the loop waits for data 60.0 % of its time, because 2 cores do both" in sweep.verdict


def test_a_loader_that_waits_is_not_limited_by_cores():
    sweep = sweep_of(row(0, 0.080), row(1, 0.060), load_s=0.010, cpu_fraction=0.01)
    assert "the rest waiting" in sweep.verdict
    assert "cores" not in sweep.verdict


@pytest.mark.parametrize(
    ("speeds", "tried"),
    [
        ({0: 100, 1: 101, 2: 102, 4: 300}, [0, 1, 2]),  # no gain twice: what four would do is not tried
        ({0: 100, 1: 200, 2: 201, 4: 400, 8: 400}, [0, 1, 2, 4]),  # four is the most that is allowed here
    ],
)
def test_the_sweep_ends_when_more_stops_helping_twice_or_at_the_most(speeds, tried):
    found = _rows(lambda n, step_s: row(n, data_s=0.0, step_s=8 / speeds[n]), most=4)
    assert [one.n_workers for one in found] == tried


def test_busy_and_waiting_loaders_are_told_apart_by_the_share_of_cpu_time():
    busy = measure_load(SyntheticDataset(inputs, 8, 0.002, is_busy=True), batch_size=4)
    waiting = measure_load(SyntheticDataset(inputs, 8, 0.020, is_busy=False), batch_size=4)
    # A busy loader that has to share its core shows less, but never as little as one that sleeps.
    assert busy.cpu_fraction > waiting.cpu_fraction
    assert not waiting.is_busy
    assert LoadCost(sample_s=0.01, cpu_fraction=0.9).is_busy


@pytest.mark.parametrize(
    ("batch", "like", "taken"),
    [
        ([1, 2], (0,), (1,)),  # the label is left out
        ([1, 2], (0, 0), (1, 2)),
        ([1, 2], 0, 1),
        (1, (0,), (1,)),
        (1, 0, 1),
        ({"ids": 1, "label": 2}, {"ids": 0}, {"ids": 1}),
    ],
)
def test_the_model_gets_as_much_of_a_sample_as_it_takes(batch, like, taken):
    assert as_inputs(batch, like) == taken


@pytest.mark.parametrize(
    ("batch", "like", "words"),
    [
        ([1], (0, 0), "takes 2 values without names, but a sample has 1"),
        ({"a": 1}, (0,), "takes 1 values without names, but a sample has names"),
        ({"a": 1}, {"b": 0}, "takes b, but a sample has a"),
        ([1], {"b": 0}, "takes b, but a sample is a list"),
    ],
)
def test_a_sample_that_does_not_fit_is_told_in_one_sentence(batch, like, words):
    with pytest.raises(InputError, match=words):
        as_inputs(batch, like)


@pytest.mark.parametrize(("data", "words"), [(7, "is a int"), ([], "has no samples"), ({}, "is a dict")])
def test_what_is_no_data_set_is_refused(data, words):
    with pytest.raises(InputError, match=words):
        check_dataset(data, "file.py:data")


def test_a_data_set_that_dies_is_told_in_one_sentence():
    class Broken(SyntheticDataset):
        def __getitem__(self, index):
            raise OSError("disk gone")

    with pytest.raises(MeasurementError, match="OSError: disk gone"):
        sweep_workers(runnable(nn.Linear(4, 2), inputs), Broken(inputs, 8), data="d", batch_size=2)
