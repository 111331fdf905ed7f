"""Jobs, workloads and traces from files, and what is wrong with them in one sentence."""

import gzip

import numpy as np
import pytest
from small_cluster import tiny_application

import traincast.api.simulating as api
from traincast.errors import FileFormatError, InputError, TraincastError
from traincast.scheduling.jobs_file import read_jobs
from traincast.scheduling.pollux_tables import read_applications

PLAIN = "name,submit_s,seconds,n_devices\n"
WORKLOAD = "set,workload,job,submit_time_s,application,num_gpus,batch_size\n"
TRACE = "timestamp,duration_s,num_gpus\n"
STEPS = "app,table,placement,num_nodes,num_gpus,local_batch,step_time_s,sync_time_s\n"
GRADIENTS = "app,batch_size,epoch,progress,grad_sqr,grad_var\n"


@pytest.fixture
def written(tmp_path):
    def write(text, name="jobs.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def tables(written, tmp_path):
    rows = "".join(
        f"{app},placements,{shape},{len(shape)},{sum(map(int, shape))},{batch},{0.1 * batch},0.01\n"
        for app in ("bert", "ncf")
        for shape in ("1", "2", "4", "11", "44")
        for batch in (4, 8, 16)
    )
    even = "bert,scalability,,4,16,4,0.9,0.5\nbert,scalability,,4,16,8,1.0,0.5\n"
    written(STEPS + rows + even, "pollux_t4_steps.csv")
    progress = "".join(
        f"{app},{batch},{epoch},{100 * epoch},1,2\n" for app in ("bert", "ncf") for batch in (8, 32) for epoch in (1, 2)
    )
    written(GRADIENTS + progress, "pollux_gradient_statistics.csv")
    return tmp_path


def test_plain_jobs_take_their_seconds(written):
    path = written(PLAIN + "a,0,100,2\nb,5,50,1\n")
    schedule = api.simulate(path, "1x2xGPU", policy="fifo", interval_s=0, restart_s=0)
    assert [record.finish_s for record in schedule.jobs] == [100, 150]


def test_a_plain_job_may_say_how_it_scales(written):
    path = written("name,submit_s,seconds,n_devices,max_devices,exponent\na,0,100,1,4,0.5\n")
    schedule = api.simulate(path, "1x4xGPU", policy="traincast", interval_s=0, restart_s=0)
    assert schedule.makespan_s == pytest.approx(50)


def test_a_trace_is_sorted_by_time(written, tmp_path):
    path = tmp_path / "trace.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write(TRACE + "2017-10-09 07:01:55,60,1\n2017-10-09 07:00:55,30,8\n")
    jobs = read_jobs(path)
    assert [(one.submit_s, one.n_devices, one.length) for one in jobs] == [(0, 8, 30), (60, 1, 60)]


def test_jobs_of_a_trace_with_as_many_devices_share_a_profile(written):
    jobs = read_jobs(written(TRACE + "2017-10-09 07:01:55,60,1\n2017-10-09 07:02:55,30,1\n"))
    assert jobs[0].profile is jobs[1].profile


def test_a_workload_is_chosen_by_name(written, tables):
    applications = read_applications(tables)
    path = written(WORKLOAD + "real,1,x,0,bert,2,32\nreal,2,y,0,bert,4,32\ntuned,2,z,0,bert,1,8\n")
    assert [one.name for one in read_jobs(path, applications=applications, workload="real/2")] == ["y"]
    with pytest.raises(InputError, match="workloads real/1, real/2, tuned/2: choose one"):
        read_jobs(path, applications=applications)


def test_trainings_run_by_their_tables(written, tables):
    path = written(WORKLOAD + "s,1,x,0,bert,4,32\ns,1,y,0,ncf,1,32\n")
    schedule = api.simulate(path, "2x4xT4", policy="fifo", tables=tables, interval_s=0, restart_s=0)
    gain = 3 / (2 * 8 / 32 + 1)
    assert schedule.jobs[0].finish_s == pytest.approx(200 / gain * 0.8)
    assert {record.kind for record in schedule.jobs} == {"bert", "ncf"}


def test_ncf_stays_on_one_device_and_keeps_its_batch(written, tables):
    path = written(WORKLOAD + "s,1,x,0,bert,4,32\ns,1,y,0,ncf,1,32\n")
    bert, ncf = read_jobs(path, applications=read_applications(tables))
    assert (bert.profile.max_devices, ncf.profile.max_devices) == (8, 1)
    assert bert.adaptive is not None
    assert ncf.adaptive is None


def test_trainings_may_be_forecast(written):
    path = written("name,submit_s,model,batch_size,n_samples,n_epochs,n_devices\na,0,mnist_cnn,64,60000,1,2\n")
    schedule = api.simulate(path, "1x2xT4", policy="fifo", interval_s=0, restart_s=0)
    import traincast as tc

    asked = tc.forecast("mnist_cnn", on="2xT4", batch_size=64, n_samples=60000)
    assert schedule.makespan_s == pytest.approx(asked.total_s)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no jobs"),
        (PLAIN, "holds no jobs"),
        ("a,b\n1,2\n", "has the columns a, b, and jobs need name, submit_s, seconds, n_devices"),
        (PLAIN + "a,-1,10,1\n", "submit_s is -1: it should be 0 or later"),
        (PLAIN + "a,5,10,1\nb,4,10,1\n", r"line 3: submit_s is 4, earlier than the line before \(5\)"),
        (PLAIN + "a,0,0,1\n", "a job of 0 s: seconds should be above 0"),
        (PLAIN + "a,0,-3,1\n", "a job of -3 s"),
        (PLAIN + "a,0,10,0\n", "n_devices is 0: it should be a whole number from 1"),
        (PLAIN + "a,0,10,1.5\n", "n_devices is 1.5"),
        (PLAIN + "a,zero,10,1\n", "submit_s is 'zero', not a number"),
        (PLAIN + "a,nan,10,1\n", "it should be finite"),
        (TRACE + "yesterday,10,1\n", "'yesterday' is no time"),
        (TRACE + "2017-10-09 07:01:55,0,1\n", "a job of 0 s"),
    ],
)
def test_a_file_that_cannot_be_is_told(written, text, words):
    with pytest.raises(TraincastError, match=words):
        read_jobs(written(text))


