"""Reading timed layers, fitting networks to them, and scoring what comes out."""

import gzip

import numpy as np
import pytest

from lab.markdown import refresh
from lab.refit.layerwise.scores import Score, baseline_s, compare
from lab.refit.layerwise.train import train
from traincast.errors import FileFormatError, InputError
from traincast.hardware.catalog import find_device
from traincast.kernels.layerwise.fit import random_split
from traincast.kernels.layerwise.layer_tables import OPTIMIZERS, ConvLayers, DenseLayers
from traincast.kernels.layerwise.rows import DEVICES, LayerRows, read_layers

CONV_HEADER = (
    "run,batch,input_size,kernel,channels_in,channels_out,stride,padding,bias,activation,optimizer,backward,"
    "median_s,min_s,max_s,std_s"
)


def write_rows(folder, name, *lines):
    with gzip.open(folder / name, "wt") as file:
        file.write("\n".join(lines) + "\n")


def synthetic_rows(n_rows=1_200, seed=0):
    """Fully connected layers that take 0.2 ms, their bytes at half the bandwidth, and three times that trained."""
    rng = np.random.default_rng(seed)
    layers = DenseLayers(
        batch=rng.integers(1, 64, n_rows).astype(float),
        dim_in=rng.integers(1, 4096, n_rows).astype(float),
        dim_out=rng.integers(1, 4096, n_rows).astype(float),
        activation=rng.integers(0, 4, n_rows),
        optimizer=np.where(rng.random(n_rows) < 0.5, 0, 1),
    )
    gpu = np.array(list(DEVICES))[rng.integers(0, len(DEVICES), n_rows)]
    bandwidth = np.array([find_device(DEVICES[name]).memory_bytes_per_s for name in gpu.tolist()])
    median_s = 2e-4 + 2 * layers.forward_bytes / bandwidth * np.where(layers.has_backward, 3, 1)
    return LayerRows(layers=layers, gpu=gpu, median_s=median_s, min_s=median_s, max_s=median_s, std_s=0.01 * median_s)


def test_rows_are_read_with_their_shapes_and_times(tmp_path):
    write_rows(
        tmp_path,
        "conv_K40.csv.gz",
        CONV_HEADER,
        "0,2,10,3,4,5,2,VALID,1,relu,Adam,1,0.002,0.001,0.003,0.0005",
        "0,2,10,3,4,5,2,SAME,0,none,none,0,0.001,0.001,0.001,0",
    )
    rows = read_layers(tmp_path, "conv", gpus=["K40"])
    assert isinstance(rows.layers, ConvLayers)
    assert rows.layers.output_size.tolist() == [4, 5]  # (10 - 3) // 2 + 1, and 10 / 2
    assert rows.layers.forward_flop.tolist() == [2 * 2 * 16 * 9 * 20, 2 * 2 * 25 * 9 * 20]
    assert rows.layers.forward_bytes.tolist() == [4 * (800 + 180 + 160), 4 * (800 + 180 + 250)]
    assert rows.layers.has_backward.tolist() == [True, False]
    assert OPTIMIZERS[rows.layers.optimizer[0]] == "Adam"
    assert rows.median_s.tolist() == [0.002, 0.001]
    assert rows.gpu.tolist() == ["K40", "K40"]


def test_rows_without_a_time_are_left_out(tmp_path):
    untimed = "0,2,10,3,4,5,2,VALID,1,relu,Adam,1,,,,"
    timed = "0,4,10,3,4,5,2,VALID,1,relu,Adam,1,0.002,0.001,0.003,0.0005"
    write_rows(tmp_path, "conv_K40.csv.gz", CONV_HEADER, untimed, timed)
    assert read_layers(tmp_path, "conv", gpus=["K40"]).layers.batch.tolist() == [4]


def test_an_optimizer_that_nobody_knows_is_refused(tmp_path):
    write_rows(tmp_path, "conv_K40.csv.gz", CONV_HEADER, "0,2,10,3,4,5,2,VALID,1,relu,Lion,1,0.002,0.001,0.003,0.0005")
    with pytest.raises(FileFormatError, match="Lion"):
        read_layers(tmp_path, "conv", gpus=["K40"])


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="dense_K40"):
        read_layers(tmp_path, "dense")


def test_a_split_has_every_row_once_and_is_the_same_each_time():
    split, again = random_split(1_000), random_split(1_000)
    assert (len(split.train), len(split.validation), len(split.test)) == (800, 100, 100)
    assert sorted([*split.train, *split.validation, *split.test]) == list(range(1_000))
    assert split.test.tolist() == again.test.tolist()


def test_a_score_is_what_one_works_out_by_hand():
    score = Score.of(np.array([1.0, 3.0, 2.0]), np.array([1.0, 2.0, 4.0]))
    assert score.rmse_s == pytest.approx(np.sqrt(5 / 3))
    assert (score.n, score.median_error_fraction) == (3, 0.5)
    assert score.mean_error_fraction == pytest.approx(1 / 3)


@pytest.mark.parametrize("per_gpu", [True, False])
@pytest.mark.parametrize("relative", [True, False])
def test_the_baseline_finds_the_coefficients_that_made_the_rows(per_gpu, relative):
    rows = synthetic_rows()
    np.testing.assert_allclose(baseline_s(rows, rows, per_gpu=per_gpu, relative=relative), rows.median_s, rtol=1e-6)


def test_a_comparison_has_a_line_for_every_gpu_and_pass():
    rows = synthetic_rows()
    lines = compare(rows, 1.1 * rows.median_s, (rows.median_s, 1.2 * rows.median_s))
    assert len(lines) == 3 * (len(DEVICES) + 1)
    assert all(line.network.median_error_fraction == pytest.approx(0.1) for line in lines)
    assert all(line.baseline_median_fraction == pytest.approx(0.2) for line in lines)
    assert all(line.noise_fraction == pytest.approx(0.01) for line in lines)
    assert sum(line.network.n for line in lines if line.layer_pass == line.gpu == "all") == len(rows)


def test_training_learns_a_simple_law_and_says_how_well():
    result = train(synthetic_rows(), "dense")
    provenance = result.network.provenance
    assert provenance["n_rows"].keys() == DEVICES.keys()
    assert provenance["test"]["n"] == 120
    assert provenance["test"]["median_error_fraction"] < 0.1
    assert provenance["fastest_over_roofline"] == {"forward": 1.0, "with_backward": 3.0}
    assert {line.gpu for line in result.unseen} == {*DEVICES, "all"}


def test_tables_of_the_page_are_replaced_and_the_prose_stays():
    page = "before\n<!-- begin a -->\nold\n<!-- end a -->\nafter"
    assert refresh(page, {"a": "new"}) == "before\n<!-- begin a -->\nnew\n<!-- end a -->\nafter"
    assert refresh("<!-- begin a -->\n\n<!-- end a -->", {"a": "x"}) == "<!-- begin a -->\nx\n<!-- end a -->"


def test_a_page_without_a_place_for_a_table_is_refused():
    with pytest.raises(FileFormatError, match="no place for table 'b'"):
        refresh("<!-- begin a -->\nold\n<!-- end a -->", {"b": "new"})
