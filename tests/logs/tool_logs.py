"""Small logs as other people's tools write them, with made-up numbers: what each should be read as stands beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

N_EPOCHS, EPOCH = 5, 100  # of the logs that have both
STEPS = range(10, N_EPOCHS * EPOCH + 1, 10)


def loss(step: float) -> float:
    return round(1.5 + 5 * (step + 5) ** -0.35, 4)


def accuracy(epoch: float) -> float:
    return round(0.75 - 0.6 / (epoch + 1), 4)


def clock(seconds: float) -> str:
    return f"{10 + int(seconds) // 3600:02d}:{int(seconds) // 60 % 60:02d}:{int(seconds) % 60:02d}"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A file; of each series (metric, split) how many points it has, its last step and its last value."""

    text: str
    series: dict[tuple[str, str], tuple[int, float, float]]
    file: str = "train.log"
    format: str = "text"
    facts: dict[str, float] = field(default_factory=dict)
    last_s: float | None = None  # of the series that is longest
    rate: float | None = None


def by_step(line: Callable[[int], str], steps=STEPS) -> str:
    return "".join(map(line, steps))


def by_epoch(line: Callable[[int, int], str], end: Callable[[int], str]) -> str:
    """Lines of steps within epochs, counted from 0, and what comes at the end of each."""
    return "".join(
        "".join(line(epoch, step) for step in range(10, EPOCH + 1, 10)) + end(epoch) for epoch in range(N_EPOCHS)
    )


def table(header: str, row: Callable[[int], tuple], rows=range(30), width: int = 0) -> str:
    names = [f"{name:>{width}}" for name in header.split(",")]
    lines = [",".join(f"{cell:>{width}.6g}" for cell in row(at)) for at in rows]
    return "\n".join([",".join(names), *lines]) + "\n"


def objects(rows: list[dict], word: str = "") -> str:
    return "".join(word + json.dumps(row) + "\n" for row in rows)


LAST = loss(500)
PER_EPOCH = {("loss", "train"): (30, 30, loss(29)), ("loss", "validation"): (30, 30, loss(30))}

TABLES = {
    "Keras CSVLogger": Tool(
        file="training.csv",
        format="csv",
        text=table(
            "epoch,accuracy,learning_rate,loss,val_accuracy,val_loss",
            lambda at: (at, accuracy(at), 1e-3, loss(at), accuracy(at - 0.5), loss(at + 1)),
        ),
        series={
            **PER_EPOCH,
            ("accuracy", "train"): (30, 30, accuracy(29)),
            ("accuracy", "validation"): (30, 30, accuracy(28.5)),
        },
        rate=1e-3,
    ),
    "fastai CSVLogger": Tool(
        file="history.csv",
        format="csv",
        text="epoch,train_loss,valid_loss,accuracy,time\n"
        + by_step(lambda at: f"{at},{loss(at)},{loss(at + 1)},{accuracy(at)},00:{12 + at % 3}\n", range(30)),
        series={**PER_EPOCH, ("accuracy", "validation"): (30, 30, accuracy(29))},
    ),
    "fastai on the console": Tool(
        format="csv",
        text="epoch     train_loss  valid_loss  accuracy  time    \n"
        + by_step(lambda at: f"{at:<10}{loss(at):<12}{loss(at + 1):<12}{accuracy(at):<10}00:12     \n", range(30)),
        series={**PER_EPOCH, ("accuracy", "validation"): (30, 30, accuracy(29))},
    ),
    "timm summary": Tool(
        file="summary.csv",
        format="csv",
        text=table(
            "epoch,train_loss,eval_loss,eval_top1,eval_top5,lr",
            lambda at: (at, loss(at), loss(at + 1), 100 * accuracy(at), 100 * accuracy(at + 1), 0.05),
        ),
        series={**PER_EPOCH, ("accuracy", "validation"): (30, 30, accuracy(29))},
        rate=0.05,
    ),
    "YOLOv5 results": Tool(
        file="results.csv",
        format="csv",
        text=table(
            "epoch,train/box_loss,train/obj_loss,metrics/precision,metrics/mAP_0.5,metrics/mAP_0.5:0.95,val/box_loss,"
            "val/obj_loss,x/lr0,x/lr1",
            lambda at: (at, loss(at), 1, accuracy(at), accuracy(at), accuracy(at) / 2, loss(at + 1), 1, 0.01, 0.1),
            width=20,
        ),
        series={
            ("box_loss", "train"): (30, 30, loss(29)),
            ("box_loss", "validation"): (30, 30, loss(30)),
            ("precision", "validation"): (30, 30, accuracy(29)),
            ("map_0_5", "validation"): (30, 30, accuracy(29)),
        },
        rate=0.01,
    ),
    "TensorBoard's download": Tool(
        file="run-.-tag-val_loss.csv",
        format="csv",
        text=table("Wall time,Step,Value", lambda at: (1.6e9 + 60 * at, 100 * at, loss(at))).replace(
            "1.6e+09", "1.6e9"
        ),
        series={("loss", "validation"): (30, 2900, loss(29))},
    ),
    "MLflow's file of a metric": Tool(
        file="val_loss",
        format="csv",
        text=by_step(lambda at: f"{1_625_000_000_000 + 1000 * at} {loss(at)} {at}\n"),
        series={("loss", "validation"): (50, 500, LAST)},
        last_s=490,
    ),
    "Stable-Baselines3 progress": Tool(
        file="progress.csv",
        format="csv",
        text=table(
            "time/iterations,rollout/ep_rew_mean,time/total_timesteps,train/loss,train/learning_rate,time/time_elapsed",
            lambda at: (at, 100 - 90 / at, 2048 * at, loss(at), 3e-4, 3 * at),
            range(1, 31),
        ),
        series={("loss", "train"): (30, 61440, loss(30)), ("rollout_ep_rew_mean", "train"): (30, 61440, 97)},
        last_s=90,
        rate=3e-4,
    ),
    "a table with blanks": Tool(
        format="csv",
        text="step loss val_loss\n" + by_step(lambda at: f"{at} {loss(at)}   {loss(at + 1)}\n"),
        series={("loss", "train"): (50, 500, LAST), ("loss", "validation"): (50, 500, loss(501))},
    ),
}


