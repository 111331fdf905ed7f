"""A trace file: what was saved comes back, and what is no trace is refused in a sentence that names the file."""

import contextlib
import itertools
import json
import struct
import subprocess
import sys
import zlib
from dataclasses import fields
from importlib import resources

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from traincast.errors import FileFormatError, InputError
from traincast.trace.file import MAGIC, parse_trace, read_trace
from traincast.trace.graph import Graph, Ragged
from traincast.trace.settings import OPTIMIZERS, PRECISIONS, Settings

CONTENT = resources.files("traincast").joinpath("data/zoo/mnist_cnn.trace").read_bytes()


def arrays(trace):
    found = {"gradient_of": trace.gradient_of, "op_call": trace.op_call}
    for field in fields(Graph):
        value = getattr(trace.graph, field.name)
        if isinstance(value, Ragged):
            found |= {f"{field.name}.start": value.start, f"{field.name}.values": value.values}
        else:
            found[field.name] = value
    return found


def rewritten(change):
    """The file with its header changed."""
    head, _, body = CONTENT.partition(b"\n")
    plain = zlib.decompress(body)
    (length,) = struct.unpack_from("<Q", plain)
    header = json.loads(plain[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    return head + b"\n" + zlib.compress(struct.pack("<Q", len(text)) + text + plain[8 + length :])


@given(
    widths=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    precision=st.sampled_from(PRECISIONS),
    optimizer=st.sampled_from(OPTIMIZERS),
    mode=st.sampled_from(["train", "inference"]),
    batch=st.integers(1, 500),
)
def test_what_was_saved_comes_back(tmp_path_factory, widths, precision, optimizer, mode, batch):
    sizes = [7, *widths]
    module = torch.nn.Sequential(*(torch.nn.Linear(*pair) for pair in itertools.pairwise(sizes)))
    saved = tc.capture(module, torch.zeros(2, 7), precision=precision, optimizer=optimizer, mode=mode)
    path = tmp_path_factory.mktemp("traces") / "net.trace"
    saved.save(path)
    loaded = tc.load_model(path)
    before, after = arrays(saved), arrays(loaded)
    assert before.keys() == after.keys()
    for name, array in before.items():
        assert np.array_equal(array, after[name]), name
        assert isinstance(array, tuple) or array.dtype == after[name].dtype
    assert loaded.layers(batch) == saved.layers(batch)
    assert (loaded.name, loaded.mode, loaded.defaults) == (saved.name, saved.mode, Settings(precision, optimizer))
    assert (loaded.provenance, loaded.call_functions) == (saved.provenance, saved.call_functions)
    assert repr(loaded) == repr(saved)


def test_assumptions_and_uncosted_ops_are_saved(tmp_path):
    trace = tc.capture(Sorting(), torch.zeros(2, 4, 4))
    assert (trace.uncosted_ops, len(trace.assumptions)) == (("aten._linalg_svd",), 1)
    trace.save(tmp_path / "net.trace")
    loaded = tc.load_model(tmp_path / "net.trace")
    assert (loaded.uncosted_ops, loaded.assumptions) == (trace.uncosted_ops, trace.assumptions)
    assert loaded.covered_flop_fraction == trace.covered_flop_fraction


class Sorting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        if (x > 0).any():
            return x * self.weight
        return torch.linalg.svdvals(x) * self.weight


def test_a_file_cut_at_any_byte_is_refused():
    for length in range(len(CONTENT)):
        with pytest.raises(FileFormatError, match=r"^'cut\.trace' is [^\n]+\.$"):
            parse_trace(CONTENT[:length], where="'cut.trace'")


@given(position=st.integers(0, len(CONTENT) - 1), bit=st.integers(0, 7))
def test_a_file_with_a_flipped_bit_is_refused_or_the_same(position, bit):
    flipped = bytearray(CONTENT)
    flipped[position] ^= 1 << bit
    with contextlib.suppress(FileFormatError):  # a few bits of zlib's own header are of no consequence
        assert parse_trace(bytes(flipped), where="'x.trace'").layers(3) == tc.load_model("mnist_cnn").layers(3)


@given(content=st.binary(max_size=200))
def test_a_foreign_file_is_refused(content):
    with pytest.raises(FileFormatError, match="is not a traincast trace"):
        parse_trace(content, where="'x.trace'")


@given(body=st.binary(max_size=200), compressed=st.booleans())
def test_a_file_that_only_begins_like_a_trace_is_refused(body, compressed):
    with pytest.raises(FileFormatError, match=r"^'x\.trace' is truncated or damaged"):
        parse_trace(MAGIC + b"1\n" + (zlib.compress(body) if compressed else body), where="'x.trace'")


@pytest.mark.parametrize("version", [b"2", b"0", b"", b"1.0", b"\xff"])
def test_a_trace_of_another_version_is_refused_with_both_versions(tmp_path, version):
    path = tmp_path / "old.trace"
    path.write_bytes(MAGIC + version + b"\n" + CONTENT.partition(b"\n")[2])
    with pytest.raises(
        FileFormatError, match=r"old\.trace' is a trace of format .*, but this traincast reads format 1"
    ):
        read_trace(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.pop("arrays"),
        lambda header: header.pop("modules"),
        lambda header: header.update(arrays=header["arrays"][1:]),
        lambda header: header["arrays"][0].__setitem__(2, 10**6),
        lambda header: header["arrays"][0].__setitem__(1, "<f4"),
        lambda header: header["arrays"][0].__setitem__(1, "|O"),
        lambda header: header.update(names=header["names"][:1]),
        lambda header: header.update(attributes=[]),
        lambda header: header.update(precision="fp7"),
        lambda header: header.update(parameters=[["w"]]),
        lambda header: header.update(names=None),
        lambda header: header["parameters"][0].__setitem__(1, 10**6),
        lambda header: header["modules"].pop(),
        lambda header: header["modules"][1].__setitem__(2, 10**6),
        lambda header: header.update(attributes=["no json"] * len(header["attributes"])),
        lambda header: header.update(attributes=["[]"] * len(header["attributes"])),
        lambda header: header.update(names=[1] * len(header["names"])),
        lambda header: header.update(mode="zzz"),
        lambda header: header.update(call_functions=[]),
        lambda header: header["arrays"][0].__setitem__(2, -1),
        lambda header: header["arrays"][0].__setitem__(2, 10**30),
    ],
)
def test_a_header_that_does_not_fit_is_refused(change):
    with pytest.raises(FileFormatError, match=r"^'x\.trace' is (truncated or )?damaged"):
        parse_trace(rewritten(change), where="'x.trace'")


def test_a_header_that_was_not_changed_is_read():
    assert parse_trace(rewritten(lambda header: None), where="'x'").n_parameters == 24_330


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"^Cannot read '.*none\.trace': No such file or directory\.$"):
        read_trace(tmp_path / "none.trace")
    with pytest.raises(InputError, match=r"^Cannot read '.*': Is a directory\.$"):
        read_trace(tmp_path)


def test_saving_where_there_is_no_folder_says_so(tmp_path):
    with pytest.raises(InputError, match=r"no/net\.trace"):
        tc.load_model("mnist_cnn").save(tmp_path / "no" / "net.trace")


def test_loading_asking_and_estimating_import_no_torch(tmp_path):
    path = tmp_path / "net.trace"
    tc.load_model("mnist_cnn").save(path)
    code = f"""
import sys, traincast
trace = traincast.load_model({str(path)!r})
traincast.load_model("resnet50").layers(2)
traincast.estimate_memory(trace, 8, on="T4", precision="amp-fp16", optimizer="adam")
assert not {{"torch", "transformers", "keras", "onnx"}} & set(sys.modules)
print(trace.n_parameters)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("24330\n", "")
