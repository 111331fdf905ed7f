"""`traincast measure --processes`: what is refused, and what is shown of a measurement."""

from __future__ import annotations

import pytest

from traincast.cli.measure_processes import is_several, run_processes
from traincast.cli.measure_processes_document import link_document, steps_document
from traincast.cli.measure_question import Outputs, Question
from traincast.errors import InputError
from traincast.measurement.environment import Environment
from traincast.measurement.processes.expected import expected_step
from traincast.measurement.processes.link_fit import fit_link, ring_bytes
from traincast.measurement.processes.link_result import AllReduceMeasurement, AllReduceRow
from traincast.measurement.processes.result import ProcessesMeasurement
from traincast.measurement.statistics import summarise
from traincast.report.json_ import to_json
from traincast.report.text import to_text

HERE = Environment(
    device="a CPU",
    device_kind="cpu",
    host="here",
    n_threads=1,
    n_cores=2,
    versions={"torch": "2.13.0"},
    clocks={},
)
MS = 1e-3
SIZES = (4096, 1_000_000)


def link(*, has_free_cores: bool = False) -> AllReduceMeasurement:
    """A millisecond of latency, 1 GB/s; copies at 2 GB/s."""
    seconds = [2 * MS + ring_bytes(size, 2) / 1e9 for size in SIZES]
    return AllReduceMeasurement(
        n_processes=2,
        backend="gloo",
        rows=tuple(
            AllReduceRow(n_bytes=size, n_processes=2, seconds=summarise([taken_s]))
            for size, taken_s in zip(SIZES, seconds, strict=True)
        ),
        link=fit_link(2, SIZES, [[taken_s] for taken_s in seconds]),
        has_free_cores=has_free_cores,
        copy_bytes_per_s=2e9,
        environment=HERE,
    )


def steps() -> ProcessesMeasurement:
    """Two buckets of 1 MB and 3 MB: a step of 50 ms, of which one process alone would need 30 ms."""
    return ProcessesMeasurement(
        model="a model",
        n_processes=2,
        batch_size=64,
        optimizer="sgd",
        precision="fp32",
        device="cpu",
        backend="gloo",
        n_threads=1,
        step=summarise([50 * MS]),
        compute=summarise([41 * MS]),
        crowded=summarise([38 * MS]),
        slowest=summarise([40 * MS]),
        alone=summarise([30 * MS]),
        exposed=summarise([9 * MS]),
        all_reduce=summarise([8 * MS]),
        phases={},
        bucket_bytes=(1_000_000, 3_000_000),
        has_buffers=False,
        peak_bus_bytes_per_s=1e9,
        environment=HERE,
        warnings=("The loss is not finite (nan, nan): times may not be typical.",),
    )


def test_a_step_is_shown_with_its_parts_and_what_they_mean():
    text = to_text(steps_document(steps(), None))
    assert "a model in 2 processes, batch 64" in text
    assert "32 samples each, 1 thread each" in text
    assert "1,280.0 samples/s; 60.0 % of 2 times one process alone." in text
    assert "3.81 MiB in 2 buckets; reduced alone they pass at 500 MB/s, 50.0 % of what one large message" in text
    assert "Warning: The loss is not finite" in text
    assert "expected" not in text


def test_with_the_link_beside_it_the_expected_step_is_shown():
    # 40 ms, and 3 ms + 5 ms for the buckets, and two copies of 4 MB at 2 GB/s.
    assert expected_step(40 * MS, (1_000_000, 3_000_000), link()).step_s == pytest.approx(52 * MS)
    text = to_text(steps_document(steps(), link()))
    assert "expected step, from the link" in text
    assert "52.0 ms" in text


def test_cores_to_spare_hide_all_buckets_but_the_last():
    taken, hidden = (expected_step(0.0, (1_000_000, 3_000_000), link(has_free_cores=free)) for free in (False, True))
    assert taken.exposed_s - hidden.exposed_s == pytest.approx(3 * MS)
    assert hidden.last_bucket_s == taken.last_bucket_s == pytest.approx(5 * MS)


def test_buffers_cost_two_messages_to_each_level_of_processes():
    with_buffers = expected_step(0.0, (1_000_000,), link(), has_buffers=True)
    assert with_buffers.buffers_s == pytest.approx(2 * MS)


def test_a_link_is_shown_by_message_size_with_what_was_fitted():
    text = to_text(link_document(link()))
    assert "All-reduce between 2 processes" in text
    assert "Fitted: a latency of 1.00 ms" in text
    assert "1.00 GB/s" in text


def test_results_can_be_written_as_json():
    assert '"bandwidth_utilisation_fraction": 0.5' in to_json(steps().to_dict())
    assert "latency_s" in to_json(link().to_dict())


@pytest.fixture
def outside(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("question", "n_processes", "all_reduce", "words"),
    [
        (Question(), 2, False, "name a model, or ask for the link"),
        (Question(model="mnist_cnn"), 2, False, "samples of all processes together"),
        (Question(), None, True, "say how many with --processes"),
        (Question(), 1, True, "give 2 or more"),
        (Question(model="mnist_cnn", batch_size=7), 2, False, "a multiple of 2"),
        (Question(model="mnist_cnn", batch_size=8, n_steps=0), 2, False, "0 steps"),
    ],
)
def test_what_cannot_be_measured_is_told_at_once(question, n_processes, all_reduce, words):
    with pytest.raises(InputError, match=words):
        run_processes(question, Outputs(), n_processes=n_processes, all_reduce=all_reduce)


@pytest.mark.usefixtures("outside")
def test_one_process_is_one_unless_several_are_asked_for_or_torchrun_started_it(monkeypatch):
    assert not is_several(None, all_reduce=False)
    assert is_several(2, all_reduce=False)
    assert is_several(None, all_reduce=True)
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}.items():
        monkeypatch.setenv(name, value)
    assert is_several(None, all_reduce=False)
    with pytest.raises(InputError, match="leave out --processes"):
        run_processes(Question(model="mnist_cnn", batch_size=8), Outputs(), n_processes=2, all_reduce=False)
