"""Callbacks write a log that traincast reads, and tell when the run ends. Real runs, as small as they can be."""

import importlib.util
import math
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import traincast as tc
from traincast.curves.log_question import LogQuestion
from traincast.errors import FileFormatError, MissingExtraError
from traincast.launch.callbacks.reporter import Reporter, columns_of
from traincast.launch.callbacks.run_log import COLUMNS, RunLog


def has(package):
    return importlib.util.find_spec(package) is not None


def rows(path):
    header, *lines = path.read_text().splitlines()
    assert header == ",".join(COLUMNS)
    return [dict(zip(COLUMNS, line.split(","), strict=True)) for line in lines]


# The log


def test_a_row_has_what_is_known_and_nothing_for_the_rest(tmp_path):
    log = RunLog(tmp_path / "new" / "run.csv")
    log.add({"step": 10, "train_loss": 0.123456789, "total_steps": 1000})
    (row,) = rows(tmp_path / "new" / "run.csv")
    assert (row["step"], row["train_loss"], row["val_loss"], row["total_steps"]) == ("10", "0.12345679", "", "1000")
    assert 0 <= float(row["seconds"]) < 60


def test_a_resumed_run_appends_and_its_clock_goes_on_over_the_time_it_was_away(tmp_path):
    file = tmp_path / "run.csv"
    RunLog(file).add({"step": 10, "train_loss": 1.0})
    with file.open("a") as out:
        out.write("20,,0.9,,,,,,,99.0\n30,,0.85,,,,,,,100.0\n40,,0.")  # killed while it wrote
    an_hour_ago = time.time() - 3600
    os.utime(file, (an_hour_ago, an_hour_ago))
    resumed = RunLog(file)
    resumed.add({"step": 20, "train_loss": 0.91})
    resumed.add({"step": 30, "train_loss": 0.8})
    assert [row["step"] for row in rows(file)] == ["10", "20", "30", "20", "30"]
    assert float(rows(file)[-1]["seconds"]) == pytest.approx(3700, abs=30)
    assert tc.read_log(file).find("loss").values.tolist() == [1.0, 0.91, 0.8]


