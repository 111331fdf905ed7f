"""`traincast forecast` with energy, targets, job files, limits and comparisons, to the exit code."""

import json
import subprocess

import pytest

from traincast.__main__ import run

JOB = """
model = "mnist_cnn"
[data]
samples = 60_000
[training]
batch = 128
epochs = 1000
[cluster]
on = "p3.2xlarge"
"""
COST = 1.0  # more than the run costs


def told(capsys, *arguments, code=0):
    assert run(["forecast", *map(str, arguments)]) == code
    return capsys.readouterr()


def refused(capsys, *arguments):
    printed = told(capsys, *arguments, code=2)
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(JOB)
    return path


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("epoch,val_accuracy\n" + "".join(f"{epoch},{0.95 - 0.5 / epoch}\n" for epoch in range(1, 12)))
    return path


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_job_is_forecast_like_its_flags(capsys, job):
    flags = ["mnist_cnn", "--on", "p3.2xlarge", "--batch", "128", "--samples", "60000", "--epochs", "1000"]
    assert told(capsys, job).out == told(capsys, *flags).out


def test_the_whole_answer_has_energy_bounds_and_assumptions(capsys, job):
    out = told(capsys, job, "--verbose").out
    for row in ("mean power", "energy", "CO2", "A step by what bounds it", "compute"):
        assert row in out
    assert "- The data loader keeps up with the step." in out
    assert "- The grid of us-east4 (Northern Virginia" in out
    data = json.loads(told(capsys, job, "--json").out)
    assert data["energy_j"] > 0
    assert data["broken_limits"] == []


def test_flags_replace_what_the_job_says(capsys, job):
    data = json.loads(told(capsys, job, "--on", "T4", "--epochs", "1", "--batch", "64", "--region", "FR", "--json").out)
    assert (data["on"], data["n_epochs"], data["batch_size"]) == ("T4", 1, 64)
    assert data["grid"]["name"] == "France"
    data = json.loads(told(capsys, job, "--grid-g-per-kwh", "100", "--pue", "1.5", "--image-size", "28", "--json").out)
    assert data["co2_kg"] == pytest.approx(0.1 * data["energy_j"] / 3.6e6)
    assert data["pue"] == 1.5


def test_what_a_job_asks_for_wrongly_is_told_with_its_name_and_what_a_flag_does_with_the_flag(capsys, job):
    job.write_text(JOB.replace("[training]", '[training]\nprecision = "fp31"'))
    assert f"Job file '{job}': precision 'fp31' is not known." in refused(capsys, job)
    assert "--precision 'fp30' is not known." in refused(capsys, job, "--precision", "fp30")


def test_a_curve_and_a_target_tell_when_it_is_good_enough(capsys, job, log):
    options = ["--curve", log, "--target", "0.9", "--metric", "accuracy"]
    out = told(capsys, job, *options).out
    for row in ("chance of accuracy 0.9", "time to accuracy 0.9", "cost to accuracy 0.9"):
        assert row in out
    data = json.loads(told(capsys, job, *options, "--json").out)
    assert data["to_target"]["updates"]["p50"] == pytest.approx(10 * 469, rel=0.2)


def test_a_job_names_its_curve(capsys, job, log):
    job.write_text(f'{JOB}[target]\ncurve = "{log.name}"\nvalue = 0.9\nmetric = "accuracy"\n')
    assert "time to accuracy 0.9" in told(capsys, job).out


def test_limits_that_are_kept_are_exit_code_0_and_broken_ones_3(capsys, job):
    assert told(capsys, job, "--fail-over", f"budget={COST},hours=12,memory=90%").err == ""
    printed = told(capsys, job, "--fail-over", "budget=0.001,hours=0.001,memory=1%", code=3)
    assert "mean power" in printed.out
    sentences = printed.err.splitlines()
    assert [sentence.split(":")[1].strip() for sentence in sentences] == ["budget", "hours", "memory"]
    assert all(sentence.startswith("Over the limit: ") for sentence in sentences)
    data = json.loads(told(capsys, job, "--fail-over", "hours=0.001", "--json", code=3).out)
    assert len(data["broken_limits"]) == 1


def test_limits_of_the_job_hold_unless_a_flag_replaces_them(capsys, job):
    job.write_text(f"{JOB}[limits]\nhours = 0.001\n")
    told(capsys, job, code=3)
    told(capsys, job, "--fail-over", "hours=5")
    told(capsys, job, "--fail-over", "memory=0.9", code=3)


def test_broken_limits_of_several_choices_name_theirs(capsys, job):
    err = told(capsys, job, "--batch", "64,128", "--fail-over", "hours=0.001", code=3).err
    assert "p3.2xlarge, batch 64: hours" in err
    assert "p3.2xlarge, batch 128: hours" in err


