"""A plan in the words of what starts it: SkyPilot, Slurm or torchrun.

`train.py` stands for the user's own script. What it has to be told (samples of one pass, passes, precision, epochs) is
on its line, as options that the user renames.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable

from traincast.errors import InputError, close_names
from traincast.planning.plan import Choice
from traincast.units import show_duration, show_usd

_PORT = 29500
_CLOUDS = {"AWS": "aws", "GCP": "gcp", "Azure": "azure", "Lambda": "lambda", "RunPod": "runpod"}
_ATTACHED = re.compile(r"(?P<machine>.+)\+(?P<n>[0-9]+)x(?P<device>[A-Za-z0-9-]+)")  # n1-standard-8+1xT4


def job_text(choice: Choice, kind: str) -> str:
    """The file or the line that starts a plan."""
    check_kind(kind)
    return WRITERS[kind](choice)


def check_kind(kind: str) -> None:
    """One sentence for what a plan cannot be written as."""
    if kind not in WRITERS:
        hint = close_names(kind, WRITERS)
        raise InputError(f"A plan cannot be written as '{kind}'.{hint} Choose from: {', '.join(WRITERS)}.")


def _torchrun(choice: Choice) -> str:
    lines = _uneven(choice)
    if choice.n_nodes == 1:
        lines.append(f"torchrun --standalone --nproc_per_node={choice.n_devices} {_script(choice)}")
        return "\n".join(lines) + "\n"
    lines += [
        "# on every machine, with its own rank and the address of the first",
        f"torchrun --nnodes={choice.n_nodes} --nproc_per_node={_per_node(choice)} --node_rank=$NODE_RANK "
        f"--master_addr=$MASTER_ADDR --master_port={_PORT} {_script(choice)}",
    ]
    return "\n".join(lines) + "\n"


def _slurm(choice: Choice) -> str:
    """Time is p90 and a tenth, in whole minutes: a job that is cut off has to be run again."""
    minutes = math.ceil(1.1 * choice.interval("total_s")[1] / 60)
    days, rest = divmod(minutes, 24 * 60)
    lines = [
        "#!/bin/bash",
        f"# {_summary(choice)}",
        *_uneven(choice),
        f"#SBATCH --job-name={_job_name(choice)}",
        f"#SBATCH --nodes={choice.n_nodes}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={_per_node(choice)}",
        f"#SBATCH --time={days}-{rest // 60:02d}:{rest % 60:02d}:00",
    ]
    if choice.offer.n_cpus is not None:
        lines.append(f"#SBATCH --cpus-per-task={choice.offer.n_cpus}")
    if choice.is_spot:
        lines.append("#SBATCH --requeue")
    run = f"--nproc_per_node={_per_node(choice)} {_script(choice)}"
    if choice.n_nodes == 1:
        return "\n".join([*lines, "", f"srun torchrun --standalone {run}"]) + "\n"
    head = 'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
    joined = f"srun torchrun --nnodes={choice.n_nodes} --rdzv_backend=c10d --rdzv_id=$SLURM_JOB_ID"
    return "\n".join([*lines, "", head, f"{joined} --rdzv_endpoint=$MASTER_ADDR:{_PORT} {run}"]) + "\n"


def _sky(choice: Choice) -> str:
    """Names are quoted as JSON, which YAML reads: none of them can be taken for something else.

    The type of a machine says which GPUs it has, and SkyPilot refuses others beside it (it tells an H100-SXM from an
    H100-MEGA). Only Google's N1 machines have none of their own, and our names of these end with what is attached.
    """
    offer = choice.offer
    if offer.provider not in _CLOUDS:
        raise InputError(
            f"SkyPilot does not know the provider '{offer.provider}' of '{offer.name}': write the plan as slurm or "
            "torchrun."
        )
    infra = _CLOUDS[offer.provider] + (f"/{offer.region}" if offer.region and offer.region != "US" else "")
    attached = _ATTACHED.fullmatch(offer.name)
    machine = offer.name if attached is None else attached["machine"]
    run = (
        f"torchrun --nnodes=$SKYPILOT_NUM_NODES --nproc_per_node={_per_node(choice)} "
        f"--node_rank=$SKYPILOT_NODE_RANK --master_addr=$MASTER_ADDR --master_port={_PORT} {_script(choice)}"
    )
    lines = [
        f"# {_summary(choice)}",
        *_uneven(choice),
        "# sky jobs launch FILE: begins again where a machine is taken back, which sky launch does not"
        if choice.is_spot
        else "# sky launch FILE",
        f"name: {json.dumps(_job_name(choice))}",
        "resources:",
        f"  infra: {json.dumps(infra)}",
        f"  instance_type: {json.dumps(machine)}",
        *([f'  accelerators: "{attached["device"]}:{attached["n"]}"'] if attached else []),
        f"  use_spot: {str(choice.is_spot).lower()}",
        f"num_nodes: {choice.n_nodes}",
        "run: |",
        '  MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n1)',
        f"  {run}",
    ]
    return "\n".join(lines) + "\n"


WRITERS: dict[str, Callable[[Choice], str]] = {"sky": _sky, "slurm": _slurm, "torchrun": _torchrun}


def _script(choice: Choice) -> str:
    question = choice.question
    options = {
        "--model": shlex.quote(_on_one_line(question.trace.name)),
        "--batch-size": question.micro_batch_size,
        "--accumulate": question.accumulation_steps,
        "--precision": question.settings.precision,
        "--optimizer": question.settings.optimizer,
        "--epochs": f"{math.ceil(round(choice.n_epochs, 6))}",
    }
    if choice.strategy is not None:
        options["--strategy"] = choice.strategy
    if choice.checkpoint_interval_s is not None:
        options["--checkpoint-every-s"] = max(1, round(choice.checkpoint_interval_s))
    return " ".join(["train.py", *(f"{name} {value}" for name, value in options.items())])


def _uneven(choice: Choice) -> list[str]:
    """A remark where devices cannot share the batch evenly: equal shares of whole samples make a larger one."""
    question = choice.question
    each = question.micro_batch_size * question.accumulation_steps
    n_seen = each * choice.n_devices
    if n_seen == question.batch_size:
        return []
    told = f"a batch of {question.batch_size:,} on {choice.n_devices} devices is {each:,} each"
    return [f"# {told}: an update sees {n_seen:,} samples unless the script leaves some out"]


def _summary(choice: Choice) -> str:
    low, high = (show_duration(seconds) for seconds in choice.interval("total_s"))
    kind = "spot" if choice.is_spot else "on demand"
    return (
        f"{_on_one_line(choice.place)}, {kind}: {show_duration(choice.total_s)} ({low} to {high}), about "
        f"{show_usd(choice.cost_usd)} at prices of {choice.offer.price_date}"
    )


def _on_one_line(text: str) -> str:
    """Neither a comment nor a block of YAML can hold a control character."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _per_node(choice: Choice) -> int:
    return choice.n_devices // choice.n_nodes


def _job_name(choice: Choice) -> str:
    """Letters, digits and dashes: what all of them allow."""
    return re.sub(r"[^A-Za-z0-9]+", "-", choice.question.trace.name).strip("-").lower()[:40] or "training"
