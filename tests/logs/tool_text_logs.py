"""Small logs as other people's tools print them, with made-up numbers: what each should be read as stands beside it."""

from __future__ import annotations

import math

from tool_logs import EPOCH, LAST, Tool, accuracy, by_epoch, by_step, clock, loss


def megatron(at: int) -> str:
    line = (
        f" [2024-01-02 {clock(at)}] iteration {at:8d}/    5000 | consumed samples: {at * 64:12d} | elapsed time per "
        f"iteration (ms): {1000 + at % 7:.1f} | learning rate: {1.5e-4:.6E} | global batch size:    64 | "
        f"lm loss: {loss(at):.6E} | loss scale: 1.0 | grad norm: 0.227 | number of skipped iterations:   0 |\n"
    )
    rule = "-" * 80 + "\n"
    validation = f" validation loss at iteration {at} | lm loss value: {loss(at + 1):.6E} | lm loss PPL: 9.0E+00 | \n"
    return line + (rule + validation + rule if at % 100 == 0 else "")


def composer(at: int) -> str:
    train = (
        f"[batch={at}/600]:\n\t Train time/batch: {at - 1}\n\t Train time/epoch: 0\n"
        f"\t Train loss/train/total: {loss(at)}\n"
        f"\t Train metrics/train/LanguageCrossEntropy: {loss(at)}\n\t Train throughput/batches_per_sec: 0.05\n"
        "\t Train lr-DecoupledAdamW/group0: 0.0003\n"
    )
    evaluation = (
        "[Eval batch=1/20] Eval on eval data\n[Eval batch=20/20] Eval on eval data:\n"
        f"\t Eval metrics/eval/LanguageCrossEntropy: {loss(at + 1)}\n"
    )
    return train + (evaluation if at % 100 == 0 else "")


def nanogpt(at: int) -> str:
    estimate = f"step {at}: train loss {loss(at)}, val loss {loss(at + 1)}\nsaving checkpoint to out\n"
    return (estimate if at % 100 == 0 else "") + f"iter {at}: loss {loss(at)}, time {120 + at % 7}.25ms, mfu 10.2%\n"


def deepspeed(at: int) -> str:
    return (
        f"[2023-01-02 {clock(5 * at)},123] [INFO] [logging.py:96:log_dist] [Rank 0] step={at}, skipped=0, "
        "lr=[9.65e-06, 9.65e-06], mom=[(0.9, 0.95), (0.9, 0.95)]\n"
        f"steps: {at} loss: {loss(at)} iter time (s): 0.5{at % 7} samples/sec: 500.2\n"
    )


def fairseq(epoch: int, step: int) -> str:
    at = epoch * EPOCH + step
    return (
        f"2020-01-02 {clock(at)} | INFO | train_inner | epoch {epoch + 1:03d}:    {step} / 100 loss={loss(at)}, "
        f"ppl=5.1, wps=25000.1, ups=2.1, bsz=350.1, num_updates={at}, lr=1.2e-05, gnorm=2.5, loss_scale=64, wall={at}\n"
    )


def fairseq_end(epoch: int) -> str:
    at = (epoch + 1) * EPOCH
    return (
        f"2020-01-02 {clock(at)} | INFO | valid | epoch {epoch + 1:03d} | valid on 'valid' subset | "
        f"loss {loss(at + 1)} | ppl 6.25 | bsz 300 | num_updates {at} | best_loss 1.0\n"
        f"2020-01-02 {clock(at)} | INFO | train | epoch {epoch + 1:03d} | loss 9.0 | ppl 512 | num_updates {at}\n"
    )


def paddleclas(epoch: int, step: int) -> str:
    return (
        f"[2024/07/31 {clock(epoch * EPOCH + step)}] ppcls INFO: [Train][Epoch {epoch + 1}/120][Iter: {step}/100]"
        f"lr(PiecewiseDecay): 0.00100000, top1: 0.5, CELoss: 1.0, loss: {loss(epoch * EPOCH + step)}, "
        "batch_cost: 0.61280s, reader_cost: 0.12493, ips: 26.1 samples/s, eta: 5:01:10\n"
    )


def paddleclas_end(epoch: int) -> str:
    time = f"[2024/07/31 {clock((epoch + 1) * EPOCH)}] ppcls INFO:"
    return (
        f"{time} [Train][Epoch {epoch + 1}/120][Avg]top1: 0.1, CELoss: 9.0, loss: 9.0\n"
        f"{time} [Eval][Epoch {epoch + 1}][Iter: 0/20]CELoss: 1.0, batch_cost: 1.2s, ips: 50.0 images/sec\n"
        f"{time} [Eval][Epoch {epoch + 1}][Avg]CELoss: 1.0, loss: {loss((epoch + 1) * EPOCH + 1)}, "
        f"top1: {accuracy(epoch)}\n"
        f"{time} [Eval][Epoch {epoch + 1}][best metric: 0.9]\n"
    )


