"""`traincast forecast`, from the command line to the exit code."""

import json
import subprocess
import sys

import pytest

from traincast.__main__ import run
from traincast.units import show_duration, show_energy, show_usd

ONE = ["resnet50", "--on", "V100-PCIe-32GB", "--batch", "128", "--method", "roofline"]
SEVERAL = ["resnet18", "--on", "T4", "--on", "V100-PCIe-32GB", "--batch", "8,64", "--method", "roofline"]


def told(capsys, *arguments):
    assert run(["forecast", *arguments]) == 0
    return capsys.readouterr().out


def test_one_forecast_is_told_in_full(capsys):
    out = told(capsys, *ONE, "--samples", "1281167", "--epochs", "90", "--price", "2.5")
    lines = {line.split("  ")[0].strip() or line.split()[0]: line for line in out.splitlines() if line}
    assert out.startswith("resnet50 on V100-PCIe-32GB, batch 128\nfp32, sgd, method roofline, host torch-eager\n")
    for row in ("step", "samples/s", "FLOP utilisation", "epoch", "total", "cost", "peak memory"):
        assert row in lines
    for phase in ("forward", "loss", "backward", "optimizer"):
        assert f"\n  {phase}  " in out
    assert "Bound by compute" in out
    assert "Fits: 11.7 GiB of 31.5 GiB usable. Bound by compute. Step" in out
    assert "90 epochs of 1,281,167 samples at $2.50 per hour" in out


def test_json_has_base_units_and_intervals(capsys):
    data = json.loads(told(capsys, *ONE, "--json"))
    low, high = data["intervals"]["step_s"]
    assert low < data["step_s"] < high
    assert data["total_s"] is None
    assert data["fits"] is True


def test_several_are_a_table_with_a_row_each(capsys):
    out = told(capsys, *SEVERAL, "--samples", "1000")
    assert "resnet18 on 2 devices, 2 batch sizes" in out
    rows = [line.split()[:2] for line in out.splitlines() if line.startswith(("T4 ", "V100-PCIe-32GB "))]
    assert rows[:4] == [["T4", "8"], ["T4", "64"], ["V100-PCIe-32GB", "8"], ["V100-PCIe-32GB", "64"]]
    assert rows[4:] == rows[:4]  # price and energy
    assert "total" in out
    assert "cost" not in out


def test_what_a_plan_recommends_is_a_place_with_its_price(capsys):
    data = json.loads(
        told(capsys, "resnet50", "--on", "1x_RTX5090_SECURE", "--batch", "64", "--samples", "1000", "--json")
    )
    assert (data["on"], data["device"], data["n_devices"]) == ("1x_RTX5090_SECURE", "RTX-5090", 1)
    assert data["cost_usd"] == pytest.approx(0.99 * data["total_s"] / 3600)
    two = ["resnet50", "--on", "2x8x_H200-SXM_SECURE@100Gb/s", "--batch", "64", "--json"]
    assert json.loads(told(capsys, *two))["n_devices"] == 16


PLACES = ["T4", "g4dn.xlarge", "p3.2xlarge"]


def rows_of(out, title):
    """The table under a title, by the first word of each line."""
    lines = out[out.index(f"{title}\n") :].splitlines()[1:]
    rows = [line.split() for line in lines[: lines.index("")]]
    return {row[0]: row[1:] for row in rows[1:]} | {"header": rows[0]}


@pytest.mark.parametrize("places", [PLACES, PLACES[::-1]])
def test_every_place_has_its_own_price_cost_and_energy_whatever_stands_first(capsys, places):
    asked = ["resnet18", *(word for place in places for word in ("--on", place)), "--batch", "64"]
    asked += ["--samples", "1000000", "--epochs", "9", "--method", "roofline"]
    out = told(capsys, *asked, "--verbose")
    assert "resnet18 on 3 places, batch 64" in out
    alone = {one["on"]: one for one in json.loads(told(capsys, *asked, "--json"))["forecasts"]}
    steps = rows_of(out, "Forecasts")
    assert steps["header"][-2:] == ["total", "cost"]
    assert {place: steps[place][-1] for place in places} == {
        place: "-" if alone[place]["cost_usd"] is None else show_usd(alone[place]["cost_usd"]) for place in places
    }
    bills = rows_of(out, "Price and energy")
    assert [bills[place][1] for place in PLACES] == ["-", "$0.53", "$3.06"]
    assert {place: " ".join(bills[place][-5:-3]) for place in PLACES[1:]} == {
        place: show_energy(alone[place]["energy_j"]) for place in PLACES[1:]
    }
    assert bills["T4"][-2:] == ["-", "-"]  # no region, no grid
    assert "per hour." not in out
    assert out.count("The run is 9 epochs of 1,000,000 samples.") == 1
    assert (
        "Assumptions about a single place (price, links, power, grid) are listed in its own forecast and in the JSON."
        in out
    )