def test_a_file_of_something_else_is_not_written_to(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(FileFormatError, match="has other columns"):
        RunLog(file)
    assert file.read_text() == "a,b\n1,2\n"


def test_metrics_are_known_by_the_names_that_frameworks_give_them():
    given = {"eval_loss": 1, "eval_accuracy": 0.5, "loss": 2.0, "grad_norm": 3.0, "eval_runtime": 4.0, "epoch": 1.0}
    assert columns_of(given) == {"val_loss": 1.0, "val_acc": 0.5, "train_loss": 2.0}
    assert columns_of({"val_sparse_categorical_accuracy": 0.25}) == {"val_acc": 0.25}


# The line


def test_the_line_comes_when_it_is_due_and_says_when_the_run_ends(tmp_path):
    told = []
    reporter = Reporter(tmp_path / "run.csv", LogQuestion(target=0.5), every_s=0.0, tell=told.append)
    reporter.begin(100)
    for step in range(1, 13):
        reporter.add(step, epoch=step / 10, train_loss=1.0 / step)
        time.sleep(0.002)
    assert told[-1].startswith("traincast: step 12 of 100 (12.0 %), epoch 1.2, loss 0.")
    assert " left" in told[-1]
    assert "p(0.5) " in told[-1]


def test_without_patience_over_there_is_no_line(tmp_path):
    told = []
    reporter = Reporter(tmp_path / "run.csv", every_s=1000.0, tell=told.append)
    reporter.begin(None)
    reporter.add(1, train_loss=1.0)
    assert told == []


def test_waiting_for_data_is_written_and_other_pauses_are_not(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("traincast.launch.callbacks.reporter.time.monotonic", lambda: now[0])
    reporter = Reporter(tmp_path / "run.csv")
    reporter.begin(10)
    for waited_s in (0.25, 0.75):
        reporter.works()
        now[0] += 2.0  # a step
        reporter.waits()
        now[0] += waited_s
        reporter.works()
        reporter.waits()
        reporter.pauses()
        now[0] += 5.0  # an evaluation
    reporter.works()
    reporter.add(5, train_loss=1.0)
    reporter.add(6, train_loss=1.0)
    assert [row["train_data_wait_s"] for row in rows(tmp_path / "run.csv")] == ["0.5", ""]


def test_a_log_that_cannot_be_opened_is_told_and_the_run_goes_on(tmp_path):
    file, told = tmp_path / "mine.csv", []
    file.write_text("a,b\n1,2\n")
    reporter = Reporter(file, tell=told.append)
    reporter.begin(10)
    reporter.add(1, train_loss=1.0)
    reporter.tell()
    assert len(told) == 1
    assert "no log is written" in told[0]
    assert "has other columns" in told[0]
    assert file.read_text() == "a,b\n1,2\n"


def test_a_forecast_that_fails_does_not_end_the_run(tmp_path, monkeypatch):
    told = []
    reporter = Reporter(tmp_path / "run.csv", tell=told.append)
    reporter.begin(10)
    reporter.add(1, train_loss=1.0)

    def stale(*_):
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr("traincast.launch.callbacks.reporter.LogFollower.poll", stale)
    reporter.tell()
    assert "Stale file handle" in told[-1]


def test_a_target_may_be_of_another_metric(tmp_path):
    told = []
    reporter = Reporter(tmp_path / "run.csv", LogQuestion(target=92, metric="accuracy"), tell=told.append)
    reporter.begin(100)
    for step in range(1, 13):
        reporter.add(step, train_loss=1.0 / step, val_acc=0.9 - 0.5 / step)
    reporter.tell()
    assert "validation accuracy 0.8" in told[-1]
    assert "p(0.92) " in told[-1]


def test_the_line_may_be_of_a_split_and_with_a_price(tmp_path):
    told = []
    reporter = Reporter(tmp_path / "run.csv", LogQuestion(split="train", usd_per_hour=3.6e6), tell=told.append)
    reporter.begin(100)
    for step in range(1, 9):
        reporter.add(10 * step, train_loss=1.0 / step, val_loss=2.0 / step)
        time.sleep(0.002)
    reporter.tell()
    assert ", loss 0.1" in told[0]  # of validation it would be 0.3
    assert " to go" in told[0]
    reporter.add(100, train_loss=0.1)
    reporter.tell()
    assert told[1].endswith(" spent")
    assert ", over, $" in told[1]


def test_a_disk_that_is_full_ends_the_log_and_not_the_run(tmp_path, monkeypatch):
    told = []
    reporter = Reporter(tmp_path / "run.csv", tell=told.append)
    reporter.begin(10)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    reporter.add(1, train_loss=1.0)
    reporter.add(2, train_loss=1.0)
    assert told == [
        f"traincast: '{tmp_path / 'run.csv'}' cannot be written (No space left on device); no more rows are written."
    ]


# The frameworks


@pytest.mark.parametrize("module", ["hugging_face", "keras", "lightning"])
def test_frameworks_are_imported_only_by_their_own_module(module):
    code = (
        "import sys, traincast.launch.callbacks.reporter\n"
        "assert not {'transformers', 'keras', 'lightning', 'torch'} & set(sys.modules)\n"
        "for name in ('transformers', 'keras', 'lightning', 'pytorch_lightning'): sys.modules[name] = None\n"
        "from traincast.errors import MissingExtraError\n"
        f"try:\n    import traincast.launch.callbacks.{module}\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs the '" in done.stdout


def test_a_missing_framework_is_an_import_error_too():
    assert issubclass(MissingExtraError, ImportError)


def test_trainer_events_become_rows(tmp_path):
    pytest.importorskip("transformers")
    from transformers.trainer_callback import TrainerControl, TrainerState

    from traincast.launch.callbacks.hugging_face import ForecastCallback

    told, file = [], tmp_path / "run.csv"
    callback, control = ForecastCallback(file, tell=told.append), TrainerControl()
    state = TrainerState(max_steps=4, epoch=0.0, is_world_process_zero=True)
    callback.on_train_begin(None, state, control)
    for step in range(1, 5):
        state.global_step, state.epoch = step, step / 4
        callback.on_step_begin(None, state, control)
        callback.on_step_end(None, state, control)
        callback.on_log(None, state, control, logs={"loss": 2.0 / step, "learning_rate": 0.1, "epoch": state.epoch})
    callback.on_log(None, state, control, logs={"eval_loss": 0.75, "eval_accuracy": 0.5, "eval_runtime": 1.0})
    callback.on_log(None, state, control, logs={"train_runtime": 9.0, "train_loss": 1.0})
    callback.on_train_end(None, state, control)
    written = rows(file)
    assert [row["train_loss"] for row in written] == ["2", "1", "0.66666667", "0.5", ""]
    assert (written[-1]["step"], written[-1]["val_loss"], written[-1]["val_acc"]) == ("4", "0.75", "0.5")
    assert written[0]["total_steps"] == "4"
    assert written[0]["train_data_wait_s"] == ""
    assert all(float(row["train_data_wait_s"]) >= 0 for row in written[1:4])  # also if every step is logged
    assert told[-1].startswith("traincast: step 4 of 4 (100.0 %)")


def test_a_loss_that_the_trainer_filters_is_written_as_not_finite(tmp_path):
    pytest.importorskip("transformers")
    from transformers.trainer_callback import TrainerControl, TrainerState

    from traincast.launch.callbacks.hugging_face import ForecastCallback

    callback, control = ForecastCallback(tmp_path / "run.csv", tell=print), TrainerControl()
    state = TrainerState(max_steps=4, epoch=0.0, is_world_process_zero=True)
    callback.on_train_begin(None, state, control)
    callback.on_log(None, state, control, logs={"loss": 0.0, "grad_norm": 0.0})
    callback.on_log(None, state, control, logs={"loss": 0.0, "grad_norm": math.nan})
    assert [row["train_loss"] for row in rows(tmp_path / "run.csv")] == ["0", "nan"]


@pytest.mark.skipif(not (has("transformers") and has("accelerate")), reason="needs transformers and accelerate")
@pytest.mark.filterwarnings("ignore")
def test_a_real_trainer_run_is_logged_and_resumed(tmp_path):
    import torch
    from transformers import Trainer, TrainingArguments

    from traincast.launch.callbacks.hugging_face import ForecastCallback

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x, labels):
            return {"loss": ((self.layer(x)[:, 0] - labels) ** 2).mean()}

    data = [{"x": torch.randn(4), "labels": torch.tensor(1.0)} for _ in range(32)]
    file, told = tmp_path / "run.csv", []

    def train(n_epochs, checkpoint=None):
        given = TrainingArguments(
            output_dir=str(tmp_path / "out"), num_train_epochs=n_epochs, per_device_train_batch_size=4, logging_steps=2,
            eval_strategy="epoch", save_strategy="epoch", report_to="none", disable_tqdm=True, use_cpu=True,
        )  # fmt: skip
        callback = ForecastCallback(file, every_s=0.0, target=0.1, tell=told.append)
        Trainer(Net(), given, train_dataset=data, eval_dataset=data[:8], callbacks=[callback]).train(
            resume_from_checkpoint=checkpoint
        )

    train(3)
    log = tc.read_log(file)
    assert log.total_steps == 24
    assert log.find("loss", "train").steps.tolist() == [float(step) for step in range(2, 25, 2)]
    assert log.find("loss", "validation").steps.tolist() == [8.0, 16.0, 24.0]
    assert len(log.learning_rate) == 12
    assert told[-1].startswith("traincast: step 24 of 24 (100.0 %), epoch 3.0")
    train(3, checkpoint=str(tmp_path / "out" / "checkpoint-16"))
    again = tc.read_log(file)
    assert again.find("loss", "train").steps.tolist() == log.find("loss", "train").steps.tolist()
    assert again.restarts == (18.0,)


@pytest.mark.skipif(not has("keras"), reason="needs keras")
@pytest.mark.filterwarnings("ignore")
def test_a_real_keras_fit_is_logged_with_means_since_the_row_before(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    import keras

    from traincast.launch.callbacks.keras import ForecastCallback

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss="mse", metrics=["mae"])
    x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
    file, told, losses = tmp_path / "run.csv", [], []

    class Spy(keras.callbacks.Callback):
        """The means since the start of the epoch, as Keras gives them."""

        def on_train_batch_end(self, batch, logs=None):
            losses.append(float(logs["loss"]))

    callback = ForecastCallback(file, every_steps=2, every_s=0.0, tell=told.append)
    model.fit(x, x[:, :1], batch_size=8, epochs=2, validation_split=0.25, verbose=0, callbacks=[Spy(), callback])
    log = tc.read_log(file)
    train = log.find("loss", "train")
    assert log.total_steps == 12
    assert train.steps.tolist() == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    assert train.values[0] == pytest.approx(losses[1], rel=1e-4)
    assert train.values[1] == pytest.approx(2 * losses[3] - losses[1], rel=1e-3)  # four batches without the first two
    assert train.values[3] == pytest.approx(losses[7], rel=1e-4)  # a new epoch
    assert log.find("loss", "validation").steps.tolist() == [6.0, 12.0]
    assert log.learning_rate.values.tolist() == pytest.approx([0.01] * 6)
    assert told[-1].startswith("traincast: step 12 of 12 (100.0 %), epoch 2.0")
    model.fit(x, x[:, :1], batch_size=8, initial_epoch=2, epochs=3, verbose=0, callbacks=[callback])
    assert tc.read_log(file).find("loss", "train").steps[-1] == 24.0  # 8 batches an epoch, without a validation split


@pytest.mark.skipif(not has("keras"), reason="needs keras")
@pytest.mark.filterwarnings("ignore")
def test_calls_of_keras_that_are_several_steps_count_as_such(tmp_path, monkeypatch):
    """As with steps_per_execution=4, which Keras on torch does not have: 10 steps an epoch in three calls."""
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    from traincast.launch.callbacks.keras import ForecastCallback

    file = tmp_path / "run.csv"
    callback = ForecastCallback(file, every_steps=3)
    callback.set_params({"steps": 10, "epochs": 2})
    callback.on_train_begin()
    for epoch in range(2):
        callback.on_epoch_begin(epoch)
        for first, last in ((0, 3), (4, 7), (8, 9)):
            callback.on_train_batch_begin(first)
            callback.on_train_batch_end(last, {"loss": 2.0})
        callback.on_epoch_end(epoch, {"loss": 2.0})
    assert [(row["step"], row["train_loss"]) for row in rows(file)] == [
        (str(step), "2") for step in (4, 8, 10, 14, 18, 20)
    ]


@pytest.mark.skipif(not has("keras"), reason="needs keras")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("variable", "of_first", "of_other"),
    [
        ("RANK", "0", "1"),
        ("TF_CONFIG", '{"task": {"type": "worker", "index": 0}}', '{"task": {"type": "worker", "index": 1}}'),
        (
            "TF_CONFIG",
            '{"cluster": {"chief": ["a"]}, "task": {"type": "chief", "index": 0}}',
            '{"cluster": {"chief": ["a"]}, "task": {"type": "worker", "index": 0}}',
        ),
    ],
)
def test_only_the_first_process_of_keras_writes(tmp_path, monkeypatch, variable, of_first, of_other):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    from traincast.launch.callbacks.keras import ForecastCallback

    for name, value in (("first.csv", of_first), ("other.csv", of_other)):
        monkeypatch.setenv(variable, value)
        callback = ForecastCallback(tmp_path / name)
        callback.set_params({"steps": 10, "epochs": 1})
        callback.on_train_begin()
    assert [file.name for file in tmp_path.iterdir()] == ["first.csv"]


@pytest.mark.skipif(not (has("lightning") or has("pytorch_lightning")), reason="needs lightning")
@pytest.mark.filterwarnings("ignore")
def test_a_lightning_fit_that_adds_gradients_up_has_the_loss_of_its_batches(tmp_path):
    import torch

    from traincast.launch.callbacks.lightning import ForecastCallback, _lightning

    class Net(_lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, index):
            return 0.0 * self.layer(batch).mean() + 2.0

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    loader = torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=4)
    file = tmp_path / "run.csv"
    trainer = _lightning.Trainer(
        max_epochs=1, log_every_n_steps=1, accumulate_grad_batches=4, callbacks=[ForecastCallback(file)],
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=str(tmp_path),
    )  # fmt: skip
    trainer.fit(Net(), loader)
    assert [(row["step"], row["train_loss"]) for row in rows(file)] == [(str(step), "2") for step in (1, 2, 3, 4)]


