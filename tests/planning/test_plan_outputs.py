"""A plan as a job: what SkyPilot, Slurm and torchrun read."""

import re
import shlex
import subprocess
from dataclasses import replace

import pytest
import yaml

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
            precision="fp32",
            method="roofline",
            max_nodes=n_nodes,
            **{"batch_size": 256, **options},
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
    job = yaml.safe_load(job_text(choice_of("p4d.24xlarge", model="resnet50", n_nodes=2), "sky"))
    assert job["name"] == "resnet50"
    assert job["num_nodes"] == 2
    assert job["resources"] == {"infra": "aws/us-east-1", "instance_type": "p4d.24xlarge", "use_spot": False}
    assert "--nnodes=$SKYPILOT_NUM_NODES --nproc_per_node=8" in job["run"]


@pytest.mark.parametrize(
    ("name", "infra", "instance_type"),
    [
        ("gpu_8x_v100", "lambda", "gpu_8x_v100"),
        ("gpu_1x_a6000", "lambda", "gpu_1x_a6000"),
        ("1x_H100-SXM_SECURE", "runpod", "1x_H100-SXM_SECURE"),
        ("a3-megagpu-8g", "gcp/us-central1", "a3-megagpu-8g"),
        ("Standard_ND40rs_v2", "azure/eastus", "Standard_ND40rs_v2"),
    ],
)
def test_the_type_of_a_machine_says_which_gpus_it_has(name, infra, instance_type):
    resources = yaml.safe_load(job_text(choice_of(name), "sky"))["resources"]
    assert resources == {"infra": infra, "instance_type": instance_type, "use_spot": False}


@pytest.mark.parametrize(
    ("name", "accelerators"), [("n1-standard-8+1xT4", "T4:1"), ("n1-standard-32+4xV100", "V100:4")]
)
def test_gpus_that_are_attached_to_a_machine_are_named(name, accelerators):
    job = yaml.safe_load(job_text(choice_of(name), "sky"))
    assert job["resources"]["accelerators"] == accelerators
    assert job["resources"]["instance_type"] == name.partition("+")[0]
    assert f"--nproc_per_node={accelerators[-1]} " in job["run"]


@pytest.fixture(scope="module")
def any_choice():
    """A plan of each kind of job: one machine and several, on demand and spot."""
    return [
        choice_of("gpu_8x_v100"),
        choice_of("p4d.24xlarge", model="resnet50", n_nodes=2),
        choice_of("g4dn.xlarge", spot=True, is_spot=True),
    ]


def jobs_of_every_offer(any_choice):
    """Every machine of the table, in the place of that of a plan."""
    for number, offer in enumerate(all_offers()):
        choice = any_choice[number % len(any_choice)]
        yield replace(choice, offer=offer, is_spot=choice.is_spot and offer.spot_usd_per_hour is not None)


def test_every_offer_makes_a_task_that_skypilot_can_read(any_choice):
    for choice in jobs_of_every_offer(any_choice):
        job = yaml.safe_load(job_text(choice, "sky"))
        assert set(job) == {"name", "resources", "num_nodes", "run"}
        resources = dict(job["resources"])
        assert resources.pop("instance_type") == choice.offer.name.partition("+")[0]
        assert resources.pop("infra").partition("/")[0] in ("aws", "gcp", "azure", "lambda", "runpod")
        assert resources.pop("use_spot") is choice.is_spot
        assert bool(resources) == choice.offer.name.startswith("n1-")
        assert job["num_nodes"] == choice.n_nodes


def test_jobs_are_scripts_that_bash_can_read(any_choice, tmp_path):
    strange = replace(any_choice[0].question.trace, name="it's a `net` $(x)\n; rm -rf \x07 &")
    odd = replace(any_choice[0], question=replace(any_choice[0].question, trace=strange))
    for choice in [*any_choice, odd]:
        scripts = [job_text(choice, "slurm"), job_text(choice, "torchrun")]
        scripts.append(yaml.safe_load(job_text(choice, "sky"))["run"])
        for script in scripts:
            subprocess.run(["bash", "-n"], input=script, text=True, check=True)
            (line,) = [line for line in script.splitlines() if "train.py" in line]
            words = shlex.split(line)
            assert words[words.index("--model") + 1] == "".join(
                letter if letter.isprintable() else " " for letter in choice.question.trace.name
            )
            assert words[words.index("--epochs") + 1] == "200"


def test_headers_of_slurm_come_before_the_first_command(any_choice):
    for choice in any_choice:
        first, *rest = job_text(choice, "slurm").splitlines()
        assert first == "#!/bin/bash"
        n_headers = sum(line.startswith("#SBATCH --") for line in rest)
        assert n_headers >= 5
        assert all(line.startswith("#") for line in rest[: rest.index("")])
        assert not any(line.startswith("#SBATCH") for line in rest[rest.index("") :])


@pytest.mark.parametrize("kind", ["sky", "slurm", "torchrun"])
def test_a_batch_that_devices_cannot_share_evenly_is_remarked_on(kind):
    assert "an update sees" not in job_text(choice_of("gpu_8x_v100"), kind)
    text = job_text(choice_of("gpu_8x_v100", batch_size=100), kind)
    assert "# a batch of 100 on 8 devices is 13 each: an update sees 104 samples unless" in text
    assert "--batch-size 13 " in text


def test_a_spot_job_saves_at_its_interval_and_is_put_back_into_the_queue():
    choice = choice_of("g4dn.xlarge", spot=True, is_spot=True)
    text = job_text(choice, "slurm")
    assert "#SBATCH --requeue\n" in text
    assert f"--checkpoint-every-s {choice.checkpoint_interval_s:.0f}\n" in text
    task = job_text(choice, "sky")
    assert "use_spot: true" in task
    assert "# sky jobs launch FILE: begins again where a machine is taken back" in task
    assert "# sky launch FILE\n" in job_text(choice_of("g4dn.xlarge"), "sky")


def test_what_cannot_be_written_is_refused():
    choice = choice_of("gpu_8x_v100")
    with pytest.raises(InputError, match="A plan cannot be written as 'skypilot'"):
        job_text(choice, "skypilot")
