"""A Keras model on the torch backend trains on meta with the work that the same net has in plain torch."""

import os
import subprocess
import sys
import warnings
import zipfile

import pytest
import torch
from step_on_meta import meta_copy, run_on_meta
from torch import nn

from traincast.errors import CaptureError, FileFormatError, InputError, MissingExtraError, UnknownModelError
from traincast.frontend.capturing.capture import capture
from traincast.frontend.keras_model.reader import read_keras
from traincast.frontend.step import TrainingStep

os.environ["KERAS_BACKEND"] = "torch"  # read when Keras is first imported
import keras
from keras import layers


def save(model, path):
    """Keras' variables do not know numpy's newest way to ask for an array, and numpy says so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "__array__ implementation doesn't accept a copy", DeprecationWarning)
        model.save(path)


def cnn():
    return keras.Sequential(
        [
            layers.Input((16, 16, 3)),
            layers.Conv2D(8, 3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Dropout(0.3),
            layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )


def residual():
    x = layers.Input((16,))
    h = layers.Dense(16, activation="relu")(x)
    h = layers.LayerNormalization()(layers.Add()([h, x]))
    return keras.Model(x, layers.Dense(4)(h))


def recurrent(**embedding):
    words = layers.Input((7,), dtype="int32")
    h = layers.LSTM(12)(layers.Embedding(20, 8, **embedding)(words))
    return keras.Model(words, layers.Dense(3)(h))


class TorchResidual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, x):
        return self.last(self.norm(torch.relu(self.first(x)) + x))


class TorchRecurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.rnn, self.last = (
            nn.Embedding(20, 8),
            nn.LSTM(8, 12, batch_first=True),
            nn.Linear(12, 3),
        )

    def forward(self, x):
        return self.last(self.rnn(self.words(x))[0][:, -1])


def torch_cnn():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.3),
        nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


PAIRS = {
    "cnn": (cnn, torch_cnn, lambda batch: torch.zeros(batch, 3, 16, 16)),
    "residual": (residual, TorchResidual, lambda batch: torch.zeros(batch, 16)),
    "recurrent": (recurrent, TorchRecurrent, lambda batch: torch.zeros(batch, 7, dtype=torch.int64)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_step_has_the_flop_of_the_same_net_in_torch(name):
    make_keras, make_torch, example = PAIRS[name]
    step = read_keras(make_keras())
    same = TrainingStep(name=name, module=make_torch(), example=example, loss=None)
    for batch_size in (2, 3, 5):
        mine, its = run_on_meta(step, batch_size), run_on_meta(same, batch_size)
        assert (mine.forward_flop, mine.flop) == (its.forward_flop, its.flop)
        assert mine.without_gradient == ()


def test_the_capture_of_a_keras_model_is_that_of_the_same_net_in_torch():
    make_keras, make_torch, example = PAIRS["cnn"]
    step = read_keras(make_keras())
    mine, its = capture(step.module, step.example, loss=step.loss), capture(make_torch(), example)
    assert mine.n_parameters == its.n_parameters
    assert mine.forward_flop(8) == its.forward_flop(8)
    assert mine.backward_flop(8) == its.backward_flop(8)


@pytest.mark.parametrize("name", ["cnn", "residual"])
def test_weights_are_parameters_of_their_layer_and_statistics_are_buffers(name):
    make_keras, make_torch, _ = PAIRS[name]
    module = read_keras(make_keras()).module
    sizes = sorted(parameter.numel() for parameter in module.parameters())
    assert sizes == sorted(parameter.numel() for parameter in make_torch().parameters())
    if name == "cnn":
        owners = {path.rpartition(".")[0] for path, _ in module.named_parameters()}
        assert len(owners) == 4
        assert sum("moving" in path for path, _ in module.named_buffers()) == 2


def test_the_module_computes_what_keras_computes_and_trains_only_in_training():
    model = cnn()
    module = read_keras(model).module
    images = torch.randn(4, 16, 16, 3)
    with torch.no_grad():
        torch.testing.assert_close(module.eval()([images]), model(images, training=False))
        means = next(buffer for path, buffer in module.named_buffers() if "moving_mean" in path)
        before = means.clone()
        module.eval()([images])
        assert torch.equal(means, before)
        module.train()([images])
        assert not torch.equal(means, before)


def test_copies_do_not_share_weights_and_keras_is_left_as_it_was():
    model = residual()
    step = read_keras(model)
    copied = meta_copy(step.module)
    assert {parameter.device.type for parameter in copied.parameters()} == {"meta"}
    assert {parameter.device.type for parameter in step.module.parameters()} == {"cpu"}
    copied(inputs=[torch.empty(3, 16, device="meta")])
    assert "call" not in vars(model.layers[1])
    assert model(torch.zeros(2, 16)).device.type == "cpu"


@pytest.mark.parametrize(
    ("loss", "targets"),
    [
        ("mse", torch.float32),
        ("mae", torch.float32),
        ("binary_crossentropy", torch.float32),
        (keras.losses.CategoricalCrossentropy(from_logits=True), torch.float32),
        (keras.losses.SparseCategoricalCrossentropy(from_logits=True), torch.int64),
        ("sparse_categorical_crossentropy", torch.int64),
    ],
)
def test_the_compiled_loss_is_the_loss_of_the_step(loss, targets):
    model = residual()
    model.compile(loss=loss)
    step = read_keras(model)
    ran = run_on_meta(step, 3)
    assert ran.loss.shape == ()
    inputs = step.example(3)
    assert inputs["targets"][0].dtype == targets
    assert inputs["targets"][0].shape == ((3,) if targets == torch.int64 else (3, 4))
    inputs = {"inputs": [torch.randn(3, 16)], "targets": inputs["targets"]}
    expected = model.compute_loss(y=inputs["targets"][0], y_pred=model(inputs["inputs"][0]))
    torch.testing.assert_close(step.loss(step.module(**inputs), inputs), expected)


def test_two_inputs_by_name_two_outputs_and_a_penalty_on_weights():
    a, b = layers.Input((8,), name="a"), layers.Input((8,), name="b")
    h = layers.Dense(6, kernel_regularizer="l2")(layers.Concatenate()([a, b]))
    model = keras.Model({"a": a, "b": b}, [layers.Dense(3)(h), layers.Dense(1)(h)])
    model.compile(loss=["categorical_crossentropy", "mse"])
    step = read_keras(model)
    assert [tuple(tensor.shape) for tensor in step.example(2)["inputs"]] == [(2, 8), (2, 8)]
    assert [tuple(tensor.shape) for tensor in step.example(2)["targets"]] == [(2, 3), (2, 1)]
    ran = run_on_meta(step, 2)
    assert set(ran.output) == {"outputs", "penalty"}
    assert ran.without_gradient == ()


@pytest.mark.parametrize("loss", ["", "crossentropy of my own"])
def test_a_compiled_loss_that_keras_does_not_know_is_told(loss):
    model = residual()
    model.compile(loss=loss)
    with pytest.raises(CaptureError, match=r"compiled with a loss that Keras \S+ does not know: Could not interpret"):
        read_keras(model)


def test_without_a_compiled_loss_there_is_none():
    step = read_keras(residual())
    assert step.loss is None
    assert set(step.example(2)) == {"inputs"}


def test_frozen_layers_get_no_gradient():
    model = residual()
    model.layers[1].trainable = False
    ran = run_on_meta(read_keras(model), 3)
    whole = run_on_meta(read_keras(residual()), 3)
    assert ran.forward_flop == whole.forward_flop
    assert ran.flop == whole.flop - 2 * 3 * 16 * 16


def test_a_masked_recurrent_layer_runs_all_its_steps():
    plain, masked = (
        run_on_meta(read_keras(recurrent()), 3),
        run_on_meta(read_keras(recurrent(mask_zero=True)), 3),
    )
    assert masked.flop == plain.flop


def test_a_keras_file_is_read_without_its_weights(tmp_path):
    model = cnn()
    model.compile(loss="sparse_categorical_crossentropy")
    path = tmp_path / "small.keras"
    save(model, path)
    step = read_keras(path)
    assert step.name == "small"
    assert {parameter.device.type for parameter in step.module.parameters()} == {"meta"}
    assert run_on_meta(step, 3).flop == run_on_meta(read_keras(model), 3).flop


def packed_in_no_way(archive):
    """Each member is said to be packed by method 77, which is none."""
    changed = bytearray(archive)
    for start, method in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        place = archive.find(start)
        while place >= 0:
            changed[place + method] = 77
            place = archive.find(start, place + 1)
    return bytes(changed)


def test_a_file_that_is_none_is_named_in_one_line(tmp_path):
    path = tmp_path / "small.keras"
    save(residual(), path)
    whole = path.read_bytes()
    for content in (b"", b"just text", whole[: len(whole) // 2], packed_in_no_way(whole)):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"small\.keras is not a \.keras file") as raised:
            read_keras(path)
        assert "\n" not in str(raised.value)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "a zip of something else")
    with pytest.raises(FileFormatError, match=r"is not a \.keras file"):
        read_keras(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")
    path.write_bytes(path.read_bytes()[8:])  # the list at its end then points to a place before its first byte
    with pytest.raises(FileFormatError, match=r"is not a \.keras file"):
        read_keras(path)
    with pytest.raises(UnknownModelError, match="There is no file"):
        read_keras(tmp_path / "absent.keras")


def test_code_that_is_stored_in_a_file_is_not_run(tmp_path):
    x = layers.Input((4,))
    model = keras.Model(x, layers.Dense(2)(layers.Lambda(lambda y: y * 2)(x)))
    path = tmp_path / "lambda.keras"
    save(model, path)
    with pytest.raises(CaptureError, match=r"lambda\.keras cannot be loaded.*file\.py:factory"):
        read_keras(path)
    assert run_on_meta(read_keras(model), 2).flop > 0


def test_open_shapes_and_models_without_shapes_are_refused():
    x = layers.Input((None, 8))
    with pytest.raises(InputError, match=r"Dimension 1 of .* in the inputs .* is open"):
        read_keras(keras.Model(x, layers.Dense(2)(x)))
    with pytest.raises(InputError, match=r"has no known inputs: build it with keras\.Input"):
        read_keras(keras.Sequential([layers.Dense(2)]))
    with pytest.raises(InputError, match="not a Linear"):
        read_keras(nn.Linear(2, 2))


def test_another_backend_and_a_missing_package_say_what_to_do(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(CaptureError, match=r"backend 'jax'.*set KERAS_BACKEND=torch"):
        read_keras("any.keras")
    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'traincast\[keras\]'"):
        read_keras("any.keras")


def test_keras_is_imported_with_torch_whatever_the_environment_says(tmp_path):
    path = tmp_path / "small.keras"
    save(residual(), path)
    code = (
        "import os\nfrom traincast.frontend.keras_model.reader import read_keras\n"
        f"step = read_keras({str(path)!r})\n"
        "print(os.environ['KERAS_BACKEND'], len(list(step.module.parameters())))"
    )
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "jax 6\n"