def mmengine_lines(epoch: int, step: int) -> str:
    return (
        f"2024/06/16 {clock(epoch * EPOCH + step)} - mmengine - INFO - Epoch(train)  [{epoch + 1}][{step:3d}/100]  "
        f"lr: 2.0000e-02  eta: 0:20:00  time: 0.5{step % 7}00  data_time: 0.0100  memory: 3000  "
        f"loss: {loss(epoch * EPOCH + step)}  loss_cls: 1.0\n"
    )


def mmengine_end(epoch: int) -> str:
    time = f"2024/06/16 {clock((epoch + 1) * EPOCH)} - mmengine - INFO - Epoch(val)"
    return (
        f"{time}  [{epoch + 1}][ 50/80]    eta: 0:00:10  time: 0.0500  data_time: 0.0010  memory: 900  \n"
        f"{time} [{epoch + 1}][80/80]    accuracy/top1: {100 * accuracy(epoch)}  data_time: 0.0020  time: 0.0500\n"
    )


def open_clip(epoch: int, step: int) -> str:
    at = epoch * EPOCH + step
    return (
        f"2023-05-01,{clock(at)} | INFO | Train Epoch: {epoch} [{100 * step:5d}/10000 ({step}%)] Data (t): 0.010 "
        f"Batch (t): 0.500, 1000.1/s LR: 0.000100 Logit Scale: 14.3 Loss: {loss(at)} (9.0)\n"
    )


def quickstart(epoch: int, step: int) -> str:
    title = f"Epoch {epoch + 1}\n-------------------------------\n" if step == 10 else ""
    return title + f"loss: {loss(epoch * EPOCH + step):>7f}  [{600 * step:>5d}/60000]\n"


