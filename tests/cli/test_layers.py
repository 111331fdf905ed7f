"""`traincast layers`, from the command line to the exit code."""

import json

import pytest

from traincast.__main__ import run


def answer(capsys, *arguments):
    assert run(["layers", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_resnet18_has_twenty_convolutions(capsys):
    kinds = {row["kind"]: row for row in answer(capsys, "resnet18", "--by", "kind")["layers"]}
    assert kinds["Conv2d"]["n_layers"] == 20


def test_nearly_all_flop_of_vgg19_are_convolutions(capsys):
    kinds = {row["kind"]: row for row in answer(capsys, "vgg19", "--by", "kind")["layers"]}
    assert kinds["Conv2d"]["flop_fraction"] == pytest.approx(0.99, abs=0.01)
    assert kinds["Conv2d"]["n_layers"] == 16
    assert kinds["Linear"]["n_layers"] == 3


def test_a_convolution_has_the_flop_that_one_counts_by_hand(capsys):
    rows = {row["path"]: row for row in answer(capsys, "mnist_cnn", "--batch", "8")["layers"]}
    first = rows["features.conv1"]
    assert first["input_shape"] == [8, 1, 28, 28]
    assert first["output_shape"] == [8, 32, 26, 26]
    assert first["n_parameters"] == 3 * 3 * 1 * 32 + 32
    assert first["forward_flop"] == 2 * 8 * 26 * 26 * 32 * 9
    assert first["backward_flop"] == first["forward_flop"]  # the image needs no gradient
    assert rows["features.conv2"]["backward_flop"] == 2 * rows["features.conv2"]["forward_flop"]


def test_layers_add_up_to_the_model(capsys):
    whole = answer(capsys, "googlenet", "--batch", "3")
    assert sum(row["forward_flop"] for row in whole["layers"]) == whole["forward_flop"]
    assert sum(row["backward_flop"] for row in whole["layers"]) == whole["backward_flop"]
    assert sum(row["n_parameters"] for row in whole["layers"]) == whole["n_parameters"] == 6_624_904
    assert sum(row["flop_fraction"] for row in whole["layers"]) == pytest.approx(1)


def test_a_tree_shows_the_modules_around_the_layers_as_totals(capsys):
    rows = {row["path"]: row for row in answer(capsys, "mnist_cnn", "--tree")["layers"]}
    assert rows[""]["n_parameters"] == 24_330
    assert rows["features"]["n_parameters"] == 18_816
    assert rows["features"]["flop"] == sum(row["flop"] for path, row in rows.items() if path.startswith("features."))


def test_an_ideal_k80_needs_flop_over_peak(capsys):
    whole = answer(capsys, "resnet50", "--on", "K80", "--batch", "16")
    assert whole["device"] == "K80-die"
    (first,) = [row for row in whole["layers"] if row["path"] == "conv1"]
    assert first["ideal_s"] == pytest.approx(first["flop"] / 4.37e12)


def test_the_ideal_rate_is_told(capsys):
    assert run(["layers", "resnet50", "--on", "T4", "--batch", "32", "--precision", "amp-fp16"]) == 0
    out = capsys.readouterr().out
    assert "peak of T4 (65.0 Tflop/s, fp16)" in out
    assert "samples/s" in out


@pytest.mark.parametrize(("order", "key"), [("flop", "flop"), ("bytes", "moved_bytes"), ("parameters", "n_parameters")])
def test_rows_can_be_sorted_and_cut(capsys, order, key):
    rows = answer(capsys, "alexnet", "--sort", order, "--top", "5")["layers"]
    assert len(rows) == 5
    assert rows == sorted(rows, key=lambda row: -row[key])


def test_options_of_a_model_change_it(capsys):
    assert answer(capsys, "resnet18", "--n-classes", "10")["n_parameters"] == 11_689_512 - 990 * 513


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["resnt50"], "No model named 'resnt50'. Close names: resnet50"),
        (["resnet50", "--batch", "0"], "--batch cannot be 0: give a whole number of at least 1"),
        (["resnet50", "--batch", "-4"], "--batch cannot be -4: give a whole number of at least 1"),
        (["resnet50", "--batch", "99999999999"], "batch size 99,999,999,999 is out of range"),
        (["resnet50", "--on", "v100"], "'v100' could mean V100-PCIe-16GB"),
        (["resnet50", "--on", "gtx9999"], "No device named 'gtx9999'"),
        (["resnet50", "--seqlen", "8"], "resnet50 takes no option 'seqlen'"),
        (["resnet50", "--precision", "fp8", "--on", "T4"], "T4 has no fp8 units: choose precision amp-fp16"),
        (["nowhere/config.json"], "There is no file 'nowhere/config.json'"),
        (["resnet50", "--tree", "--by", "kind"], "--tree cannot be True"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(capsys, arguments, words):
    assert run(["layers", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("Error: ")
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_page_has_the_chart_and_the_table(capsys, tmp_path):
    page = tmp_path / "layers.html"
    assert run(["layers", "resnet18", "--html", str(page)]) == 0
    text = page.read_text()
    assert "Flop of one step of resnet18" in text
    assert "layer4.1.conv2" in text


def test_tied_weights_are_marked_and_a_sum_counts_them_once(capsys):
    whole = answer(capsys, "gpt2")
    rows = {row["path"]: row for row in whole["layers"]}
    assert rows["lm_head"]["tied_to"] == ["transformer.wte"]
    assert rows["lm_head"]["n_tied_parameters"] == rows["lm_head"]["n_parameters"] == 50_257 * 768
    counted = sum(row["n_parameters"] - row["n_tied_parameters"] for row in whole["layers"])
    assert counted == whole["n_parameters"] == 124_439_808
    assert sum(row["n_parameters"] for row in answer(capsys, "gpt2", "--by", "kind")["layers"]) == 124_439_808


def test_the_table_says_which_layers_share_their_weights(capsys):
    assert run(["layers", "gpt2", "--sort", "parameters", "--top", "2"]) == 0
    printed = capsys.readouterr().out
    assert "lm_head (tied)" in printed
    assert "lm_head shares 38,597,376 parameters with transformer.wte: sums count them once." in printed


def test_around_all_that_share_a_weight_a_total_is_not_tied(capsys):
    rows = {row["path"]: row for row in answer(capsys, "gpt2", "--tree")["layers"]}
    assert (rows[""]["n_parameters"], rows[""]["n_tied_parameters"]) == (124_439_808, 0)
    assert (rows["lm_head"]["n_tied_parameters"], rows["transformer"]["n_tied_parameters"]) == (38_597_376, 0)
