"""A plan as a job: what SkyPilot, Slurm and torchrun read."""

import re

import pytest

import traincast as tc
from traincast.errors import InputError
from traincast.planning.offers import all_offers
from traincast.planning.outputs import job_text


def choice_of(name, *, model="cifar_resnet20", n_nodes=1, is_spot=False, **options):
    """The only choice on so many machines of one offer."""
    listed = {offer.name: offer for offer in all_offers()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("traincast.planning.offers.all_offers", lambda: (listed[name],))
        plan = tc.plan(
            model,
            n_samples=50_000,
            n_epochs=200,
            batch_size=256,
            precision="fp32",
            method="roofline",
            max_nodes=n_nodes,
            **options,
        )
    return next(choice for choice in plan.pareto if (choice.n_nodes, choice.is_spot) == (n_nodes, is_spot))


def test_torchrun_on_one_machine_is_one_line():
    assert job_text(choice_of("gpu_8x_v100"), "torchrun") == (
        "torchrun --standalone --nproc_per_node=8 train.py --model cifar_resnet20 --batch-size 32 --accumulate 1 "
        "--precision fp32 --optimizer sgd --epochs 200 --strategy ddp\n"
    )


def test_torchrun_on_several_machines_leaves_rank_and_address_open():
    text = job_text(choice_of("p4d.24xlarge", model="resnet50", n_nodes=2), "torchrun")
    assert "--nnodes=2 --nproc_per_node=8 --node_rank=$NODE_RANK --master_addr=$MASTER_ADDR" in text
    assert "--batch-size 16 " in text


def test_slurm_has_the_machines_and_a_time_that_p90_keeps():
    choice = choice_of("p4d.24xlarge", model="resnet50", n_nodes=2)
    text = job_text(choice, "slurm")
    assert text.startswith("#!/bin/bash\n# 2xp4d.24xlarge, on demand: ")
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=8\n" in text
    assert "#SBATCH --cpus-per-task=96\n" in text
    days, hours, minutes = map(int, re.search(r"--time=(\d+)-(\d\d):(\d\d):00", text).groups())
    limit_s = 60 * (minutes + 60 * (hours + 24 * days))
    assert choice.interval("total_s")[1] < limit_s < 1.2 * choice.interval("total_s")[1] + 60
    assert "srun torchrun --nnodes=2 --rdzv_backend=c10d --rdzv_id=$SLURM_JOB_ID" in text


def test_sky_yaml_says_what_to_rent_and_where():
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load(job_text(choice_of("p4d.24xlarge", model="resnet50", n_nodes=2), "sky"))
    assert job["name"] == "resnet50"
    assert job["num_nodes"] == 2
    assert job["resources"] == {
        "infra": "aws/us-east-1",
        "instance_type": "p4d.24xlarge",
        "accelerators": "A100:8",
        "use_spot": False,
    }
    assert "--nnodes=$SKYPILOT_NUM_NODES" in job["run"]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("n1-standard-8+1xT4", ['infra: "gcp/us-central1"', 'instance_type: "n1-standard-8"', 'accelerators: "T4:1"']),
        ("gpu_8x_v100", ['infra: "lambda"', 'accelerators: "V100:8"']),
        ("1x_RTX4090_SECURE", ['infra: "runpod"', 'accelerators: "RTX4090:1"']),
        ("gpu_1x_h100_pcie", ['accelerators: "H100:1"']),
        ("a3-ultragpu-8g", ['accelerators: "H200:8"']),
        ("g6e.xlarge", ['accelerators: "L40S:1"']),
        ("Standard_ND40rs_v2", ['infra: "azure/eastus"', 'accelerators: "V100-32GB:8"']),
    ],
)
def test_devices_have_skypilots_names(name, lines):
    text = job_text(choice_of(name), "sky")
    assert [line for line in lines if line not in text] == []


def test_a_spot_job_saves_at_its_interval_and_is_put_back_into_the_queue():
    choice = choice_of("g4dn.xlarge", spot=True, is_spot=True)
    text = job_text(choice, "slurm")
    assert "#SBATCH --requeue\n" in text
    assert f"--checkpoint-every-s {choice.checkpoint_interval_s:.0f}\n" in text
    assert "use_spot: true" in job_text(choice, "sky")


def test_what_cannot_be_written_is_refused():
    choice = choice_of("gpu_8x_v100")
    with pytest.raises(InputError, match="A plan cannot be written as 'skypilot'"):
        job_text(choice, "skypilot")