TRAIN_500 = {("loss", "train"): (50, 500, LAST)}
TEXTS = {
    "Megatron-LM": Tool(
        text=by_step(megatron),
        series={**TRAIN_500, ("loss", "validation"): (5, 500, loss(501))},
        facts={"total_steps": 5000},
        last_s=490,
        rate=1.5e-4,
    ),
    "nanoGPT": Tool(text=by_step(nanogpt), series={**TRAIN_500, ("loss", "validation"): (5, 500, loss(501))}),
    "build-nanogpt": Tool(
        text=by_step(lambda at: (f"{at} val {loss(at + 1)}\n" if at % 100 == 0 else "") + f"{at} train {loss(at)}\n"),
        series={**TRAIN_500, ("loss", "validation"): (5, 500, loss(501))},
    ),
    "llm.c": Tool(
        text="allocating 237 MiB for parameters\n"
        + by_step(
            lambda at: (
                f"step {at:5d}/19560 | loss {loss(at)} (+1.20z)| norm 1.2345 (-0.30z)| lr 6.00e-04 | "
                "300.12 ms | 55.1% bf16 MFU | 1700000 tok/s\n" + (f"val loss {loss(at + 1)}\n" if at % 100 == 0 else "")
            )
        ),
        series={**TRAIN_500, ("loss", "validation"): (5, 500, loss(501))},
        facts={"total_steps": 19560},
        rate=6e-4,
    ),
    "torchtitan": Tool(
        text=by_step(
            lambda at: (
                f"[rank0]:[titan] 2026-05-18 {clock(at)},338 - root - INFO - \x1b[31mstep: {at:2}  \x1b[32m"
                f"loss: {loss(at):8.5f}  \x1b[34mmemory:  9.46GiB(64.99%)  \x1b[36mtps: 7,282  mfu: 0.17%\x1b[39m\n"
            )
        ),
        series=TRAIN_500,
        last_s=490,
    ),
    "DeepSpeed": Tool(text=by_step(deepspeed), series=TRAIN_500, last_s=2450, rate=9.65e-6),
    "Composer": Tool(
        text=by_step(composer),
        series={
            **TRAIN_500,
            ("language_cross_entropy", "train"): (50, 500, LAST),
            ("language_cross_entropy", "validation"): (5, 500, loss(501)),
        },
        facts={"total_steps": 600},
        rate=3e-4,
    ),
    "OLMo": Tool(
        text=by_step(
            lambda at: (
                f"2024-01-02 {clock(at)}.1\thost:0\tolmo.train:967\tINFO\t[step={at}/7000,epoch=0]\n"
                f"    train/CrossEntropyLoss={loss(at)}\n    train/Perplexity={math.exp(loss(at)):.3f}\n"
                "    throughput/total_tokens=4,194,304\n"
            )
        ),
        series={("cross_entropy_loss", "train"): (50, 500, LAST)},
        last_s=490,
    ),
    "litgpt": Tool(
        text=by_step(
            lambda at: f"Epoch 1 | iter {4 * at} step {at} | loss train: {loss(at)}, val: n/a | iter time: 3.1 ms\n"
        ),
        series=TRAIN_500,
    ),
    "Axolotl and other Trainers of the console": Tool(
        text=by_step(
            lambda at: (
                f"{{'loss': '{loss(at)}', 'grad_norm': '1.2', 'learning_rate': '2e-05', 'epoch': '{at / 100}'}}\n"
            )
        )
        + "{'train_runtime': 812.3, 'train_samples_per_second': 4.1, 'train_loss': 9.0, 'epoch': 5.0}\n",
        series={("loss", "train"): (50, 5, LAST)},
        rate=2e-5,
    ),
    "fairseq": Tool(
        text=by_epoch(fairseq, fairseq_end),
        series={
            **TRAIN_500,
            ("loss", "validation"): (5, 500, loss(501)),
            ("ppl", "validation"): (5, 500, 6.25),
        },
        facts={"steps_per_epoch": 100},
        last_s=490,
        rate=1.2e-5,
    ),
    "mmengine": Tool(
        text=by_epoch(mmengine_lines, mmengine_end),
        series={**TRAIN_500, ("accuracy", "validation"): (5, 500, accuracy(4))},
        facts={"steps_per_epoch": 100},
        last_s=490,
        rate=0.02,
    ),
    "Detectron2": Tool(
        text=by_step(
            lambda at: (
                f"[01/02 {clock(at)} d2.utils.events]:  eta: 0:10:00  iter: {at}  total_loss: {loss(at)}  "
                "loss_cls: 1.2  time: 0.3312  last_time: 0.35  data_time: 0.0123   lr: 0.001  max_mem: 2500M\n"
            )
        ),
        series=TRAIN_500,
        last_s=490,
        rate=1e-3,
    ),
    "PaddleClas": Tool(
        text=by_epoch(paddleclas, paddleclas_end),
        series={
            **TRAIN_500,
            ("loss", "validation"): (5, 500, loss(501)),
            ("accuracy", "validation"): (5, 500, accuracy(4)),
        },
        facts={"steps_per_epoch": 100, "n_epochs": 120},
        last_s=490,
        rate=1e-3,
    ),
    "PaddleSeg": Tool(
        text=by_step(
            lambda at: (
                f"2021-03-30 {clock(at)} [INFO]\t[TRAIN] epoch: {1 + (at - 1) // 100}, iter: {at}/800, "
                f"loss: {loss(at)}, lr: 0.009657, batch_cost: 0.5344, ips: 3.7425 samples/sec | ETA 00:04:16\n"
                + (
                    f"2021-03-30 {clock(at)} [INFO]\t[EVAL] #Images: 500 mIoU: {accuracy(at)}\n"
                    if at % 100 == 0
                    else ""
                )
            )
        ),
        series={**TRAIN_500, ("miou", "validation"): (5, 500, accuracy(500))},
        facts={"steps_per_epoch": 100, "total_steps": 800},
        last_s=490,
        rate=0.009657,
    ),
    "OpenCLIP": Tool(
        text=by_epoch(
            open_clip,
            lambda epoch: (
                f"2023-05-01,{clock((epoch + 1) * EPOCH)} | INFO | Eval Epoch: {epoch + 1} "
                f"imagenet-zeroshot-val-top1: {accuracy(epoch)}\n"
            ),
        ),
        series={("loss", "train"): (50, 5, LAST), ("imagenet_zeroshot_top1", "validation"): (5, 5, accuracy(4))},
        last_s=490,
        rate=1e-4,
    ),
    "the CIFAR-10 tutorial": Tool(
        text=by_epoch(
            lambda epoch, step: f"[{epoch + 1}, {step:5d}] loss: {loss(epoch * EPOCH + step)}\n", lambda _: ""
        ),
        series=TRAIN_500,
        facts={"steps_per_epoch": 100},
    ),
    "the quickstart tutorial": Tool(
        text=by_epoch(
            quickstart,
            lambda epoch: f"Test Error: \n Accuracy: {100 * accuracy(epoch):>0.1f}%, Avg loss: {loss(epoch):>8f} \n\n",
        ),
        series={
            ("loss", "train"): (50, 5, LAST),
            ("accuracy", "test"): (5, 5, 0.63),
            ("loss", "test"): (5, 5, loss(4)),
        },
    ),
    "MaxText": Tool(
        text=by_step(lambda at: f"completed step: {at}, seconds: 2.1{at // 10 % 7}, loss: {loss(at)}\n"),
        series=TRAIN_500,
    ),
    "XGBoost": Tool(
        text=by_step(lambda at: f"[{at}]\ttrain-logloss:{loss(at)}\teval-logloss:{loss(at + 1)}\n"),
        series={("logloss", "train"): (50, 500, LAST), ("logloss", "validation"): (50, 500, loss(501))},
    ),
    "LightGBM": Tool(
        text=by_step(
            lambda at: f"[{at}]\ttraining's binary_logloss: {loss(at)}\tvalid_1's binary_logloss: {loss(at + 1)}\n"
        ),
        series={("binary_logloss", "train"): (50, 500, LAST), ("binary_logloss", "validation"): (50, 500, loss(501))},
    ),
    "CatBoost": Tool(
        text=by_step(
            lambda at: f"{at}:\tlearn: {loss(at)}\ttest: {loss(at + 1)}\tbest: 1.0000 (1)\ttotal: {6 * at}ms\n"
        ),
        series={**TRAIN_500, ("loss", "test"): (50, 500, loss(501))},
    ),
}