def detectron2() -> list[dict]:
    rows = []
    for at in STEPS:
        row = {"data_time": 0.01, "eta_seconds": 900.0 - at, "iteration": at, "loss_cls": loss(at) / 2, "lr": 0.02,
               "rank_data_time": 0.01, "time": 0.3 + at % 3 / 100, "total_loss": loss(at)}  # fmt: skip
        rows.append(row | ({"bbox/AP": 20 + at / 100, "bbox/AP50": 40 + at / 100} if at % 100 == 0 else {}))
    return rows


def mmengine(epoch: int, step: int) -> dict:
    at = epoch * EPOCH + step
    return {"lr": 0.02, "data_time": 0.01, "loss": loss(at), "time": 0.5, "epoch": epoch + 1, "iter": at, "step": at}


def mmdetection(epoch: int, step: int) -> dict:
    row = {"mode": "train", "epoch": epoch + 1, "iter": step, "lr": 0.02, "memory": 3000, "data_time": 0.01}
    return row | {"loss_cls": 1.0, "loss": loss(epoch * EPOCH + step), "time": 0.5}


def dllogger(step: list[int], seconds: float, data: dict) -> dict:
    return {
        "timestamp": f"{1.58e9 + seconds:.6f}",
        "elapsedtime": str(seconds),
        "type": "LOG",
        "step": step,
        "data": data,
    }


def json_by_epoch(row: Callable[[int, int], dict], end: Callable[[int], dict], word: str = "") -> str:
    return by_epoch(lambda epoch, step: objects([row(epoch, step)], word), lambda epoch: objects([end(epoch)], word))


OBJECTS = {
    "Detectron2 metrics.json": Tool(
        file="metrics.json",
        format="jsonl",
        text=objects(detectron2()),
        series={
            ("loss", "train"): (50, 500, LAST),
            ("bbox_ap", "validation"): (5, 500, 0.25),
            ("bbox_ap50", "validation"): (5, 500, 0.45),
        },
        rate=0.02,
    ),
    "mmengine scalars.json": Tool(
        file="scalars.json",
        format="jsonl",
        text=json_by_epoch(
            mmengine,
            lambda epoch: {"coco/bbox_mAP": accuracy(epoch), "data_time": 0.02, "time": 0.1, "step": epoch + 1},
        ),
        series={("loss", "train"): (50, 500, LAST), ("coco_bbox_map", "validation"): (5, 500, accuracy(4))},
        facts={"steps_per_epoch": 100},
        rate=0.02,
    ),
    "mmdetection log.json": Tool(
        file="20240101.log.json",
        format="jsonl",
        text=objects([{"env_info": "sys.platform: linux\nPython: 3.8", "config": "model = dict(\n)", "seed": None}])
        + json_by_epoch(
            mmdetection, lambda epoch: {"mode": "val", "epoch": epoch + 1, "iter": 625, "bbox_mAP": accuracy(epoch)}
        ),
        series={("loss", "train"): (50, 500, LAST), ("bbox_map", "validation"): (5, 500, accuracy(4))},
        facts={"steps_per_epoch": 100},
        rate=0.02,
    ),
    "NVIDIA DLLogger": Tool(
        file="log.json",
        format="jsonl",
        text="DLLL "
        + json.dumps(dllogger([], 0, {}) | {"step": "PARAMETER", "data": {"batch_size": 256, "lr": 0.8}})
        + "\n"
        + json_by_epoch(
            lambda epoch, step: dllogger(
                [epoch, step], epoch * EPOCH + step, {"train.loss": loss(epoch * EPOCH + step), "train.lr": 0.1,
                                                         "train.total_ips": 800.0}
            ),
            lambda epoch: dllogger([epoch], 100 * epoch + 101, {"train.loss": 9.0, "val.top1": 100 * accuracy(epoch)}),
            "DLLL ",
        )
        + objects([dllogger([], 900, {"train.loss": 8.0, "val.top1": 70.0})], "DLLL "),
        series={("loss", "train"): (50, 500, LAST), ("accuracy", "validation"): (5, 500, accuracy(4))},
        facts={"steps_per_epoch": 100, "batch_size": 256},
        rate=0.1,
    ),
    "log.txt of DETR and MAE": Tool(
        file="log.txt",
        format="jsonl",
        text=objects(
            [
                {"train_lr": 1e-4, "train_loss": loss(at), "test_acc1": 100 * accuracy(at), "epoch": at}
                for at in range(30)
            ]
        ),
        series={("loss", "train"): (30, 30, loss(29)), ("accuracy", "test"): (30, 30, accuracy(29))},
        rate=1e-4,
    ),
}  # fmt: skip