def test_an_unknown_application_is_told(written, tables):
    path = written(WORKLOAD + "s,1,x,0,gpt,4,32\n")
    with pytest.raises(InputError, match="no application 'gpt' in the tables: bert, ncf"):
        read_jobs(path, applications=read_applications(tables))


def test_trainings_without_their_tables_are_told(written):
    with pytest.raises(InputError, match="measured tables are needed"):
        read_jobs(written(WORKLOAD + "s,1,x,0,bert,4,32\n"))


def test_a_job_larger_than_the_cluster_is_told(written):
    with pytest.raises(InputError, match="Job 'a' asks for 8 devices, and '1x4xGPU' has 4"):
        api.simulate(written(PLAIN + "a,0,10,8\n"), "1x4xGPU")


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_jobs(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_applications(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("pollux_t4_steps.csv", STEPS + "bert,placements,1,1,1,4,0,0\n", "a step of 0.0 s"),
        ("pollux_t4_steps.csv", STEPS + "bert,placements,1,one,1,4,1,0\n", "line 2"),
        ("pollux_t4_steps.csv", "app\nbert\n", "has no column placement"),
        ("pollux_gradient_statistics.csv", GRADIENTS + "bert,8,1,5,1,1\nbert,8,2,5,1,1\n", "does not grow"),
        ("pollux_gradient_statistics.csv", GRADIENTS + "bert,8,1,x,1,1\n", "line 2"),
    ],
)
def test_a_table_that_cannot_be_is_told(tables, written, name, text, words):
    written(text, name)
    with pytest.raises(FileFormatError, match=words):
        read_applications(tables)


def test_an_application_from_rows_is_what_the_tables_say(tables):
    bert = read_applications(tables)["bert"]
    assert bert.learning.progress.tolist() == [100, 100]
    assert bert.max_devices == 16
    assert np.array_equal(bert.learning.batches, [8, 32])
    assert tiny_application().max_batch == 32
