"""How far equal measurements lie apart, within machines and between them."""

import json
import math

import numpy as np
import pytest

from traincast.__main__ import run
from traincast.records.environment import Environment
from traincast.records.record import Record
from traincast.records.spread import spreads_of


def record(host, step_s, number, batch_size=32):
    environment = Environment(
        device="P100-PCIe", device_kind="cuda", host=host, n_threads=1, n_cores=1, versions={}, clocks={}
    )
    task = {"model": "net", "batch_size": batch_size, "asked_s": float(number)}
    return Record(kind="step", task=task, values={"step_s": step_s}, environment=environment, created_s=0.0)


def test_two_machines_that_repeat_exactly_differ_between_only():
    (found,) = spreads_of([record("a", 1.0, 0), record("a", 1.0, 1), record("b", 1.21, 2), record("b", 1.21, 3)])
    assert found.within_log_sd == 0
    assert found.between_log_sd == pytest.approx(math.log(1.21) / math.sqrt(2))  # of two values
    assert found.slowest_over_fastest == pytest.approx(1.21)


def test_drawn_components_come_back():
    rng = np.random.default_rng(0)
    records = []
    for machine in range(200):
        own = rng.normal(0, 0.10)
        records += [record(f"m{machine}", float(np.exp(own + rng.normal(0, 0.03))), n) for n in range(5)]
    (found,) = spreads_of(records)
    assert (found.within_log_sd, found.between_log_sd) == pytest.approx((0.03, 0.10), rel=0.1)


def test_what_differs_in_its_settings_is_not_equal():
    assert spreads_of([record("a", 1.0, 0), record("b", 2.0, 1, batch_size=64)]) == ()


def test_leases_of_one_gpu_from_a_table(tmp_path, capsys):
    table, store = tmp_path / "leases.csv", str(tmp_path / "measured.db")
    rows = [f"net,256,P100-PCIe,{lease},{seconds}" for lease, seconds in (("1", 1.0), ("1", 1.02), ("2", 1.1))]
    table.write_text("model,batch_size,device,lease,step_s\n" + "\n".join(rows) + "\n")
    assert run(["records", store, "--import", str(table), "--spread", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["spreads"]
    assert (found["n_machines"], found["n"]) == (2, 3)
    assert found["slowest_over_fastest"] == pytest.approx(1.1 / 1.01)
    assert run(["records", store, "--spread"]) == 0
    assert "the slowest 8.9 % above the fastest" in " ".join(capsys.readouterr().out.split())


def test_a_store_without_repeats_is_told_so(tmp_path, capsys):
    table, store = tmp_path / "one.csv", str(tmp_path / "measured.db")
    table.write_text("model,batch_size,step_s\nnet,8,1\n")
    assert run(["records", store, "--import", str(table), "--spread"]) == 2
    assert "holds nothing that was measured twice" in capsys.readouterr().err
