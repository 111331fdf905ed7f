"""From one's own layer benchmarks to weights, and from weights to a forecast."""

import numpy as np
import pytest

import traincast as tc
from traincast.__main__ import run
from traincast.api.layer_model import train_layer_model
from traincast.errors import TraincastError
from traincast.records.environment import Environment
from traincast.records.record import Record
from traincast.records.store import Store


def dense_record(number, device, rng):
    """A layer that takes 1e-12 s a multiply-add, and thrice that with its backward pass."""
    batch, dim_in, dim_out = (int(2 ** rng.uniform(3, 10)) for _ in range(3))
    forward_s = 1e-4 + 1e-12 * batch * dim_in * dim_out
    values = {}
    for name, seconds in (("forward_s", forward_s), ("step_s", 3 * forward_s)):
        values |= {name: seconds, f"min_{name}": seconds, f"max_{name}": seconds, f"std_{name}": 0.0}
    task = {"layer": "dense", "batch": batch, "dim_in": dim_in, "dim_out": dim_out, "activation": "relu"}
    environment = Environment(
        device=device, device_kind="cuda", host="here", n_threads=1, n_cores=1, versions={}, clocks={}
    )
    return Record(
        kind="layer",
        task={**task, "optimizer": "sgd", "row": number},
        values=values,
        environment=environment,
        created_s=0,
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    pytest.importorskip("sklearn")
    folder, rng = tmp_path_factory.mktemp("layers"), np.random.default_rng(0)
    with Store(folder / "mine.db") as store:
        store.add_all([dense_record(number, "Tesla T4", rng) for number in range(150)])
    return train_layer_model(str(folder / "mine.db"), out=folder / "mine.npz")


def test_a_simple_law_is_learnt_from_one_s_own_layers(trained):
    (score,) = trained.scores
    assert (score.kind, score.n_train, score.n_test) == ("dense", 240, 30)  # forward alone, and with backward
    assert score.median_error_fraction < 0.15 < score.constant_median_error_fraction


def test_weights_answer_a_forecast_and_say_where_they_are_from(trained, tmp_path):
    found = tc.forecast("mnist_cnn", "T4", 8, method="layerwise", layer_weights=None)
    with pytest.raises(TraincastError, match="learnt from dense layers, and the model has conv ones"):
        tc.forecast("mnist_cnn", "T4", 8, method="layerwise", layer_weights=trained.path)
    assert found.step_s > 0


def test_the_command_shows_its_errors_beside_those_published(trained, capsys, tmp_path):
    out = tmp_path / "again.npz"
    assert run(["train", "layer-model", "--from", trained.store, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "3.88 ms" in printed
    assert "8.45 ms" in printed
    assert out.read_bytes() == trained.path.read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "traincast"}, "have no effect with traincast"),
        ({"method": "layerwise"}, "is not a file of weights"),
    ],
)
def test_weights_that_mean_nothing_are_refused(options, words, tmp_path):
    file = tmp_path / "weights.npz"
    file.write_text("no weights")
    with pytest.raises(TraincastError, match=words):
        tc.forecast("mnist_cnn", "T4", 8, layer_weights=file, **options)


def test_too_few_layers_are_told_so(tmp_path):
    with Store(tmp_path / "few.db") as store:
        store.add_all([dense_record(number, "Tesla T4", np.random.default_rng(number)) for number in range(5)])
    with pytest.raises(TraincastError, match="10 timed dense layers are too few"):
        train_layer_model(str(tmp_path / "few.db"), out=tmp_path / "few.npz")
