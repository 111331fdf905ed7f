"""Every kind of file that traincast reads: a small valid one, how it is damaged, and who reads it."""

from __future__ import annotations

from attack import log_seeds, measured_seeds, model_seeds, readers, table_seeds
from attack.damage_bytes import damaged_bytes
from attack.damage_json import damaged_json, damaged_json_lines
from attack.damage_onnx import damaged_onnx
from attack.damage_packed import (
    damaged_events,
    damaged_headed,
    damaged_store,
    damaged_trace,
    damaged_zip,
    gzipped_lines,
    in_gzip,
)
from attack.damage_text import damaged_lines, damaged_toml
from attack.kind import Damage, Kind, Make


def _log(name: str, file: str, valid: Make, damage: Damage, *more: str) -> Kind:
    lines = (
        "converge {file} --total-steps 800 --target 0.5 --json",
        "watch {file} --once --total-steps 800 --target 0.5",
        *more,
    )
    return Kind(name=name, file=file, valid=valid, damage=damage, lines=lines, beside={"other.csv": log_seeds.csv_log})


_ON_T4 = "--on T4 --batch 8"
_SIMULATE = "simulate {file} --cluster 2x4xT4"
_WITH_TABLES = "--tables {folder} --workload real/1 --json"
_TRANSFER = "transfer {file} --predict depth=50 --steps-per-epoch 391"
_MODEL = (
    "forecast {file} --on T4 --batch 8 --json",
    "memory {file} --on T4 --batch 8",
    "layers {file} --on T4 --batch 8",
)
_POLLUX = {
    "jobs.csv": table_seeds.workload,
    "pollux_t4_steps.csv": table_seeds.pollux_steps,
    "pollux_gradient_statistics.csv": table_seeds.pollux_gradients,
}
_STORE = (
    "records {file} --json",
    "records {file} --export {folder}/out.csv",
    "records {file} --tables {folder}/tables",
)
_MEASURED = (f"explain mnist_cnn {_ON_T4} --measured {{file}} --json", "records {folder}/kept.db --import {file}")
_LOGS = (
    _log(
        *("log: csv", "log.csv", log_seeds.csv_log, damaged_lines),
        *(
            "converge {file} --metric accuracy --epochs 8 --json",
            "converge {folder}/other.csv --like {file} --total-steps 800 --json",
        ),
        "converge {folder}/other.csv --relation-from {file} --target 0.9 --metric accuracy --total-steps 800",
        "forecast mnist_cnn --on T4 --batch 8 --samples 800 --curve {file} --target 0.5 --json",
    ),
    _log("log: gzipped csv", "log.csv.gz", log_seeds.gzipped_csv, gzipped_lines),
    _log("log: Lightning", "metrics.csv", log_seeds.lightning_csv, damaged_lines),
    _log("log: jsonl", "log.jsonl", log_seeds.json_lines, damaged_json_lines),
    _log("log: Keras history", "history.json", log_seeds.keras_history, damaged_json),
    _log("log: trainer_state", "trainer_state.json", log_seeds.trainer_state, damaged_json),
    _log("log: TensorBoard", "events.out.tfevents.1.host", log_seeds.event_file, damaged_events),
    _log("log: text", "train.log", log_seeds.text_log, damaged_lines),
    _log("log: MLPerf", "mlperf.log", log_seeds.mlperf_log, damaged_lines),
    _log("log: W&B", "wandb.csv", log_seeds.wandb_csv, damaged_lines),
)
_MODELS = (
    Kind(name="trace", file="net.trace", valid=model_seeds.trace, damage=damaged_trace, lines=_MODEL),
    Kind(name="ONNX", file="net.onnx", valid=model_seeds.onnx, damage=damaged_onnx, lines=_MODEL),
    Kind(name="Keras", file="net.keras", valid=model_seeds.keras, damage=damaged_zip, lines=_MODEL),
    Kind(name="HF text", file="config.json", valid=model_seeds.hugging_face, damage=damaged_json, lines=_MODEL),
    Kind(
        name="HF images", file="config.json", valid=model_seeds.hugging_face_images, damage=damaged_json, lines=_MODEL
    ),
)
_PLACES = (
    Kind(
        name="devices: csv",
        file="own.csv",
        valid=table_seeds.own_devices_csv,
        damage=damaged_lines,
        lines=("devices --devices {file}", "forecast mnist_cnn --on MyGPU --batch 8 --devices {file} --json"),
    ),
    Kind(
        name="devices: toml",
        file="own.toml",
        valid=table_seeds.own_devices_toml,
        damage=damaged_toml,
        lines=("devices --devices {file} --json", "forecast mnist_cnn --on 2xMyGPU --batch 8 --devices {file}"),
    ),
    Kind(
        name="machine profile",
        file="this-machine.toml",
        valid=table_seeds.machine_profile,
        damage=damaged_toml,
        lines=("forecast mnist_cnn --on this-machine --batch 8 --json",),
    ),
    Kind(
        name="host profile",
        file="host.toml",
        valid=table_seeds.host_profile,
        damage=damaged_toml,
        lines=(f"forecast mnist_cnn {_ON_T4} --host this-machine --json",),
    ),
    Kind(
        name="cluster",
        file="lab.toml",
        valid=table_seeds.cluster,
        damage=damaged_toml,
        lines=(
            "forecast mnist_cnn --on {file} --batch 64 --json",
            "scale mnist_cnn --on {file} --batch 64 --samples 1000",
        ),
    ),
    Kind(
        name="prices",
        file="prices.csv",
        valid=table_seeds.prices,
        damage=damaged_lines,
        lines=("plan mnist_cnn --prices {file} --samples 60000 --batch-size 64 --json",),
    ),
    Kind(
        name="job",
        file="job.toml",
        valid=table_seeds.job,
        damage=damaged_toml,
        lines=("forecast {file} --json", "forecast {file}"),
    ),
)
_JOBS = (
    Kind(
        name="jobs: plain",
        file="jobs.csv",
        valid=table_seeds.plain_jobs,
        damage=damaged_lines,
        lines=(f"{_SIMULATE} --json", f"{_SIMULATE} --policy fifo,srtf,drf,tiresias,gavel,traincast"),
    ),
    Kind(
        name="jobs: models",
        file="jobs.csv",
        valid=table_seeds.forecast_jobs,
        damage=damaged_lines,
        lines=("simulate {file} --cluster 1x4xT4 --json",),
    ),
    Kind(
        name="jobs: servers", file="jobs.csv", valid=table_seeds.server_jobs, damage=damaged_lines, lines=(_SIMULATE,)
    ),
    Kind(
        name="jobs: Philly", file="jobs.csv", valid=table_seeds.philly_trace, damage=damaged_lines, lines=(_SIMULATE,)
    ),
    Kind(
        name="jobs: gzipped",
        file="jobs.csv.gz",
        valid=table_seeds.gzipped_trace,
        damage=gzipped_lines,
        lines=(f"{_SIMULATE} --json",),
    ),
    Kind(
        name="jobs: workload",
        file="jobs.csv",
        valid=table_seeds.workload,
        damage=damaged_lines,
        lines=(f"{_SIMULATE} {_WITH_TABLES}",),
        beside=_POLLUX,
    ),
    Kind(
        name="Pollux steps",
        file="pollux_t4_steps.csv",
        valid=table_seeds.pollux_steps,
        damage=damaged_lines,
        lines=("simulate {folder}/jobs.csv --cluster 2x4xT4 " + _WITH_TABLES,),
        beside=_POLLUX,
    ),
    Kind(
        name="Pollux gradients",
        file="pollux_gradient_statistics.csv",
        valid=table_seeds.pollux_gradients,
        damage=damaged_lines,
        lines=("simulate {folder}/jobs.csv --cluster 2x4xT4 --policy pollux " + _WITH_TABLES,),
        beside=_POLLUX,
    ),
    Kind(
        name="jobs: live", file="jobs.csv", valid=table_seeds.live_jobs, damage=damaged_lines, reader=readers.live_jobs
    ),
)
_SPEEDS = (
    Kind(
        name="measured epochs",
        file="epochs.csv",
        valid=table_seeds.measured_epochs,
        damage=damaged_lines,
        lines=("scale --measured {file} --samples 50000 --parameters 11173962 --json",),
    ),
    Kind(
        name="measured runs",
        file="runs.csv",
        valid=table_seeds.measured_runs,
        damage=damaged_lines,
        lines=("scale mnist_cnn --on T4 --gpus 1,2,4 --batch 64 --samples 60000 --compare {file} --json",),
    ),
    Kind(
        name="speeds",
        file="speeds.csv",
        valid=table_seeds.speeds,
        damage=damaged_lines,
        lines=(
            "scale --optimus {file} --json",
            _TRANSFER.format(file="{folder}/curves.csv") + " --optimus {file} --epochs 350 --workers 1-8",
        ),
        beside={"curves.csv": table_seeds.curve_table},
    ),
    Kind(
        name="curves: csv",
        file="curves.csv",
        valid=table_seeds.curve_table,
        damage=damaged_lines,
        lines=(f"{_TRANSFER} --epochs 350 --json", f"{_TRANSFER} --workers 1-8 --epochs 350"),
    ),
    Kind(
        name="curves: json",
        file="curves.json",
        valid=table_seeds.curve_list,
        damage=damaged_json,
        lines=(f"{_TRANSFER} --epochs 350 --json",),
    ),
)
_MEASUREMENTS = (
    Kind(name="profiler trace", file="trace.json", valid=measured_seeds.kineto, damage=damaged_json, lines=_MEASURED),
    Kind(
        name="gzipped trace",
        file="trace.json.gz",
        valid=measured_seeds.gzipped_kineto,
        damage=in_gzip(damaged_json),
        lines=_MEASURED,
    ),
    Kind(name="measured: csv", file="steps.csv", valid=measured_seeds.table, damage=damaged_lines, lines=_MEASURED),
    Kind(
        name="measured: json",
        file="steps.json",
        valid=measured_seeds.measured_json,
        damage=damaged_json,
        lines=_MEASURED,
    ),
    Kind(
        name="measured: sweep", file="sweep.json", valid=measured_seeds.sweep_json, damage=damaged_json, lines=_MEASURED
    ),
    Kind(name="store", file="store.db", valid=measured_seeds.store, damage=damaged_store, lines=(*_STORE, *_MEASURED)),
    Kind(
        name="forecast",
        file="before.json",
        valid=measured_seeds.forecast_json,
        damage=damaged_json,
        lines=(f"forecast mnist_cnn {_ON_T4} --samples 1000 --compare {{file}}",),
    ),
)
_TRAINING = (
    Kind(
        name="checkpoint",
        file="checkpoint.pt",
        valid=model_seeds.checkpoint,
        damage=damaged_zip,
        reader=readers.checkpoint,
    ),
    Kind(
        name="weights: torch",
        file="net.pt",
        valid=model_seeds.torch_weights,
        damage=damaged_zip,
        reader=readers.weights,
    ),
    Kind(
        name="weights: safetensors",
        file="net.safetensors",
        valid=model_seeds.safetensors,
        damage=damaged_headed,
        reader=readers.weights,
    ),
    Kind(name="image", file="image.png", valid=model_seeds.picture, damage=damaged_bytes, reader=readers.picture),
    Kind(
        name="pickle of images",
        file="data_batch_1",
        valid=model_seeds.plain_pickle,
        damage=damaged_bytes,
        reader=readers.pickle,
    ),
)
KINDS = {one.name: one for one in (*_LOGS, *_MODELS, *_PLACES, *_JOBS, *_SPEEDS, *_MEASUREMENTS, *_TRAINING)}