def test_an_earlier_forecast_is_compared(capsys, job, tmp_path):
    earlier = tmp_path / "a.json"
    earlier.write_text(told(capsys, job, "--json").out)
    assert "Against a.json: the same time, the same cost" in told(capsys, job, "--compare", earlier).out
    out = told(capsys, job, "--compare", earlier, "--epochs", "2000").out
    assert "Against a.json: +100.0 % time, +$0." in out
    rows = [line.split() for line in out.splitlines()]
    assert ["n_epochs", "1000", "2000", "-", "-"] in rows
    data = json.loads(told(capsys, job, "--compare", earlier, "--epochs", "2000", "--json").out)
    assert data["difference"]["headline"].startswith("+100.0 % time")


def test_another_target_shows_in_the_differences(capsys, job, log, tmp_path):
    earlier, curve = tmp_path / "a.json", ["--curve", log, "--metric", "accuracy", "--target"]
    earlier.write_text(told(capsys, job, *curve, "0.85", "--json").out)
    out = told(capsys, job, *curve, "0.9", "--compare", earlier).out
    assert "Against a.json: the same time, the same cost, +" in out
    assert " % time to the target\n" in out
    rows = [line.split() for line in out.splitlines()]
    assert ["target", "0.85", "0.9", "-", "-"] in rows
    assert [row[:4] for row in rows if row[1:4] == ["to", "the", "target"]] == [
        ["updates", "to", "the", "target"],
        ["time", "to", "the", "target"],
        ["cost", "to", "the", "target"],
    ]


def test_two_commits_of_one_job_are_compared(capsys, job, tmp_path, monkeypatch):
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    job.write_text(JOB.replace("batch = 128", "batch = 256"))
    monkeypatch.chdir(tmp_path)
    out = told(capsys, "job.toml", "--against", "HEAD", "--epochs", "3").out
    assert "Against HEAD: -" in out
    rows = [line.split() for line in out.splitlines()]
    assert ["batch_size", "128", "256", "-", "-"] in rows
    assert not any(row[:1] == ["n_epochs"] for row in rows)  # the flag holds on both sides
    assert "'nope' is not a commit" in refused(capsys, "job.toml", "--against", "nope")
    (tmp_path / "new.toml").write_text(JOB)
    assert "'new.toml' did not exist at 'HEAD'" in refused(capsys, "new.toml", "--against", "HEAD")


def committed(folder):
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")


def test_a_link_to_data_elsewhere_leads_there_from_another_commit(capsys, job, tmp_path, monkeypatch):
    """Also for the job itself: its curve is behind a link out of the repository, one absolute and one relative."""
    for folder in ("repository", "elsewhere"):
        (tmp_path / folder).mkdir()
    log = tmp_path / "elsewhere" / "log.csv"
    log.write_text("epoch,val_accuracy\n" + "".join(f"{n},{0.95 - 0.5 / n}\n" for n in range(1, 12)))
    repository = tmp_path / "repository"
    for name, target in (("far", tmp_path / "elsewhere"), ("near", "../elsewhere"), ("gone", "/no/such/folder")):
        (repository / name).symlink_to(target)
    monkeypatch.chdir(repository)
    for name in ("far", "near"):
        text = f'{JOB}[target]\ncurve = "{name}/log.csv"\nvalue = 0.9\nmetric = "accuracy"\n'
        (repository / f"{name}.toml").write_text(text)
    committed(repository)
    for name in ("far", "near"):
        assert "Against HEAD: the same time, the same cost" in told(capsys, f"{name}.toml", "--against", "HEAD").out


def test_a_model_that_prints_is_compared_and_leaves_json_alone(capsys, tmp_path, monkeypatch):
    (tmp_path / "net.py").write_text(
        "print('reading the file')\nimport torch\n\n\n"
        "class Net(torch.nn.Linear):\n    def forward(self, x):\n        print('running')\n"
        "        return super().forward(x)\n\n\ndef net():\n"
        "    print('building')\n    return Net(8, 2), torch.zeros(4, 8)\n"
    )
    (tmp_path / "job.toml").write_text(JOB.replace("mnist_cnn", "net.py:net"))
    committed(tmp_path)
    monkeypatch.chdir(tmp_path)
    printed = told(capsys, "job.toml", "--against", "HEAD", "--json")
    assert json.loads(printed.out)["difference"]["headline"] == "the same time, the same cost"
    assert "building" in printed.err


def test_files_that_flags_name_are_those_beside_the_user(capsys, job, log, tmp_path, monkeypatch):
    """Whether the job is named by its own path from elsewhere, or from inside its repository."""
    (tmp_path / "repository").mkdir()
    job.rename(tmp_path / "repository" / "job.toml")
    committed(tmp_path / "repository")
    own = tmp_path / "own.csv"
    own.write_text("name,fp32_tflop_per_s,memory_gib,memory_gb_per_s\nmine,10,16,300\n")
    (tmp_path / "two.toml").write_text('device = "T4"\ndevices_per_node = 2\n')
    flags = ["--curve", "log.csv", "--target", "0.9", "--metric", "accuracy", "--against", "HEAD"]
    monkeypatch.chdir(tmp_path)
    for place in (["--on", "mine", "--devices", "own.csv"], ["--on", "two.toml"], ["--on", "1 of two.toml"]):
        out = told(capsys, tmp_path / "repository" / "job.toml", *flags, *place).out
        assert "Against HEAD: the same time" in out
        assert "\non  " not in out  # the place is the same, however its file was found
    (tmp_path / "repository" / "new.csv").write_text(log.read_text())  # git does not know it
    monkeypatch.chdir(tmp_path / "repository")
    flags[1] = "new.csv"
    assert "Against HEAD: the same time" in told(capsys, "job.toml", *flags).out


