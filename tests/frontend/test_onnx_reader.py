"""An ONNX file becomes a torch module that computes, trains and counts like the net it came from."""

import sys
import warnings

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from step_on_meta import run_on_meta
from torch import nn
from torch.nn import functional

from traincast.errors import CaptureError, FileFormatError, InputError, MissingExtraError, UnknownModelError
from traincast.frontend.capturing.capture import capture
from traincast.frontend.onnx_model.reader import read_onnx
from traincast.frontend.source import load
from traincast.frontend.step import TrainingStep

WIDTH, STEPS, N_WORDS = 16, 4, 30


class SmallCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(16)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = functional.max_pool2d(torch.relu(self.norm1(self.first(x))), 2)
        x = functional.hardswish(self.norm2(self.second(x)))
        return self.head(self.drop(functional.adaptive_avg_pool2d(x, 1).flatten(1)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(2, 8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.grouped = nn.Conv2d(8, 8, (1, 3), padding=(0, 1), groups=2)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.slope = nn.PReLU(4)
        self.head = nn.Linear(4 * 16 * 16, 5)

    def forward(self, x):
        x = functional.silu(self.norm(self.stem(x)))
        x = x + self.grouped(functional.leaky_relu(self.depthwise(x)))
        return self.head(self.slope(self.up(x)).flatten(1))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(N_WORDS, WIDTH)
        self.positions = nn.Parameter(torch.randn(1, STEPS, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 32, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, N_WORDS)

    def forward(self, x):
        return self.head(self.layers(self.words(x) + self.positions))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.words = nn.Embedding(N_WORDS, WIDTH)
        self.rnn = kind(WIDTH, 12, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        return self.head(self.rnn(self.words(x))[0][:, -1])


class Masked(nn.Module):
    """One head of causal attention: the mask is a buffer, not a weight."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.register_buffer("mask", torch.full((STEPS, STEPS), float("-inf")).triu(1))

    def forward(self, x):
        query, key, value = self.project(x).chunk(3, dim=-1)
        scores = query @ key.transpose(1, 2) / WIDTH**0.5 + self.mask
        return scores.softmax(-1) @ value


def images(batch_size):
    return torch.randn(batch_size, 3, 8, 8)


def words(batch_size):
    return torch.randint(0, N_WORDS, (batch_size, STEPS))


def rows(batch_size):
    return torch.randn(batch_size, STEPS, WIDTH)


NETS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(WIDTH, 32), nn.Tanh(), nn.Linear(32, 4)), rows),
    "cnn": (SmallCnn, images),
    "residual": (Residual, images),
    "encoder": (Encoder, words),
    "masked": (Masked, rows),
    "lstm": (lambda: Recurrent(nn.LSTM), words),
    "gru": (lambda: Recurrent(nn.GRU), words),
}


def export(net, inputs, path, *, exporter, dynamic=True, train=False):
    """Both of torch's exporters warn about their own deprecated parts, which are none of our business."""
    net.train(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "new":
            shapes = ({0: torch.export.Dim("batch")},) if dynamic else None
            torch.onnx.export(net, (inputs,), path, dynamo=True, dynamic_shapes=shapes, verbose=False)
        else:
            torch.onnx.export(
                net,
                (inputs,),
                path,
                dynamo=False,
                input_names=["x"],
                dynamic_axes={"x": {0: "batch"}} if dynamic else None,
                training=torch.onnx.TrainingMode.TRAINING if train else torch.onnx.TrainingMode.EVAL,
                do_constant_folding=not train,
            )


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The net, its inputs and the file that it was exported to; each is exported once."""
    made = {}

    def get(name, exporter, *, train=False, batch=None):
        key = (name, exporter, train, batch)
        if key not in made:
            torch.manual_seed(0)
            build, example = NETS[name]
            net = build()
            for parameter in net.parameters():  # the newer exporter merges weights that are equal, as fresh ones are
                nn.init.uniform_(parameter, 0.05, 0.3)
            path = tmp_path_factory.mktemp("onnx") / f"{name}.onnx"
            export(net, example(batch or 2), path, exporter=exporter, dynamic=batch is None, train=train)
            made[key] = (net, example, path)
        return made[key]

    return get


def n_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


CASES = [(name, "old") for name in NETS] + [(name, "new") for name in ("residual", "encoder", "masked", "lstm")]


@pytest.mark.parametrize(("name", "exporter"), CASES)
def test_the_module_computes_what_the_original_computes(exported, name, exporter):
    net, example, path = exported(name, exporter)
    inputs = example(5)
    read = read_onnx(path, with_weights=True).module
    with torch.no_grad():
        torch.testing.assert_close(read.eval()(inputs), net.eval()(inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "exporter"), [case for case in CASES if case[0] != "cnn"])
def test_parameters_and_flop_of_a_training_step_are_those_of_the_original(exported, name, exporter):
    net, example, path = exported(name, exporter)
    step = read_onnx(path)
    original = TrainingStep(name=name, module=net, example=example, loss=None)
    assert n_parameters(step.module) == n_parameters(net)
    for batch_size in (2, 5):
        mine, its = run_on_meta(step, batch_size), run_on_meta(original, batch_size)
        assert (mine.forward_flop, mine.flop) == (its.forward_flop, its.flop)
        assert mine.without_gradient == ()


@pytest.mark.parametrize("name", ["residual", "encoder"])
def test_the_capture_of_the_file_is_the_capture_of_the_net(exported, name):
    net, example, path = exported(name, "new")
    step = read_onnx(path)
    original, read = capture(net, example), capture(step.module, step.example, loss=step.loss)
    assert read.n_parameters == original.n_parameters
    assert read.forward_flop(8) == original.forward_flop(8)
    assert read.backward_flop(8) == original.backward_flop(8)


def test_batch_norm_is_kept_by_a_training_export_and_trained_as_one(exported):
    net, example, path = exported("cnn", "old", train=True)
    step = read_onnx(path)
    original = TrainingStep(name="cnn", module=net, example=example, loss=None)
    assert n_parameters(step.module) == n_parameters(net)
    assert run_on_meta(step, 3).flop == run_on_meta(original, 3).flop
    trained = read_onnx(path, with_weights=True).module.train()
    before = trained.norm1.running_mean.clone()
    trained(example(4))
    assert not torch.equal(trained.norm1.running_mean, before)
    inputs = example(4)
    net.load_state_dict({**net.state_dict(), **trained.state_dict()})
    torch.testing.assert_close(trained.eval()(inputs), net.eval()(inputs), rtol=1e-4, atol=1e-5)


def test_batch_norm_that_was_folded_away_leaves_the_work_of_the_convolutions(exported):
    net, example, path = exported("cnn", "old")
    original = TrainingStep(name="cnn", module=net, example=example, loss=None)
    step = read_onnx(path)
    assert run_on_meta(step, 3).flop == run_on_meta(original, 3).flop
    assert n_parameters(step.module) == n_parameters(net) - 2 * (8 + 16) + 16


def test_layers_keep_the_names_and_kinds_that_they_had(exported):
    _, _, path = exported("encoder", "new")
    module = read_onnx(path).module
    names = {name: type(child).__name__ for name, child in module.named_modules()}
    assert names["words"] == "Embedding"
    assert names["head"] == "Linear"
    assert names["layers.layers.1.linear2"] == "Linear"
    assert names["layers.layers.0.norm1"] == "Norm"
    assert "positions" in dict(module.named_parameters())


def test_weights_are_not_read_unless_asked_for(exported):
    _, _, path = exported("encoder", "new")
    data = path.with_name(path.name + ".data")
    assert data.exists()
    hidden = data.rename(data.with_suffix(".hidden"))
    try:
        assert {parameter.device.type for parameter in read_onnx(path).module.parameters()} == {"meta"}
        with pytest.raises(FileFormatError, match="cannot be read from the file that holds them"):
            read_onnx(path, with_weights=True)
    finally:
        hidden.rename(data)


@pytest.mark.parametrize(
    ("name", "batch"), [("encoder", 1), ("encoder", 2), ("residual", 1), ("residual", 2), ("lstm", 1)]
)
def test_a_batch_size_that_was_exported_as_a_constant_is_freed_again(exported, name, batch):
    net, example, path = exported(name, "old", batch=batch)
    step = read_onnx(path, with_weights=True)
    original = TrainingStep(name=name, module=net, example=example, loss=None)
    assert run_on_meta(step, 3).flop == run_on_meta(original, 3).flop
    inputs = example(5)
    with torch.no_grad():
        torch.testing.assert_close(step.module.eval()(inputs), net.eval()(inputs), rtol=1e-4, atol=1e-5)


def test_a_batch_size_that_cannot_be_freed_says_how_to_export(exported):
    _, _, path = exported("lstm", "old", batch=2)
    with pytest.raises(CaptureError, match=r"exported for a batch of 2 only; export it with dynamic_shapes"):
        run_on_meta(read_onnx(path), 3)


@pytest.mark.parametrize(("exporter", "train"), [("old", True), ("old", False), ("new", False)])
def test_a_tied_embedding_stays_one_parameter(tmp_path, exporter, train):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(N_WORDS, WIDTH)

        def forward(self, x):
            return functional.linear(self.words(x), self.words.weight)

    net, path = Tied(), tmp_path / "tied.onnx"
    export(net, words(2), path, exporter=exporter, train=train)
    step = read_onnx(path, with_weights=True)
    assert n_parameters(step.module) == N_WORDS * WIDTH
    inputs = words(3)
    torch.testing.assert_close(step.module(inputs), net(inputs))


def write(path, nodes, *, shape, initializers=(), opset=20):
    """A file with one float input `x` and one output `y`."""
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [given], [result], list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), path)
    return path


def test_an_open_dimension_must_be_set_and_the_message_says_how(tmp_path):
    path = write(tmp_path / "open.onnx", [helper.make_node("Relu", ["x"], ["y"])], shape=["batch", "steps", None])
    with pytest.raises(InputError, match=r"dimension 1 of the input 'x' is open; set it with dims=\{'steps': 128\}"):
        read_onnx(path)
    with pytest.raises(InputError, match=r"dims=\{'x:2': 128\}"):
        read_onnx(path, dims={"steps": 7})
    assert read_onnx(path, dims={"steps": 7, "x:2": 4}).example(3).shape == (3, 7, 4)
    with pytest.raises(InputError, match=r"no dimension 'step'; it has batch, steps"):
        read_onnx(path, dims={"step": 7})


def test_an_op_that_is_not_supported_is_named_with_its_node(tmp_path):
    nodes = [
        helper.make_node("NonZero", ["x"], ["i"], name="where_it_is"),
        helper.make_node("Cast", ["i"], ["y"], to=1),
    ]
    path = write(tmp_path / "odd.onnx", nodes, shape=["batch", 4])
    with pytest.raises(CaptureError, match=r"op 'NonZero' \(node 'where_it_is'\).*file\.py:factory"):
        read_onnx(path)
    custom = helper.make_node("Fancy", ["x"], ["y"], domain="my.ops", name="f")
    path = write(tmp_path / "custom.onnx", [custom], shape=["batch", 4])
    with pytest.raises(CaptureError, match=r"op 'my\.ops\.Fancy'"):
        read_onnx(path)


def test_a_node_that_fails_is_named_with_its_shapes_and_the_fixed_batch(tmp_path):
    sizes = helper.make_tensor("s", TensorProto.FLOAT, [2, 4], [0.0] * 8)
    nodes = [helper.make_node("Where", ["c", "x", "s"], ["y"], name="pick")]
    condition = helper.make_tensor("c", TensorProto.BOOL, [2, 4], [True] * 8)
    path = write(tmp_path / "fixed.onnx", nodes, shape=[2, 4], initializers=[sizes, condition])
    with pytest.raises(CaptureError, match=r"'pick' \(Where\).*\(3, 4\).*exported for a batch of 2 only"):
        run_on_meta(read_onnx(path), 3)


@pytest.mark.parametrize("shape", [[2**62, 8], [2, 2**62], ["batch", 10**6, 10**6]])
def test_an_input_that_no_memory_holds_is_told(tmp_path, shape):
    path = write(tmp_path / "huge.onnx", [helper.make_node("Relu", ["x"], ["y"])], shape=shape)
    with pytest.raises(FileFormatError, match=r"huge\.onnx: the input 'x' of shape .* more than 10,000,000,000 values"):
        read_onnx(path)


@pytest.mark.parametrize("kind", [0, 29, -5])
def test_a_type_that_onnx_does_not_have_is_told(tmp_path, kind):
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [2], [0.0, 1.0])
    path = write(
        tmp_path / "odd.onnx", [helper.make_node("Add", ["x", "w"], ["y"])], shape=["b", 2], initializers=[tensor]
    )
    model = onnx.load(str(path))
    model.graph.initializer[0].data_type = kind
    onnx.save(model, path)
    with pytest.raises(
        FileFormatError, match=rf"odd\.onnx: the tensor 'w' is of type {kind}, which ONNX does not have"
    ):
        read_onnx(path)
    model.graph.initializer[0].data_type = TensorProto.FLOAT
    model.graph.input[0].type.tensor_type.elem_type = kind
    onnx.save(model, path)
    with pytest.raises(CaptureError, match="cannot be trained on"):
        read_onnx(path)


def test_a_node_that_fails_is_told_with_the_file(tmp_path):
    pool = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2], name="pool")
    path = write(tmp_path / "flat.onnx", [pool], shape=["batch", 4, 4, 4])
    with pytest.raises(CaptureError, match=r"^'.*flat\.onnx': .*'pool'"):
        load(str(path))


@pytest.mark.parametrize("content", [b"", b"just some text, no protobuf", b"PK\x03\x04" + bytes(50)])
def test_a_foreign_file_is_named_in_one_line(tmp_path, content):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"model\.onnx") as raised:
        read_onnx(path)
    assert "\n" not in str(raised.value)


def test_half_a_file_is_named_in_one_line(exported, tmp_path):
    _, _, whole = exported("mlp", "old")
    path = tmp_path / "half.onnx"
    path.write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(FileFormatError, match=r"half\.onnx is not an ONNX file, or only a part of one"):
        read_onnx(path)


def test_a_missing_file_and_a_missing_package_say_so(tmp_path, monkeypatch):
    with pytest.raises(UnknownModelError, match="There is no file"):
        read_onnx(tmp_path / "absent.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'traincast\[onnx\]'"):
        read_onnx(tmp_path / "absent.onnx")
