"""`traincast simulate`, from the command line to the exit code."""

import json

import pytest

from traincast.__main__ import run

JOBS = "name,submit_s,seconds,n_devices,max_devices\nlong,0,600,2,4\nshort,60,60,4,4\nwide,60,120,4,4\n"


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS)
    return str(path)


def told(capsys, *arguments):
    assert run(["simulate", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys, *arguments):
    assert run(["simulate", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


def test_policies_stand_side_by_side(capsys, jobs):
    out = told(capsys, jobs, "--cluster", "1x4xT4", "--policy", "fifo,srtf, traincast")
    assert out.startswith("3 jobs on 1x4xT4\n4 devices, a decision every 1.00 min\n")
    assert [line.split()[0] for line in out.splitlines()[4:7]] == ["policy", "fifo", "srtf"]
    assert "Shortest mean completion:" in out


def test_policies_that_come_to_the_same_are_told_as_equal(capsys, jobs):
    out = told(capsys, jobs, "--cluster", "3x4xT4", "--policy", "fifo,srtf")
    assert "The mean completion is as long under each policy." in out


def test_a_link_that_is_none_is_told_though_plain_jobs_do_not_need_it(capsys, jobs):
    assert "garbage" in refused(capsys, jobs, "--cluster", "1x4xT4@garbage")


def test_json_holds_what_python_holds(capsys, jobs):
    import traincast.api.simulating as api

    data = json.loads(told(capsys, jobs, "--cluster", "4xT4", "--policy", "srtf", "--restart", "0", "--json"))
    schedule = api.simulate(jobs, "4xT4", policy="srtf", restart_s=0)
    assert data["policies"][0]["mean_completion_s"] == schedule.mean_completion_s
    (policy,) = data["policies"]
    assert [one["name"] for one in policy["jobs"]] == ["long", "short", "wide"]
    assert policy["jobs"][0]["alone_s"] == 600
    assert data["rules"]["interval_s"] == 60
    assert [moment["now_s"] for moment in policy["moments"]] == [moment.now_s for moment in schedule.moments]
    assert policy["spans"][0]["placement"] == [[0, 2]]
    assert len(policy["spans"]) == len(schedule.spans)


SERVERS = (
    "name,submit_s,mode,theta,batch_size,loss,target_loss,expected_steps,n_servers,n_workers,steps_p10,steps_p90\n"
    "a,0,sync,0.5 0.1 0.3 0 0.01,16,0.01 0.5 0.1,0.4,500,1,1,300,900\n"
    "b,30,async,0.5 0.1 0 0.01,,0.01 0.5 0.1,0.4,500,1,2,,\n"
)


def test_optimus_fits_its_models_online_to_jobs_with_servers(capsys, tmp_path):
    path = tmp_path / "servers.csv"
    path.write_text(SERVERS)
    out = told(capsys, str(path), "--cluster", "2x4xT4", "--policy", "optimus-online,fifo,traincast", "--seeds", "2")
    assert "1 job with intervals of their own, 2 seeds" in out
    assert {"optimus-online", "fifo", "traincast"} <= {line.split()[0] for line in out.splitlines() if line}


def test_the_page_has_the_devices_and_the_queue(capsys, jobs, tmp_path):
    page = tmp_path / "page.html"
    told(capsys, jobs, "--cluster", "4xT4", "--policy", "fifo,traincast", "--html", str(page))
    text = page.read_text()
    for title in ("Devices under fifo", "Devices under traincast", "Waiting jobs", "Mean completion time"):
        assert title in text


def test_errors_and_failures_are_drawn_over_seeds(capsys, jobs):
    options = ["--work-error", "1", "--speed-error", "0.2", "--failure", "300", "--repair", "60", "--checkpoint", "30"]
    out = told(capsys, jobs, "--cluster", "2x4xT4", "--policy", "srtf", *options, "--seeds", "3", "--seed", "7")
    assert "forecasts off by sigma 1 (work) and 0.2 (speed), a node fails every 5.00 min, 3 seeds" in out
    assert "p10" in out
    assert "failures of nodes (first seed)" in out
    assert "means over 3 seeds; jobs, and charts over time, are of the first." in out


def test_seconds_are_typed_as_a_number_or_a_duration(capsys, jobs):
    one, other = (
        told(capsys, jobs, "--cluster", "4xT4", "--policy", "fifo", "--json", *options)
        for options in (["--interval", "120", "--restart", "0"], ["--interval", "2min", "--restart", "0"])
    )
    assert json.loads(one) == json.loads(other)
    assert json.loads(one)["rules"]["interval_s"] == 120
    assert "--interval 'soon' is not a number of seconds: write 60, 90s or 12h." in refused(
        capsys, jobs, "--cluster", "4xT4", "--interval", "soon"
    )


def test_decisions_may_come_at_each_event(capsys, jobs):
    assert "decisions at each event" in told(capsys, jobs, "--cluster", "4xT4", "--interval", "0")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cluster", "2xT4"], "Job 'short' asks for 4 devices, but '2xT4' has only 2"),
        (["--cluster", "0xT4"], "the number of devices per node should be a whole number from 1"),
        (["--cluster", "4xT4", "--policy", "best"], "There is no policy 'best'"),
        (["--cluster", "4xT4", "--seeds", "3"], "nothing is random"),
        (["--cluster", "4xT4", "--workload", "1"], "no workload 1 to choose"),
        (
            ["--cluster", "4xT4", "--policy", "optimus-online"],
            "trainings with parameter servers, but job 'long' has none",
        ),
        (["--cluster", "4xT4", "--seed", "-1"], "--seed cannot be -1: give a whole number of at least 0"),
        (["--cluster", "4xT4", "--repair", "60"], "matter only if nodes fail"),
        (["--cluster", "4xT4", "--failure", "10"], "No job gets further on '4xT4'"),
    ],
)
def test_a_mistake_is_one_line(capsys, jobs, arguments, words):
    assert words in refused(capsys, jobs, *arguments)


def test_a_file_that_is_not_there_is_one_line(capsys):
    assert "cannot be read" in refused(capsys, "none.csv", "--cluster", "4xT4")


def test_a_table_as_a_spreadsheet_saves_it_is_read(tmp_path, capsys):
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"\xef\xbb\xbfname, submit_s, seconds, n_devices\r\na, 0, 100, 1\r\n")
    assert run(["simulate", str(path), "--cluster", "1x4xT4", "--policy", "fifo"]) == 0
    assert "fifo" in capsys.readouterr().out
