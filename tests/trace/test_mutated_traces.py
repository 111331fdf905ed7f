"""Traces that are whole as files and wrong inside: refused on load in a sentence, or good for finite answers."""

import contextlib
import json
import math
import struct
import zlib
from importlib import resources

import numpy as np
import pytest
import torch
from torch import nn

import traincast as tc
from traincast.errors import FileFormatError, TraincastError
from traincast.trace.check import check_step
from traincast.trace.file import parse_trace

N_MUTANTS = 80
NUMBERS = (0, -1, 1, 2, 3, 13, 14, 2**31, 2**39, -(2**39), 2**62, -(2**63))
LEAVES = (None, True, 0, -1, 2**31, 10**30, 1.5, math.nan, math.inf, "", "lstm", [], {}, [1], ["batch", 1, 1])
NAMES = (
    "aten.mm",
    "aten.mv",
    "aten.bmm",
    "aten.dot",
    "aten.convolution",
    "aten.convolution_backward",
    "aten.add",
    "aten.cat",
    "aten.sum",
    "aten.mean",
    "aten._softmax",
    "aten.batch_norm",
    "aten.native_layer_norm",
    "aten.native_dropout",
    "aten.native_dropout_backward",
    "aten.embedding",
    "aten.nll_loss_forward",
    "aten.nll_loss_backward",
    "aten.max_pool2d_with_indices",
    "aten.copy_",
    "x",
    "traincast.attention",
    "traincast.attention_backward",
    "traincast.rms_norm",
    "traincast.rms_norm_backward",
    "traincast.rnn",
    "traincast.rnn_backward",
    "traincast.request_dtype",
)


class Mixed(nn.Module):
    """Small, with all that lowering treats in a way of its own."""

    def __init__(self):
        super().__init__()
        self.images = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.steps, self.norm, self.mix = nn.LSTM(9, 8, batch_first=True), nn.RMSNorm(8), nn.Linear(8, 24)
        self.drop, self.head = nn.Dropout(0.1), nn.Linear(8, 5)

    def forward(self, images):
        rows, _ = self.steps(self.images(images).flatten(2))
        query, key, value = self.mix(self.norm(rows)).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=0.1)
        return self.head(self.drop(mixed).transpose(1, 2).flatten(2)).softmax(-1)


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "mixed.trace"
    tc.capture(Mixed(), lambda batch_size: torch.zeros(batch_size, 3, 14, 14)).save(path)
    shipped = resources.files("traincast").joinpath("data/zoo/mnist_cnn.trace").read_bytes()
    return {"mixed": path.read_bytes(), "mnist_cnn": shipped}


def taken_apart(content):
    """The header and the arrays of a file."""
    plain = zlib.decompress(content.partition(b"\n")[2])
    (length,) = struct.unpack_from("<Q", plain)
    header, offset, arrays = json.loads(plain[8 : 8 + length]), 8 + length, {}
    for name, dtype, count in header.pop("arrays"):
        arrays[name] = np.frombuffer(plain, dtype, count, offset).astype(np.int64)
        offset += count * np.dtype(dtype).itemsize
    return header, arrays


def put_together(header, arrays):
    header = {**header, "arrays": [[name, "<i8", len(array)] for name, array in arrays.items()]}
    text = json.dumps(header).encode()
    body = struct.pack("<Q", len(text)) + text + b"".join(array.astype("<i8").tobytes() for array in arrays.values())
    return b"traincast-trace 1\n" + zlib.compress(body, 1)


def one_of(random, values):
    return values[int(random.integers(len(values)))]


def one_leaf_changed(random, value):
    if isinstance(value, dict) and value:
        key = one_of(random, list(value))
        return {name: one_leaf_changed(random, old) if name == key else old for name, old in value.items()}
    if isinstance(value, list) and value and random.random() < 0.9:
        place = int(random.integers(len(value)))
        return [one_leaf_changed(random, old) if number == place else old for number, old in enumerate(value)]
    return one_of(random, LEAVES)


def change_array(random, arrays):
    name = one_of(random, list(arrays))
    array = arrays[name]
    place, other = (int(random.integers(len(array))) for _ in range(2))
    match int(random.integers(5)):
        case 0:
            array[[place, other]] = array[[other, place]]
        case 1:
            array[place] += one_of(random, (-1, 1))
        case 2:
            array[place] = one_of(random, NUMBERS)
        case 3:
            array[place] = random.integers(0, max(int(array.max()), 1) + 1)
        case 4:
            arrays[name] = np.delete(array, place)


def change_header(random, header):
    part = one_of(random, ("names", "attributes", "attributes", "modules", "parameters", "call_functions", "mode"))
    if part == "names":
        header["names"][int(random.integers(len(header["names"])))] = one_of(random, NAMES)
    elif part == "attributes":
        place = int(random.integers(len(header["attributes"])))
        changed = one_leaf_changed(random, json.loads(header["attributes"][place]))
        if isinstance(changed, dict) and random.random() < 0.3:
            changed.pop(one_of(random, list(changed)), None) if changed else None
        header["attributes"][place] = json.dumps(changed)
    else:
        header[part] = one_leaf_changed(random, header[part])