def test_what_git_refuses_is_told_in_its_own_words(capsys, job, tmp_path, monkeypatch):
    committed(tmp_path)
    (blob,) = (tmp_path / ".git" / "objects").glob(f"{blob_of(tmp_path)[:2]}/*")
    kept = blob.read_bytes()
    blob.unlink()
    assert "git cannot unpack 'HEAD': " in refused(capsys, job, "--against", "HEAD")
    blob.write_bytes(kept)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    err = refused(capsys, job, "--against", "HEAD")
    assert "detected dubious ownership in repository" in err
    assert "safe.directory" in err


def blob_of(folder):
    """What git calls the content of the job."""
    ran = subprocess.run(["git", "rev-parse", "HEAD:job.toml"], cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


def test_several_choices_are_refused_before_another_commit_is_forecast(capsys, job):
    """The job is in no repository, which would be told if it was looked at."""
    assert "one place and one batch size" in refused(capsys, job, "--against", "HEAD", "--batch", "8,16")


def test_a_run_that_does_not_fit_does_not_pass_a_gate(capsys, job):
    flags = ["--batch", "2000000", "--fail-over", "hours=100000"]
    err = told(capsys, job, *flags, code=3).err
    assert err.startswith("Over the limit: memory: it does not fit, ")


def test_what_a_commit_cannot_forecast_is_told(capsys, job, tmp_path):
    job.write_text(JOB.replace("mnist_cnn", "mnist_cmm"))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    job.write_text(JOB)
    err = refused(capsys, job, "--against", "HEAD")
    assert f"At 'HEAD' there is no forecast: Job file '{job}': No model named 'mnist_cmm'" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gone.toml"], "Job file 'gone.toml' cannot be read"),
        (["mnist_cnn", "--batch", "8"], "Missing option '--on'"),
        (["mnist_cnn", "--on", "T4", "--batch", "8", "--against", "HEAD"], "give a job file"),
        (["mnist_cnn", "--on", "T4", "--batch", "8", "--compare", "gone.json"], "'gone.json' cannot be read"),
        (["mnist_cnn", "--on", "T4", "--batch", "8", "--region", "Mars"], "No region named 'Mars'"),
        (["mnist_cnn", "--on", "T4", "--batch", "8", "--pue", "0.5"], "--pue cannot be 0.5: give a number of"),
        (["mnist_cnn", "--on", "T4", "--batch", "8", "--target", "0.9"], "A target needs a curve"),
        (["mnist_cnn", "--on", "T4", "--batch", "8", "--fail-over", "hours=1"], "cannot be checked"),
        (["mnist_cnn", "--on", "T4", "--batch", "8", "--fail-over", "days=1"], "'days=1' is not a limit"),
    ],
)
def test_a_mistake_is_one_sentence(capsys, arguments, words):
    assert words in refused(capsys, *arguments)


def test_comparisons_that_cannot_be_are_one_sentence(capsys, job, tmp_path):
    other = tmp_path / "b.json"
    for content in ("{}", "[1]", "no json"):
        other.write_text(content)
        assert "b.json" in refused(capsys, job, "--compare", other)
    assert "give one of them" in refused(capsys, job, "--compare", other, "--against", "HEAD")
    other.write_text(told(capsys, job, "--json").out)
    assert "one place and one batch size" in refused(capsys, job, "--compare", other, "--batch", "8,16")
    assert "is not in a git repository" in refused(capsys, job, "--against", "HEAD")


def test_a_model_file_that_exits_is_a_mistake_and_never_a_passed_gate(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "job.toml").write_text('model = "net.py:make"\n[training]\nbatch = 8\n[cluster]\non = "T4"\n')
    assert run(["forecast", "job.toml", "--fail-over", "budget=0.00001"]) == 2
    assert "running the file called sys.exit(0)" in capsys.readouterr().err


def test_a_share_of_memory_above_one_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    limits = 'model = "resnet18"\n[training]\nbatch = 8\n[cluster]\non = "T4"\n[limits]\nmemory_fraction = 90\n'
    (tmp_path / "job.toml").write_text(limits)
    assert run(["forecast", "job.toml"]) == 2
    assert "memory_fraction" in capsys.readouterr().err
    assert run(["forecast", "resnet18", "--on", "T4", "--batch", "8", "--fail-over", "memory=200%"]) == 2


def test_an_empty_name_is_no_model_even_beside_a_config(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    assert run(["forecast", "", "--on", "T4", "--batch", "1"]) == 2
    assert "The name of a model is empty" in capsys.readouterr().err
