"""A callback neither ends nor alters a training, whatever fails in it. Real trainings, as small as they can be."""

import importlib.util
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import traincast
from traincast.errors import InputError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

ROOM = Path(traincast.__file__).parent
N_STEPS = 6


def has(package):
    return importlib.util.find_spec(package) is not None


needs_keras = pytest.mark.skipif(not has("keras"), reason="needs keras")
needs_lightning = pytest.mark.skipif(not has("lightning"), reason="needs lightning")


def forecast_callback(framework, *given, **options):
    module = importlib.import_module(f"traincast.launch.callbacks.{framework}")
    return module.ForecastCallback(*given, **options)


def seeded():
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  # the state that others share
    random.seed(0)


def trained_with(callback):
    """What a loop of torch, with dropout and Adam, ends with: weights, losses, and the states of all random numbers."""
    from transformers.trainer_callback import TrainerControl, TrainerState

    seeded()
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))
    optimizer, losses = torch.optim.Adam(net.parameters(), lr=0.05), []
    state, control = TrainerState(max_steps=N_STEPS, epoch=0.0, is_world_process_zero=True), TrainerControl()

    def tell(event, **more):
        if callback is not None:
            assert getattr(callback, event)(None, state, control, **more) is None

    tell("on_train_begin")
    for step in range(1, N_STEPS + 1):
        tell("on_step_begin")
        x = torch.randn(16, 4)
        loss = ((net(x)[:, 0] - x.sum(1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        state.global_step, state.epoch = step, step / 3
        tell("on_step_end")
        tell("on_log", logs={"loss": losses[-1], "learning_rate": 0.05})
        if step % 3 == 0:
            tell("on_evaluate")
            tell("on_log", logs={"eval_loss": losses[-1], "eval_accuracy": step / 100})
            tell("on_save")
    tell("on_train_end")
    weights = [weight.detach().numpy().tobytes() for weight in net.parameters()]
    np_state = np.random.get_state()  # noqa: NPY002
    randomness = (torch.get_rng_state().numpy().tobytes(), np_state[1].tobytes(), np_state[2:], random.getstate())
    return weights, losses, randomness, vars(control)


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words for it")


FAILURES = (
    ValueError("x"), KeyError("x"), IndexError(), ZeroDivisionError(), FloatingPointError(), OverflowError(),
    OSError(28, "No space left on device"), BrokenPipeError(), PermissionError(), MemoryError(), RecursionError(),
    StopIteration(), AssertionError(), AttributeError("x"), UnicodeEncodeError("ascii", "\u2588", 0, 1, "no"),
    DeprecationWarning("x"), InputError("x"), torch.cuda.OutOfMemoryError("x"), Unspeakable(), Exception("a\nb" * 9999),
    ExceptionGroup("x", [ValueError()]),
)  # fmt: skip


class FailAt:
    """Raises at one of the calls, of Python or of C, that traincast makes in a hook."""

    def __init__(self, n, error):
        self.n, self.error, self.n_seen = n, error, 0

    def __call__(self, frame, event, arg):
        where = frame.f_code.co_filename
        if event in ("call", "c_call") and where.startswith(str(ROOM)) and not where.endswith("guard.py"):
            self.n_seen += 1
            if self.n_seen == self.n:
                raise self.error

    def __enter__(self):
        self.before = sys.getprofile()
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(self.before)


@pytest.fixture(scope="module")
def without_callback():
    return trained_with(None)


@pytest.fixture(scope="module")
def n_calls(tmp_path_factory):
    """How many calls a training with a callback makes, of which each may fail."""
    file = tmp_path_factory.mktemp("dry") / "run.csv"
    trained_with(forecast_callback("hugging_face", file, every_s=0.0, target=0.1, tell=len))  # imports
    file.unlink()
    with FailAt(-1, None) as calls:
        trained_with(forecast_callback("hugging_face", file, every_s=0.0, target=0.1, tell=len))
    assert calls.n_seen > 300
    return calls.n_seen


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # as a generator is closed
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1), failure=st.sampled_from(FAILURES), tell_fails=st.booleans())
def test_whatever_fails_at_any_call_the_training_ends_as_without_a_callback(
    place, failure, tell_fails, n_calls, without_callback, tmp_path, capsys
):
    file, told = tmp_path / "run.csv", []
    file.unlink(missing_ok=True)

    def tell(line):
        if tell_fails:
            raise failure
        told.append(line)

    callback = forecast_callback("hugging_face", file, every_s=0.0, target=0.1, tell=tell)
    with FailAt(int(n_calls**place), failure):
        found = trained_with(callback)
    assert found == without_callback
    lines = told + capsys.readouterr().out.splitlines()
    assert sum("the callback has failed and is off" in line for line in lines) == callback.is_off
    if callback.is_off and not tell_fails:
        assert "is off" in lines[-1]  # nothing is told behind it


def test_a_callback_that_works_alters_no_training(without_callback, tmp_path):
    told = []
    found = trained_with(forecast_callback("hugging_face", tmp_path / "run.csv", every_s=0.0, tell=told.append))
    assert found == without_callback
    assert told[-1].startswith(f"traincast: step {N_STEPS} of {N_STEPS}")


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_on_purpose_passes_through(tmp_path, ending):
    def tell(line):
        raise ending

    with pytest.raises(ending):
        trained_with(forecast_callback("hugging_face", tmp_path / "run.csv", every_s=0.0, tell=tell))


@pytest.mark.parametrize("framework", ["hugging_face", "keras", "lightning"])
@pytest.mark.filterwarnings("ignore")
def test_every_hook_is_guarded(framework, monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    pytest.importorskip({"hugging_face": "transformers"}.get(framework, framework))
    callback = forecast_callback(framework, tmp_path / "run.csv")
    hooks = [name for name in vars(type(callback)) if name.startswith("on_")]
    assert len(hooks) >= 6
    assert all(hasattr(getattr(type(callback), name), "__wrapped__") for name in hooks)


# What broke


LOOP = """
import sys
sys.path.insert(0, {tests!r})
from launch.test_callbacks_harmless import forecast_callback, trained_with
callback = forecast_callback("hugging_face", sys.argv[1], every_s=0.0)
weights, losses, *_ = trained_with(callback)
sys.stderr.write(repr([weights, losses]) + "\\n")
"""


def test_output_on_a_full_disk_changes_neither_the_training_nor_its_exit_code(tmp_path, without_callback):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    code = LOOP.format(tests=str(Path(__file__).parents[1]))
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-c", code, str(tmp_path / "run.csv")]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == repr([*without_callback[:2]])
    assert done.stderr.count("the callback has failed and is off") == 1


@pytest.mark.parametrize(
    ("path", "words"),
    [("a\0b.csv", "null byte"), ("/dev/full", "not a file to which rows can be appended"), (".", "not a file to which"),
     ("x" * 300, "File name too long"), ("/proc/nowhere/run.csv", "nowhere")],
)  # fmt: skip
def test_a_path_that_cannot_be_written_is_told_once(path, words, without_callback):
    told = []
    assert trained_with(forecast_callback("hugging_face", path, every_s=0.0, tell=told.append)) == without_callback
    assert len(told) == 1
    assert words in told[0]


def test_a_pipe_is_not_written_to_as_nobody_may_read_it(tmp_path, without_callback):
    told = []
    os.mkfifo(tmp_path / "pipe")
    assert trained_with(forecast_callback("hugging_face", tmp_path / "pipe", tell=told.append)) == without_callback
    assert "not a file to which rows can be appended" in told[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"path": 3}, "the path of a file, not 3"),
        ({"every_s": float("nan")}, "every_s, the seconds between two lines"),
        ({"every_s": "often"}, "every_s should be a number"),
        ({"tell": "me"}, "tell should be a function"),
        ({"target": "low"}, "target should be a number"),
        ({"split": "dev"}, "There is no split 'dev'"),
    ],
)
def test_an_argument_that_cannot_be_right_is_refused_before_training(options, words):
    with pytest.raises(InputError, match=words):
        forecast_callback("hugging_face", **options)