def test_one_price_for_all_is_told_once(capsys):
    asked = ["resnet18", "--on", "g4dn.xlarge", "--batch", "8,64", "--samples", "1000", "--method", "roofline"]
    assert "The run is 1 epoch of 1,000 samples at $0.53 per hour." in told(capsys, *asked)


def test_settings_of_several_places_are_those_that_all_have(capsys):
    one, two = (told(capsys, "resnet18", *on, "--batch", "64", *SEVERAL[-2:]).splitlines()[1] for on in ORDERS)
    assert one == two == "fp32, sgd, method roofline, host torch-eager"


ORDERS = (("--on", "T4", "--on", "4xT4"), ("--on", "4xT4", "--on", "T4"))


def test_a_target_is_told_of_every_choice(capsys, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("epoch,val_accuracy\n" + "".join(f"{n},{0.95 - 0.5 / n}\n" for n in range(1, 12)))
    asked = ["mnist_cnn", "--on", "T4", "--on", "p3.2xlarge", "--batch", "64", "--samples", "60000"]
    asked += ["--curve", str(log), "--target", "0.9", "--metric", "accuracy"]
    rows = rows_of(told(capsys, *asked), "To accuracy 0.9")
    assert rows["header"][1:] == ["batch", "chance", "updates", "time", "p10", "p90", "cost"]
    found = json.loads(told(capsys, *asked, "--json"))["forecasts"]
    for one in found:
        there = one["to_target"]
        assert rows[one["on"]][3] == f"{there['updates']['p50']:,.0f}"
        assert show_duration(there["total_s"]["p50"]) in " ".join(rows[one["on"]])
    assert rows["T4"][-1] == "-"
    assert rows["p3.2xlarge"][-1].startswith("$")


def test_what_is_given_twice_is_told_once(capsys):
    data = json.loads(told(capsys, "resnet18", "--on", "T4", "--on", "T4", "--batch", "8,8", *SEVERAL[-2:], "--json"))
    assert (data["device"], data["batch_size"]) == ("T4", 8)


def test_several_in_json_are_a_list(capsys):
    forecasts = json.loads(told(capsys, *SEVERAL, "--json"))["forecasts"]
    assert [(one["device"], one["batch_size"]) for one in forecasts[1:3]] == [("T4", 64), ("V100-PCIe-32GB", 8)]


def test_a_warning_about_all_is_told_once_and_one_about_some_names_them(capsys):
    out = told(capsys, "resnet50", "--on", "T4", "--batch", "8,512", "--method", "paleo")
    assert out.count("Paleo with a PPP of 1") == 1
    assert out.count("Does not fit") == 1
    assert "Warning: T4, batch 512: Does not fit" in out
    out = told(capsys, "resnet50", "--on", "T4", "--on", "A10", "--batch", "512,1024", "--method", "paleo")
    assert out.count("Warning: T4: ") + out.count("Warning: A10: ") == 0  # other bytes, another sentence
    out = told(capsys, "resnet50", "--on", "T4", "--on", "MI300X", "--batch", "8,16")
    assert out.count("Warning: MI300X: No GPU of the generation CDNA3 was measured") == 1


def test_options_reach_the_forecast(capsys):
    options = ["--precision", "amp-fp16", "--optimizer", "adam", "--accumulate", "4", "--host", "tf2-keras"]
    data = json.loads(told(capsys, *ONE, *options, "--input-samples-per-s", "10", "--json"))
    assert (data["precision"], data["optimizer"], data["host"]) == ("amp-fp16", "adam", "tf2-keras")
    assert (data["accumulation_steps"], data["bound_by"]) == (4, "input")
    assert data["step_s"] == pytest.approx(12.8)
    paleo = ["resnet50", "--on", "T4", "--batch", "8", "--method", "paleo", "--ppp", "0.5", "--json"]
    assert json.loads(told(capsys, *paleo))["warnings"] == []


def test_waiting_for_input_is_part_of_the_answer(capsys):
    out = told(capsys, *ONE, "--input-samples-per-s", "10")
    assert "waiting for input" in out
    assert "Bound by the input" in out


def test_what_does_not_fit_is_said_and_timed(capsys):
    out = told(capsys, "gpt2-xl", "--on", "T4", "--batch", "1", "--optimizer", "adamw", "--method", "roofline")
    assert "\nDoes not fit: needs" in out
    assert "Warning: Does not fit" in out
    assert "Fits: " not in out
    assert "samples/s" in out


@pytest.mark.parametrize(
    ("arguments", "titles"),
    [
        (ONE, ["One step of resnet50 on V100-PCIe-32GB"]),
        (SEVERAL, ["Step time of resnet18", "One step of resnet18, by phase"]),
        ([*SEVERAL[:6], "8", *SEVERAL[7:]], ["Step time of resnet18"]),
    ],
)
def test_a_page_shows_the_charts(capsys, tmp_path, arguments, titles):
    page = tmp_path / "forecast.html"
    told(capsys, *arguments, "--html", str(page))
    text = page.read_text()
    assert all(title in text for title in titles)


def test_the_answer_needs_no_heavy_library():
    code = (
        "import sys; from traincast.__main__ import run; "
        f"code = run(['forecast', *{ONE!r}]); "
        "print(code, sorted({'torch', 'scipy', 'plotly'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "0 []"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["resnet50", "--on", "T5", "--batch", "8"], "No device or machine named 'T5'"),
        (["resnet50", "--on", "v100", "--batch", "8"], "'v100' could mean V100"),
        (["resnet51", "--on", "T4", "--batch", "8"], "No model named 'resnet51'"),
        (["resnet50", "--on", "T4", "--batch", "0"], "--batch cannot be 0"),
        (["resnet50", "--on", "T4", "--batch", "8,-1"], "--batch cannot be -1"),
        (["resnet50", "--on", "T4", "--batch", "8;16"], "--batch '8;16' is not a whole number or a list of them"),
        (["resnet50", "--on", "T4", "--batch", "9", "--accumulate", "2"], "A batch of 9 cannot be shared evenly"),
        (["resnet50", "--on", "T4", "--batch", "8", "--samples", "0"], "--samples cannot be 0"),
        (["resnet50", "--on", "T4", "--batch", "8", "--epochs", "0"], "--epochs cannot be 0"),
        (["resnet50", "--on", "T4", "--batch", "8", "--price", "-2"], "--price cannot be -2.0"),
        (["resnet50", "--on", "T4", "--batch", "8", "--input-samples-per-s", "0"], "--input-samples-per-s cannot be 0"),
        (["resnet50", "--on", "T4", "--batch", "8", "--ppp", "0.5"], "PPP is a setting of the method paleo"),
        (["resnet50", "--on", "T4", "--batch", "8", "--host", "jax"], "No host named 'jax'"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(capsys, arguments, words):
    assert run(["forecast", "--method", "roofline", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Error: ")
    assert words in err
    assert err.count("\n") == 1


def test_without_a_device_or_a_batch_there_is_no_question(capsys):
    assert run(["forecast", "resnet50", "--on", "T4"]) == 2
    assert "Missing option '--batch'" in capsys.readouterr().err


def test_several_places_in_one_flag_are_told_how_to_be_written(capsys):
    assert run(["forecast", "mnist_cnn", "--on", "T4,V100", "--batch", "8"]) == 2
    assert "--on 'T4,V100' is not one place: name several as --on T4 --on V100." in capsys.readouterr().err


def test_json_tells_the_price_of_a_machine_as_well_as_that_of_a_flag(capsys):
    flags = ["--batch", "8", "--samples", "100000", "--json"]
    for place, price in ((["--on", "p3.8xlarge"], 12.24), (["--on", "4xT4", "--price", "0.5"], 2.0)):
        assert run(["forecast", "mnist_cnn", *place, *flags]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["run_price_usd_per_hour"] == price
        assert told["cost_usd"] == pytest.approx(told["total_s"] / 3600 * price)


def test_a_table_without_prices_does_not_promise_them(capsys):
    flags = ["--on", "T4", "--on", "A10", "--batch", "8", "--samples", "1000"]
    assert run(["forecast", "mnist_cnn", *flags]) == 0
    out = capsys.readouterr().out
    assert "\nEnergy\n" in out
    assert "Price" not in out


def test_a_price_may_have_its_sign(capsys):
    flags = ["--on", "T4", "--batch", "8", "--samples", "1000", "--json"]
    assert run(["forecast", "mnist_cnn", *flags, "--price", "$2"]) == 0
    assert json.loads(capsys.readouterr().out)["price_usd_per_hour"] == 2


def test_a_run_in_tokens_is_so_many_samples_of_the_model_s_length(capsys):
    run_ = ["forecast", "gpt2", "--on", "A100-SXM4-80GB", "--batch", "8", "--json"]
    assert run([*run_, "--tokens", "1B"]) == 0
    in_tokens = json.loads(capsys.readouterr().out)
    assert in_tokens["n_samples"] == -(-(10**9) // 1024)
    assert run([*run_, "--samples", str(in_tokens["n_samples"])]) == 0
    assert json.loads(capsys.readouterr().out)["total_s"] == in_tokens["total_s"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["resnet50", "--tokens", "1B"], "resnet50 reads no tokens"),
        (["gpt2", "--tokens", "1B", "--samples", "5"], "leave one of them out"),
        (["gpt2", "--tokens", "-3"], "--tokens cannot be -3: give a whole number of at least 1."),
        (["gpt2", "--tokens", "some"], "--tokens 'some' is not a whole number: write 1281167, 300B or 15T."),
    ],
)
def test_tokens_that_say_nothing_are_one_sentence(capsys, arguments, told):
    assert run(["forecast", *arguments, "--on", "T4", "--batch", "8"]) == 2
    assert told in capsys.readouterr().err
