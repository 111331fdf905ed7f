"""`traincast plan`: what it prints, and what it refuses."""

import json
from pathlib import Path

import pytest

from traincast.__main__ import run
from traincast.errors import InputError
from traincast.options.typed import DOUBLING, DURATION

SMALL = [
    "plan",
    "cifar_resnet20",
    "--samples",
    "50000",
    "--epochs",
    "20",
    "--provider",
    "Lambda",
    "--method",
    "roofline",
]


def told(capsys, *flags):
    assert run([*SMALL, *flags]) == 0
    return capsys.readouterr().out


def refused(capsys, *arguments):
    assert run(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1
    return captured.err


def test_the_answer_has_what_to_rent_the_front_and_the_day_of_the_prices(capsys):
    out = told(capsys, "--deadline", "2h", "--budget", "20")
    assert out.startswith("cifar_resnet20: 20 epochs of 50,000 samples\nwithin 2.00 h and for at most $20.00, ")
    for words in (
        "\ncheapest ",
        "\nfastest ",
        "no other plan is both faster and cheaper",
        "Rent ",
        "2026-08-03",
        "No batch size was given",
    ):
        assert words in out
    assert "\nnearest " not in out


def test_a_confidence_may_be_in_percent(capsys):
    answers = [told(capsys, "--deadline", "2h", "--confidence", share) for share in ("95%", "0.95")]
    assert answers[0] == answers[1]
    assert "with a probability of at least 95 %" in answers[0]


def test_where_nothing_keeps_the_limits_the_nearest_is_named(capsys):
    out = told(capsys, "--deadline", "1min")
    assert "No plan keeps the limits" in out
    assert "\nnearest " in out
    assert "cheapest" not in out


def test_json_is_what_python_holds(capsys):
    found = json.loads(told(capsys, "--deadline", "1d", "--batch-sizes", "64:256", "--batch-size", "128", "--json"))
    assert found["batch_sizes"] == [64, 128, 256]
    assert found["deadline_s"] == 86_400
    assert found["cheapest"]["cost_usd"] == min(choice["cost_usd"] for choice in found["pareto"])
    assert found["fastest"]["total_s"] == found["pareto"][0]["total_s"]
    assert found["price_dates"] == ["2026-08-03", "2026-08-03"]
    assert 0.8 <= found["cheapest"]["probability"] <= 1


def test_spot_tells_its_assumptions(capsys):
    assert (
        run(
            [
                "plan",
                "cifar_resnet20",
                "--samples",
                "50000",
                "--provider",
                "gcp",
                "--spot",
                "--batch-size",
                "256",
                "--verbose",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "(spot)" in out
    assert "Spot: interruptions per machine and day GCP 1; a checkpoint of " in out


def test_a_plan_is_printed_as_a_job_alone(capsys):
    out = told(capsys, "--as", "sky")
    assert out.startswith("# ")
    assert "\nnum_nodes: 1\n" in out
    assert told(capsys, "--as", "torchrun").startswith("torchrun --standalone --nproc_per_node=")


def test_a_plan_that_is_printed_as_a_job_has_its_page_too(capsys, tmp_path):
    assert told(capsys, "--as", "sky", "--html", str(tmp_path / "plan.html")).startswith(told(capsys, "--as", "sky"))
    assert "<figure>" in (tmp_path / "plan.html").read_text()


def test_own_prices_are_planned_with(capsys, tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("device,n_devices,usd_per_hour,date\nRTX-3090,2,0.01,2026-11-02\n", encoding="utf-8")
    arguments = ["plan", "cifar_resnet20", "--samples", "50000", "--prices", str(path), "--provider", "own", "--json"]
    assert run(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cheapest"]["offer"] == "2xRTX-3090"
    assert found["price_dates"] == ["2026-11-02", "2026-11-02"]
    assert run([*arguments[:-1], "--as", "sky"]) == 2
    assert "SkyPilot does not know the provider 'own'" in capsys.readouterr().err


def test_a_page_with_the_chart_is_written(capsys, tmp_path):
    told(capsys, "--html", str(tmp_path / "plan.html"), "--deadline", "1h")
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert "Time and cost of cifar_resnet20" in page
    assert "deadline" in page


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--budget", "-5"], "--budget cannot be -5.0: give a number above 0"),
        (["--deadline", "soon"], "--deadline 'soon' is not a duration above 0: write 12h, 90min, 1d12h or 45s."),
        (["--deadline", "12"], "--deadline '12' is not a duration"),
        (["--provider", "Contoso"], "No offers of a provider named 'Contoso'."),
        (["--batch-sizes", "256:128"], "--batch-sizes '256:128' is not a range"),
        (["--batch-sizes", "many"], "--batch-sizes 'many' is not a range"),
        (["--confidence", "0.2"], "--confidence cannot be 0.2: give a number of at least 0.5."),
        (["--confidence", "90"], "--confidence '90' is not a share: write 90% or 0.9."),
        (["--prices", "nowhere.csv"], "Price file 'nowhere.csv' cannot be read"),
        (["--target-accuracy", "0.9"], "A target and a curve go together"),
        (["--as", "sky", "--json"], "--as prints a job and --json the plan: leave one of them out."),
        (["--as", "kubernetes"], "A plan cannot be written as 'kubernetes'."),
        (["--deadline", "1min", "--as", "slurm"], "No plan keeps its limits: the nearest is "),
        (["--max-gpus", "0"], "--max-gpus cannot be 0"),
        (["--noise-scale", "-3"], "A noise scale is a number of samples and should not be below 0"),
    ],
)
def test_a_mistake_is_one_sentence(capsys, flags, words):
    assert words in refused(capsys, *SMALL, *flags)


def test_no_samples_are_one_sentence(capsys):
    assert "--samples cannot be 0" in refused(capsys, "plan", "cifar_resnet20", "--samples", "0")


def test_a_model_that_fits_nowhere_is_one_sentence(capsys, tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("device,usd_per_hour,date\nT4,1,2026-11-02\n", encoding="utf-8")
    flags = ["--prices", str(path), "--provider", "own", "--optimizer", "adamw", "--batch-size", "8"]
    assert "'gpt2-xl' fits on none of 1 offers" in refused(capsys, "plan", "gpt2-xl", "--samples", "100", *flags)


@pytest.mark.parametrize(
    ("text", "seconds"), [("12h", 43_200), ("1d12h", 129_600), ("90 min", 5_400), ("1.5h", 5_400), ("45S", 45)]
)
def test_durations_are_read_as_people_type_them(text, seconds):
    assert DURATION.of(text, "--deadline") == seconds


@pytest.mark.parametrize(
    ("text", "seconds"), [("12hours", 43_200), ("1 day", 86_400), ("2 hrs 30 minutes", 9_000), ("45sec", 45)]
)
def test_units_may_be_written_out(text, seconds):
    assert DURATION.of(text, "--deadline") == seconds


def test_a_budget_may_have_its_sign(capsys):
    assert json.loads(told(capsys, "--budget", "$1,200.50", "--json"))["budget_usd"] == 1200.5
    assert "'200usd' is not an amount in US dollars: write 200" in _error(capsys, *SMALL, "--budget", "200usd")


def _error(capsys, *arguments):
    assert run(list(arguments)) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "h", "-3h", "3 fortnights", "1h soon", "3 hourss", "0h", "1e9d", "nan h", "3"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(InputError, match="is not a duration above 0"):
        DURATION.of(text, "--deadline")


def test_a_range_of_batches_doubles_from_end_to_end():
    assert DOUBLING.read("128:1024") == [128, 256, 512, 1024]
    assert DOUBLING.read("100:500") == [100, 200, 400, 500]
    assert DOUBLING.read("96,64") == [64, 96]


@pytest.mark.parametrize("command", ["forecast", "memory", "explain", "layers", "scale"])
def test_what_is_recommended_is_a_place_of_every_other_command(capsys, command):
    flags = ["--budget", "3", "--provider", "RunPod", "--json", "--max-gpus", "1"]
    plan = json.loads(told(capsys, *flags))
    offer = plan["fastest"]["offer"]
    assert offer.startswith("1x_")
    assert run([command, "cifar_resnet20", "--on", offer, "--batch", "64", "--json"]) == 0
    assert plan["fastest"]["device"] in capsys.readouterr().out


def test_the_page_shows_what_a_plan_prints_today(capsys, monkeypatch):
    """One of its three, for all: python benchmarks/plan_examples.py --write renews them."""
    monkeypatch.delenv("COLUMNS", raising=False)
    page = (Path(__file__).parents[2] / "docs" / "plan.md").read_text(encoding="utf-8")
    shown = page.split("<!-- begin patchcamelyon -->\n```text\n$ traincast ")[1].split("\n```\n")[0]
    line, _, answer = shown.partition("\n")
    assert run(line.split()) == 0
    assert capsys.readouterr().out.rstrip() == answer


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--as", "yaml"], "A plan cannot be written as 'yaml'. Choose from: sky, slurm, torchrun."),
        (["--interruptions-per-day", "3"], "only spot machines are interrupted"),
        (["--checkpoint-mb-per-s", "500"], "only spot machines are interrupted"),
        (["--noise-scale", "1000"], "--noise-scale cannot be 1000.0: give several batch sizes to choose from, too."),
        (["--target-accuracy", "0.9", "--curve", "earlier.csv"], "A target accuracy replaces the number of epochs"),
    ],
)
def test_a_flag_that_would_be_of_no_effect_is_refused(capsys, flags, told):
    assert told in refused(capsys, *SMALL, *flags)


@pytest.mark.parametrize("written", ["0.85", "85%", "85 %"])
def test_an_accuracy_is_read_as_a_fraction_or_in_percent(capsys, tmp_path, written):
    log = tmp_path / "earlier.csv"
    log.write_text("step,accuracy\n" + "".join(f"{k},{0.95 - 0.85 / (1 + k / 60):.5f}\n" for k in range(10, 400, 10)))
    flags = ["--samples", "50000", "--max-gpus", "1", "--target-accuracy", written, "--curve", str(log)]
    assert run(["plan", "cifar_resnet20", *flags]) == 0
    assert "reach an accuracy of 0.85" in capsys.readouterr().out


def test_an_accuracy_that_is_none_is_told_so(capsys):
    assert run([*SMALL, "--target-accuracy", "high"]) == 2
    assert "'high' is not an accuracy: write 0.92 or 92%." in capsys.readouterr().err


def test_machines_that_are_interrupted_all_the_time_are_left_out_without_a_word_of_numpy(capsys):
    printed = told(capsys, "--spot", "--provider", "AWS", "--interruptions-per-day", "100000", "--json")
    assert not any(choice["is_spot"] for choice in json.loads(printed)["pareto"])