@needs_lightning
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("failure", [None, "tell", "loss"])
def test_lightning_by_hand_with_a_loss_of_two_elements_is_not_altered(tmp_path, failure):
    from traincast.launch.callbacks.lightning import _lightning

    class Net(_lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.layer = torch.nn.Linear(4, 2)

        def training_step(self, batch, index):
            losses = (self.layer(batch) ** 2).mean(0)
            self.optimizers().zero_grad()
            self.manual_backward(losses.sum())
            self.optimizers().step()
            self.log("train_acc", 0.5)
            return losses if failure == "loss" else {"loss": losses}

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    def fit(*callbacks):
        seeded()
        net = Net()
        trainer = _lightning.Trainer(
            max_epochs=1, log_every_n_steps=2, callbacks=list(callbacks), accelerator="cpu", logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
            default_root_dir=str(tmp_path),
        )  # fmt: skip
        trainer.fit(net, torch.utils.data.DataLoader(torch.randn(32, 4), batch_size=4, shuffle=True))
        return trainer.global_step, [weight.detach().numpy().tobytes() for weight in net.parameters()]

    def tell(line):
        if failure == "tell":
            raise ValueError(line)

    file = tmp_path / "run.csv"
    callback = forecast_callback("lightning", file, every_s=0.0, tell=tell)
    assert fit(callback) == fit()
    assert callback.is_off == (failure == "tell")
    rows = [line.split(",") for line in file.read_text().splitlines()[1:]]
    assert all(row[2:4] == ["", "0.5"] for row in rows)
    assert len(rows) == (1 if failure == "tell" else 4)


@needs_keras
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "config", ["{", "[]", "null", '{"cluster": 3}', '{"task": [1]}', '{"task": 5}', "", "[" * 9999]
)
def test_keras_with_a_vector_named_accuracy_and_a_damaged_tf_config_is_not_altered(tmp_path, monkeypatch, config):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    monkeypatch.setenv("TF_CONFIG", config)
    monkeypatch.delenv("RANK", raising=False)
    import keras

    class Accuracy(keras.metrics.Metric):
        """By class."""

        def update_state(self, y_true, y_pred, sample_weight=None):
            return

        def result(self):
            return keras.ops.convert_to_tensor([0.25, 0.5])

    def fit(*callbacks):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dropout(0.2), keras.layers.Dense(1)])
        model.compile(optimizer=keras.optimizers.SGD(0.01), loss="mse", metrics=[Accuracy(name="accuracy")])
        x = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
        history = model.fit(x, x[:, :1], batch_size=8, epochs=2, verbose=0, callbacks=list(callbacks)).history
        return history["loss"], [weight.tobytes() for weight in model.get_weights()]

    file, told = tmp_path / "run.csv", []
    assert fit(forecast_callback("keras", file, every_steps=2, every_s=0.0, tell=told.append)) == fit()
    assert not any("is off" in line for line in told)
    assert len(file.read_text().splitlines()) >= 5
