"""`traincast schedule`: what it says of real jobs, and its exit code. The jobs themselves run in tests/launch."""

import json
from dataclasses import replace

import pytest
from pages import read_page

import traincast.api.elastic as api
from traincast.__main__ import run
from traincast.launch.elastic_events import Event
from traincast.launch.elastic_history import JobOutcome, Stay
from traincast.launch.elastic_job import COLUMNS

JOBS = ",".join(COLUMNS) + "\na,0,cifar_resnet20,64,1,1,2\n"


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS)
    return str(path)


def outcome(error=""):
    return JobOutcome(
        name="a",
        submit_s=15.0,
        planned_finish_s=20.5,
        start_s=15.4,
        expected_finish_s=21.3,
        finish_s=None if error else 31.8,
        stays=(Stay(15.4, 21.0, 2), Stay(22.0, 31.8, 1)),
        n_lost=1,
        error=error,
    )


def scheduled(monkeypatch, *outcomes):
    def play(jobs, folder, *, on_event, **options):
        on_event(Event(number=0, now_s=0.0, what="begin", job="", values={"policy": "optimus", "planned_finish_s": {}}))
        on_event(Event(number=1, now_s=1.0, what="decide", job="", values={"devices": {"a": 2}}))
        start = {"n_devices": 2, "expected_finish_s": 21.3}
        on_event(Event(number=2, now_s=1.0, what="start", job="a", values=start))
        end = {"how": "finished", "step": 23, "why": ""}
        on_event(Event(number=3, now_s=31.8, what="end", job="a", values=end))
        rules = {name: options[name] for name in ("policy", "interval_s", "restart_s")}
        return api.ElasticRun(jobs=tuple(outcomes), **rules)

    monkeypatch.setattr(api, "schedule", play)


def test_events_are_told_as_they_come_and_the_end_stands_beside_what_was_predicted(capsys, monkeypatch, jobs, tmp_path):
    scheduled(monkeypatch, outcome())
    assert run(["schedule", jobs, "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "     0.0 s  optimus begins",
        "     1.0 s  decided: a 2",
        "     1.0 s  a starts on 2, expected to end at 21.3 s",
        "    31.8 s  a finished at step 23.",
    ]
    header, row = printed.out.splitlines()[4:6]
    assert header.split() == [
        *("job", "submitted", "started", "devices", "deaths", "end", "in", "the", "simulation", "expected"),
        *("at", "last", "start", "end", "completion"),
    ]
    assert " ".join(row.split()) == "a 15.0 s 15.4 s 2 > 1 1 20.5 s 21.3 s 31.8 s 16.8 s"


def test_a_job_that_was_given_up_is_told_by_the_exit_code_too(capsys, monkeypatch, jobs, tmp_path):
    scheduled(monkeypatch, outcome("Its workers died 5 times."))
    assert run(["schedule", jobs, "--out", str(tmp_path / "out"), "--json"]) == 1
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert (job["error"], job["finish_s"]) == ("Its workers died 5 times.", None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--policy", "lottery"], "There is no policy 'lottery'"),
        (["--policy", "optimus-online", "--cpus", "2"], "needs trainings with parameter servers"),
        (["--cpus", "0"], "--cpus cannot be 0: give a whole number of at least 1"),
        (["--interval", "0"], "--interval cannot be 0.0: give a number above 0"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_folder(capsys, jobs, tmp_path, options, words):
    assert run(["schedule", jobs, "--out", str(tmp_path / "out"), *options]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_page_has_what_was_predicted_and_who_had_which_devices(monkeypatch, jobs, tmp_path):
    scheduled(monkeypatch, outcome())
    page = tmp_path / "page.html"
    assert run(["schedule", jobs, "--out", str(tmp_path / "out"), "--interval", "7", "--html", str(page)]) == 0
    read = read_page(page)
    simulated, expected, measured = read.figures["Completion: predicted and measured"]["data"]
    assert [trace["y"] for trace in (simulated, expected, measured)] == [
        [pytest.approx(5.5)],
        [pytest.approx(6.3)],
        [pytest.approx(16.8)],
    ]
    (devices,) = read.figures["Devices of the jobs"]["data"]
    assert (devices["x"], devices["y"]) == ([15.4, 21.0, 22.0, 31.8], [2, 0, 1, 0])
    assert any(note.startswith("Assumed: a start takes 5.00 s") for note in read.notes)
    assert "--interval 7" in read.provenance


def test_many_jobs_share_one_colour(monkeypatch, jobs, tmp_path):
    scheduled(monkeypatch, *[replace(outcome(), name=f"job{number}") for number in range(40)])
    page = tmp_path / "page.html"
    assert run(["schedule", jobs, "--out", str(tmp_path / "out"), "--html", str(page)]) == 0
    (devices,) = read_page(page).figures["Devices of the jobs"]["data"]
    assert (devices["name"], devices["y"][0]) == ("all jobs", 80)