@pytest.mark.skipif(not (has("lightning") or has("pytorch_lightning")), reason="needs lightning")
@pytest.mark.filterwarnings("ignore")
def test_a_real_lightning_fit_is_logged(tmp_path):
    import torch

    from traincast.launch.callbacks.lightning import ForecastCallback, _lightning

    class Net(_lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, index):
            return (self.layer(batch) ** 2).mean()

        def validation_step(self, batch, index):
            self.log("val_loss", (self.layer(batch) ** 2).mean())
            self.log("val_acc", 0.5)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    loader = torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=8)
    file, told = tmp_path / "run.csv", []
    trainer = _lightning.Trainer(
        max_epochs=3, log_every_n_steps=2, callbacks=[ForecastCallback(file, every_s=0.0, tell=told.append)],
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=str(tmp_path),
    )  # fmt: skip
    trainer.fit(Net(), loader, loader)
    log = tc.read_log(file)
    assert log.total_steps == 24
    assert log.find("loss", "train").steps.tolist() == [float(step) for step in range(2, 25, 2)]
    assert log.find("loss", "validation").steps.tolist() == [8.0, 16.0, 24.0]
    assert log.find("accuracy", "validation").values.tolist() == [0.5] * 3
    assert told[-1].startswith("traincast: step 24 of 24 (100.0 %), epoch 3.0")