def mutated(random, content):
    header, arrays = taken_apart(content)
    for _ in range(int(random.integers(1, 3))):
        if random.random() < 0.6:
            change_array(random, arrays)
        else:
            change_header(random, header)
    return put_together(header, arrays)


def answers(trace):
    yield tc.estimate_memory(trace, 8, on="T4").to_dict()
    yield tc.forecast(trace, "T4", 64, n_samples=1000).to_dict()
    yield tc.forecast(trace, "generic-cpu", 3, precision="amp-bf16", optimizer="adam").to_dict()
    yield tc.forecast(trace, "2xV100-SXM2-16GB", 64, precision="amp-fp16", optimizer="adamw", compiled=True).to_dict()
    yield tc.forecast(trace, "T4", 64, method="paleo").to_dict()
    yield [[layer.flop, layer.moved_bytes, layer.n_parameters] for layer in trace.layers(5)]
    yield trace.covered_flop_fraction, trace._repr_html_()


def are_sound(value):
    if isinstance(value, dict):
        return all(are_sound(part) for part in value.values())
    if isinstance(value, list | tuple):
        return all(are_sound(part) for part in value)
    return not isinstance(value, int | float) or (math.isfinite(value) and value >= 0)


def loaded_or_refused(content):
    """The trace, or none where one sentence says why not."""
    try:
        return parse_trace(content, where="'x.trace'")
    except FileFormatError as error:
        message = str(error)
    assert message.startswith("'x.trace' ")
    assert "\n" not in message
    return None


@pytest.mark.parametrize("name", ["mixed", "mnist_cnn"])
def test_a_mutant_is_refused_on_load_or_gives_finite_answers(contents, name):
    random, n_loaded = np.random.default_rng(19), 0
    for number in range(N_MUTANTS):
        trace = loaded_or_refused(mutated(random, contents[name]))
        n_loaded += trace is not None
        with contextlib.suppress(TraincastError):  # a step so large that no answer fits a device
            assert trace is None or all(are_sound(answer) for answer in answers(trace)), number
    assert N_MUTANTS / 10 < n_loaded < N_MUTANTS * 9 / 10


def reads_what_is_made_later(header, arrays):
    arrays["op_inputs.values"][0] = arrays["op_outputs.values"][-1]


def makes_a_tensor_twice(header, arrays):
    arrays["op_outputs.values"][1] = arrays["op_outputs.values"][0]


def frees_a_storage_before_its_last_use(header, arrays):
    place = int(np.flatnonzero(arrays["storage_free"] == len(arrays["op_name"]))[0])
    arrays["storage_free"][place] = arrays["storage_alloc"][place] + 1


def has_a_negative_side(header, arrays):
    arrays["dim_base"][0] = -5


def has_more_elements_than_can_be_counted(header, arrays):
    arrays["dim_base"][:4] = 2**39


def multiplies_what_is_no_matrix(header, arrays):
    header["names"][header["names"].index("aten.relu_")] = "aten.mm"


def has_no_stride(header, arrays):
    header["attributes"] = [text.replace('"stride"', '"strode"') for text in header["attributes"]]


def follows_an_op_that_comes_later(header, arrays):
    arrays["op_forward"][0] = len(arrays["op_name"]) - 1


@pytest.mark.parametrize(
    ("damage", "part"),
    [
        (reads_what_is_made_later, "inputs"),
        (makes_a_tensor_twice, "outputs"),
        (frees_a_storage_before_its_last_use, "lifetimes"),
        (has_a_negative_side, "dimensions"),
        (has_more_elements_than_can_be_counted, "dimensions"),
        (multiplies_what_is_no_matrix, r"ops aten\.mm"),
        (has_no_stride, r"ops aten\.convolution"),
        (follows_an_op_that_comes_later, "forward ops"),
    ],
)
def test_the_sentence_names_what_does_not_fit(contents, damage, part):
    header, arrays = taken_apart(contents["mnist_cnn"])
    damage(header, arrays)
    with pytest.raises(FileFormatError, match=rf"^'x\.trace' is damaged: its .*{part}.* do not fit together\."):
        parse_trace(put_together(header, arrays), where="'x.trace'")


def test_taking_a_trace_apart_and_putting_it_together_damages_nothing(contents):
    for content in contents.values():
        parse_trace(put_together(*taken_apart(content)), where="'x.trace'")


def test_shipped_traces_would_stand_the_check_that_is_left_out_for_them():
    for file in resources.files("traincast").joinpath("data/zoo").iterdir():
        if file.name.endswith(".trace"):
            check_step(parse_trace(file.read_bytes(), where=file.name, is_shipped=True).graph, where=file.name)


def test_a_model_that_runs_nothing_is_refused_by_name():
    with pytest.raises(TraincastError, match=r"^Identity runs no operation"):
        tc.capture(nn.Identity(), lambda batch_size: torch.zeros(batch_size, 3), mode="inference")
