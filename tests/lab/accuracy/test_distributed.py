"""Measured runs on many devices beside ours: reading, predicting, fitting links."""

import numpy as np
import pytest

import traincast as tc
from lab.accuracy.distributed.links import fit_links
from lab.accuracy.distributed.rows import Job, ParallelRow, Steps
from lab.accuracy.distributed.sources import gavel_rows, load_trace, pollux_rows
from traincast.errors import InputError
from traincast.scaling.collectives import Wire
from traincast.scaling.hierarchy import Network
from traincast.trace.settings import Settings

JOB = Job(tc.load_model("resnet18"), Settings("fp32", "sgd"), "T4")


def row(placement, *, batch=8, step_s=1.0, one_device_s=0.5):
    return ParallelRow(
        job=JOB, placement=placement, local_batch=batch, step_s=step_s, one_device_s=one_device_s, tags={}
    )


def links(gb_per_s):
    return lambda each: Network(Wire(5e-6, 10e9), Wire(3e-5, gb_per_s * 1e9), each.placement)


def test_a_row_is_predicted_at_its_own_batch_and_placement():
    steps = Steps([row((1,)), row((4,)), row((4, 4)), row((4, 4), batch=64)])
    found = steps.predict(links(0.5))
    assert found.step_s[0] == pytest.approx(found.one_device_s[0])
    assert found.step_s[1] < found.step_s[2] < found.step_s[3]
    assert found.one_device_s[2] < found.one_device_s[3]
    assert found.efficiency[2] < found.efficiency[3] < 1  # a larger batch hides more


def test_a_measured_step_of_one_device_takes_the_place_of_ours():
    found = Steps([row((2,), one_device_s=0.75)], is_given=True).predict(links(1.0))
    assert found.one_device_s == pytest.approx([0.75])


def test_links_are_found_again_from_what_they_make():
    placements = [(1, 1), (2, 2), (4, 4), (1,) * 4]
    steps = Steps([row(placement, batch=batch) for placement in placements for batch in (4, 16)])
    made = steps.predict(links(0.8)).step_s
    again = Steps(
        [row(each.placement, batch=each.local_batch, step_s=s) for each, s in zip(steps.rows, made, strict=True)]
    )
    point = fit_links(again, lambda p: links(float(np.exp(p[0]))), np.log([0.2]), range(len(made)), of_efficiency=False)
    assert np.exp(point[0]) == pytest.approx(0.8, rel=0.03)


def test_placements_are_one_digit_a_server_or_spread_evenly(tmp_path):
    (tmp_path / "distributed").mkdir()
    header = "app,table,placement,num_nodes,num_gpus,local_batch,global_batch,step_time_s,sync_time_s,compute_time_s"
    rows = ["cifar10,placements,13.0,2,4,32,128,0.19,0.15,0.04", "cifar10,scalability,,6,8,32,256,0.14,0.1,0.04"]
    (tmp_path / "distributed" / "pollux_t4_steps.csv").write_text("\n".join([header, *rows]) + "\n")
    assert [each.placement for each in pollux_rows(tmp_path)] == [(1, 3), (2, 2, 1, 1, 1, 1)]


def test_a_trace_that_was_not_captured_is_named(tmp_path):
    with pytest.raises(InputError, match=r"has no trace 'gavel--lm': make it with benchmarks/capture_models\.py"):
        load_trace(tmp_path, "gavel--lm")
    (tmp_path / "distributed").mkdir()
    (tmp_path / "distributed" / "gavel_k80_p100.csv").write_text("table,ran,model\n")
    with pytest.raises(InputError, match="gavel--lm"):
        gavel_rows(tmp_path, tmp_path)
