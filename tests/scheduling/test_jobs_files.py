"""Jobs, workloads and traces from files, and what is wrong with them in one sentence."""

import gzip

import numpy as np
import pytest
from small_cluster import tiny_application

import traincast.api.simulating as api
from traincast.errors import FileFormatError, InputError, TraincastError
from traincast.scheduling.jobs_file import read_jobs
from traincast.scheduling.machines import Machines
from traincast.scheduling.pollux_tables import read_applications

PLAIN = "name,submit_s,seconds,n_devices\n"
WORKLOAD = "set,workload,job,submit_time_s,application,num_gpus,batch_size\n"
TRACE = "timestamp,duration_s,num_gpus\n"
STEPS = "app,table,placement,num_nodes,num_gpus,local_batch,step_time_s,sync_time_s\n"
GRADIENTS = "app,batch_size,epoch,progress,grad_sqr,grad_var\n"


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


def test_times_of_a_trace_may_name_their_zone(written):
    """Noon in Berlin in winter is 11 o'clock UTC, and so is a time that names no zone."""
    jobs = read_jobs(
        written(TRACE + "2017-12-01T12:00:00+01:00,60,1\n2017-12-01T11:00:30Z,60,1\n2017-12-01 11:00:45,60,1\n")
    )
    assert [one.submit_s for one in jobs] == [0, 30, 45]


def test_jobs_of_a_trace_with_as_many_devices_share_a_profile(written):
    jobs = read_jobs(written(TRACE + "2017-10-09 07:01:55,60,1\n2017-10-09 07:02:55,30,1\n"))
    assert jobs[0].profile is jobs[1].profile


def test_a_workload_is_chosen_by_name(written, tables):
    applications = read_applications(tables)
    path = written(WORKLOAD + "real,1,x,0,bert,2,32\nreal,2,y,0,bert,4,32\ntuned,2,z,0,bert,1,8\n")
    assert [one.name for one in read_jobs(path, applications=applications, workload="real/2")] == ["y"]
    with pytest.raises(InputError, match="workloads real/1, real/2, tuned/2: choose one"):
        read_jobs(path, applications=applications)
    assert [one.name for one in read_jobs(path, applications=applications, workload="1")] == ["x"]
    with pytest.raises(InputError, match="several workloads 2: real/2, tuned/2"):
        read_jobs(path, applications=applications, workload="2")


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


def test_measured_steps_are_those_of_a_t4_and_of_no_other_device(written, tables):
    path = written(WORKLOAD + "s,1,x,0,bert,4,32\n")
    with pytest.raises(InputError, match="Job 'x' runs on T4, which '2x4xA100' does not have"):
        api.simulate(path, "2x4xA100", policy="fifo", tables=tables)
    schedule = api.simulate(path, "2x4xV100+2x4xt4", policy="fifo", tables=tables)
    assert {node for span in schedule.spans for node, _ in span.placement} <= {2, 3}


def test_yolov3_takes_at_most_8_samples_a_device_at_once(written, tables):
    rows = "".join(
        f"yolov3,placements,{shape},1,{shape},{batch},{0.1 * batch},0\n" for shape in (1, 2) for batch in (4, 16)
    )
    written(STEPS + rows, "pollux_t4_steps.csv")
    written(GRADIENTS + "yolov3,8,1,100,1,2\nyolov3,32,1,100,1,2\n", "pollux_gradient_statistics.csv")
    yolo = read_applications(tables)["yolov3"]
    assert (yolo.max_local_batch, yolo.steps["T4"].largest_batch) == (8, 16)
    gain = 3 / (2 * 8 / 32 + 1)
    assert yolo.epoch_s((2,), "T4", 32).tolist() == pytest.approx([100 / gain * 2 * 0.8])  # two passes of 8


def test_a_job_may_say_how_uncertain_its_length_is(written):
    """From 800 to 1250 steps: a factor of 1.25 either way, which is 1.28 standard deviations of the logarithm."""
    header = "name,submit_s,seconds,n_devices,steps_p10,steps_p90\n"
    sure, unsure = read_jobs(written(header + "sure,0,100,1,,\nunsure,0,100,1,800,1250\n"))
    assert sure.work_sigma is None
    assert unsure.work_sigma == pytest.approx(np.log(1.25) / 1.2816, rel=1e-4)


def test_only_jobs_with_an_interval_are_forecast_wrong(written):
    header = "name,submit_s,seconds,n_devices,steps_p10,steps_p90\n"
    rows = "".join(f"job{n},0,{100 + n},1,{'1,1000' if n > 4 else ','}\n" for n in range(10))
    many = api.simulate_many(written(header + rows), "1xGPU", ["srtf"], n_seeds=3, interval_s=0, restart_s=0)
    started = [span.job for span in many.outcomes[0].schedule.spans]
    assert [n for n in started if n <= 4] == [0, 1, 2, 3, 4], "those that are known are in the right order"
    assert started != list(range(10))
    assert len(set(many.outcomes[0].by_seed["mean_completion_s"])) == 3


def test_a_job_of_absurd_size_is_refused_like_any_other(written):
    with pytest.raises(InputError, match="Job 'a' asks for 3000000000 devices, but '1x4xGPU' has only 4"):
        api.simulate(written(PLAIN + "a,0,10,3000000000\n"), "1x4xGPU")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": -1}, "seed cannot be -1: give a whole number of at least 0"),
        ({"repair_s": 5.0}, "matter only if nodes fail: also give the mean time between failures"),
        ({"checkpoint_s": 5.0}, "matter only if nodes fail"),
    ],
)
def test_options_that_mean_nothing_are_told(written, options, words):
    with pytest.raises(InputError, match=words):
        api.simulate(written(PLAIN + "a,0,10,1\n"), "1x4xGPU", **options)


def test_tables_and_workloads_belong_to_files_that_name_applications(written, tables):
    path = written(PLAIN + "a,0,10,1\n")
    with pytest.raises(InputError, match="names no applications"):
        api.simulate(path, "1x4xGPU", tables=tables)
    with pytest.raises(InputError, match="not to Job objects"):
        api.simulate(read_jobs(path), "1x4xGPU", workload="1")


def test_trainings_may_be_forecast(written):
    path = written("name,submit_s,model,batch_size,n_samples,n_epochs,n_devices\na,0,mnist_cnn,64,60000,1,2\n")
    schedule = api.simulate(path, "1x2xT4", policy="fifo", interval_s=0, restart_s=0)
    import traincast as tc

    asked = tc.forecast("mnist_cnn", on="2xT4", batch_size=64, n_samples=60000)
    assert schedule.makespan_s == pytest.approx(asked.total_s)


FORECAST = "name,submit_s,model,batch_size,n_samples,n_epochs,n_devices\n"


def test_a_forecast_training_waits_for_the_link_where_its_devices_are_spread(written):
    """The long ones leave one device free on each of two nodes: two devices of the last one are apart."""
    import traincast as tc

    rows = "a,0,mnist_cnn,64,60000,9,3\nb,0,mnist_cnn,64,60000,9,3\nc,0,mnist_cnn,64,60000,1,2\n"
    schedule = api.simulate(written(FORECAST + rows), "2x4xT4@1Gb/s", policy="fifo", interval_s=0, restart_s=0)
    assert [len(span.placement) for span in sorted(schedule.spans)] == [1, 1, 2]
    whole = tc.forecast("mnist_cnn", on="2x1xT4@1Gb/s", batch_size=64, n_samples=60000).total_s
    together = tc.forecast("mnist_cnn", on="2xT4", batch_size=64, n_samples=60000).total_s
    assert schedule.jobs[2].finish_s == pytest.approx(whole)
    assert whole > 1.1 * together


def test_trainings_are_forecast_on_nodes_of_two_sizes(written):
    """All six devices: four in one node and two in the other."""
    path = written(FORECAST + "a,0,mnist_cnn,64,60000,1,6\n")
    uneven = api.simulate(path, "1x4xT4@10Gb/s+1x2xT4@10Gb/s", policy="fifo", interval_s=0, restart_s=0)
    assert 0 < uneven.makespan_s < np.inf
    same = Machines(devices=(4, 2), kinds=("T4", "T4"), links=("10Gb/s", "10Gb/s"), name="lab")
    assert api.simulate(path, same, policy="fifo", interval_s=0, restart_s=0).makespan_s == uneven.makespan_s


def test_a_trace_may_have_columns_of_which_we_know_nothing(written):
    (job,) = read_jobs(
        written("timestamp,duration_s,num_gpus,gpu_time_s,cluster\n2017-10-09 07:01:55,66,1,66,11cb48\n")
    )
    assert job.length == 66


@pytest.mark.parametrize("batch_size", [333, 331])
def test_a_batch_that_does_not_fit_is_shared_by_passes_that_need_not_divide_it(written, batch_size):
    """On a T4 it takes four passes. The fullest has 84 samples, and each counts as such a one."""
    import traincast as tc

    path = written(FORECAST + f"a,0,resnet50,{batch_size},10000,2,1\n")
    schedule = api.simulate(path, "1x2xT4", policy="fifo", interval_s=0, restart_s=0)
    assert not tc.forecast("resnet50", on="T4", batch_size=2 * 167, accumulation_steps=2).fits
    four = tc.forecast("resnet50", on="T4", batch_size=4 * -(-batch_size // 4), accumulation_steps=4)
    assert four.fits
    assert schedule.makespan_s == pytest.approx(four.step_s * 31 * 2)


def test_a_training_runs_on_the_types_that_it_fits_on(written):
    """GPT-2 XL fits on a V100, a batch of four on one RTX 3090 but not with another beside it; llama-1b on no P4."""
    path = written(FORECAST + "a,0,gpt2-xl,1,1000,1,1\n")
    schedule = api.simulate(path, "1x2xV100-SXM2-16GB+1x1xA100-SXM4-80GB", policy="fifo", interval_s=0)
    assert [span.placement for span in schedule.spans] == [((1, 1),)]
    assert len(api.simulate(path, "1x2xV100-SXM2-16GB", policy="optimus").spans) == 1
    two = written(FORECAST + "a,0,gpt2-xl,4,1000,1,2\n")
    with pytest.raises(FileFormatError, match="line 2: 2 devices: 'gpt2-xl' fits on at most 1 of a type"):
        api.simulate(two, "1x2xRTX-3090", policy="fifo")
    large = written(FORECAST + "a,0,llama-1b,8,1000,1,1\n")
    with pytest.raises(FileFormatError, match="line 2: 'llama-1b' does not fit on P4, even with one sample at a time"):
        api.simulate(large, "1x1xP4", policy="fifo")


def test_a_model_that_is_not_known_is_told_with_its_line(written):
    path = written(FORECAST + "a,0,mnist_cnn,64,60000,1,1\nb,0,mnist_cmm,64,60000,1,1\n")
    with pytest.raises(FileFormatError, match="line 3: No model named 'mnist_cmm'"):
        api.simulate(path, "1x1xT4", policy="fifo")


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ("2x4xT4", "name the link between them"),
        ("1x4xT4@10Gb/s+1x4xT4@1Gb/s", "by two links .10Gb/s and 1Gb/s.: name one"),
    ],
)
def test_a_forecast_needs_one_link_between_nodes(written, cluster, words):
    with pytest.raises(FileFormatError, match=words):
        api.simulate(written(FORECAST + "a,0,mnist_cnn,64,60000,1,6\n"), cluster, policy="fifo")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no jobs"),
        (PLAIN, "has no jobs"),
        ("name,submit_s,secnds,n_devices\na,0,9,1\n", "no column 'seconds': its column 'secnds' should be named so"),
        (
            "name,submit_s,seconds,n_devices,max_device\na,0,9,1,2\n",
            "a column 'max_device' that does not apply to such jobs: did you mean 'max_devices'?",
        ),
        ("name,submit_s,seconds,n_devices,colour\na,0,9,1,2\n", "a column 'colour' .* known here are name, submit_s"),
        ("timestamp,duration_s,num_gpus,step_p10\n2017-10-09 07:01:55,9,1,2\n", "did you mean 'steps_p10'"),
        ("name,submit_s,seconds,n_devices,seconds\na,0,9,1,2\n", "has two columns 'seconds'"),
        (PLAIN + "a,0,10,1,2\n", "line 2: it has more cells than the 4 columns of the first line"),
        (PLAIN + "a,0,10,1\n\na,0,10,1\n", "line 4: a second job 'a', as on line 2"),
        ("a,b\n1,2\n", "has the columns a, b, but jobs need name, submit_s, seconds, n_devices"),
        (PLAIN + "a,-1,10,1\n", "submit_s is -1: it should be 0 or later"),
        (PLAIN + "a,5,10,1\nb,4,10,1\n", r"line 3: submit_s is 4, earlier than the line before \(5\)"),
        (PLAIN + "a,0,0,1\n", "a job of 0 s: seconds should be above 0"),
        (PLAIN + "a,0,-3,1\n", "a job of -3 s"),
        (PLAIN + "a,0,10,0\n", "n_devices is 0: it should be a whole number from 1"),
        (PLAIN + "a,0,10,1.5\n", "n_devices is 1.5"),
        (PLAIN + "a,zero,10,1\n", "submit_s is 'zero', not a number"),
        (PLAIN + "a,nan,10,1\n", "it should be finite"),
        (TRACE + "yesterday,10,1\n", "'yesterday' is not a time"),
        (TRACE + "2017-10-09 07:01:55,0,1\n", "a job of 0 s"),
        (TRACE + ",10,1\n", "line 2: timestamp is missing"),
        (PLAIN + "a,0\n", "line 2: n_devices is missing"),
        ("name,submit_s,seconds,n_devices,steps_p10,steps_p90\na,0,9,1,900,800\n", "above 0 and rise"),
        ("name,submit_s,seconds,n_devices,steps_p10\na,0,9,1,900\n", "steps_p90 is missing"),
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
    with pytest.raises(InputError, match="give the folder of their measured tables"):
        read_jobs(written(WORKLOAD + "s,1,x,0,bert,4,32\n"))


def test_a_job_larger_than_the_cluster_is_told(written):
    with pytest.raises(InputError, match="Job 'a' asks for 8 devices, but '1x4xGPU' has only 4"):
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
        ("pollux_t4_steps.csv", STEPS + "bert,placements,1,one,1,4,1,0\n", "line 2: num_nodes is 'one', not a number"),
        (
            "pollux_t4_steps.csv",
            STEPS + "bert,placements,4x4,2,8,4,1,0\n",
            "line 2: placement is '4x4', not one digit per",
        ),
        (
            "pollux_t4_steps.csv",
            STEPS + "bert,placements,1,1,1,0,1,0\n",
            "line 2: local_batch is 0: it should be a whole number",
        ),
        ("pollux_t4_steps.csv", "app\nbert\n", "has no column placement"),
        ("pollux_gradient_statistics.csv", GRADIENTS + "bert,8,1,5,1,1\nbert,8,2,5,1,1\n", "does not grow"),
        ("pollux_gradient_statistics.csv", GRADIENTS + "bert,8,1,x,1,1\n", "line 2"),
        (
            "pollux_gradient_statistics.csv",
            GRADIENTS + "bert,8,1,inf,1,1\nbert,8,2,inf,1,1\n",
            "line 2: progress is inf",
        ),
        (
            "pollux_gradient_statistics.csv",
            f"{GRADIENTS}bert,{'9' * 400},1,5,1,1\n",
            "line 2: batch_size is inf: it should be",
        ),
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


def test_tables_without_a_common_application_are_told(tables, written):
    written(GRADIENTS + "other,8,1,100,1,2\n", "pollux_gradient_statistics.csv")
    with pytest.raises(FileFormatError, match=r"pollux_t4_steps\.csv' and 'pollux_gradient\S+' beside it have no"):
        read_applications(tables)


def test_counts_that_nobody_has_are_refused_with_their_line(written):
    path = written("name,submit_s,model,batch_size,n_samples,n_epochs,n_devices\na,0,mnist_cnn,64,6000,1e308,1\n")
    with pytest.raises(
        FileFormatError, match=r"line 2: n_epochs is 1e308: it should be a whole number from 1 to 1e\+15"
    ):
        api.simulate(path, "1x4xT4")


@pytest.mark.parametrize("n_digits", [400, 5000])
def test_numbers_of_many_digits_are_refused_with_their_line(tmp_path, n_digits):
    big = "9" * n_digits
    servers = "name,submit_s,n_servers,n_workers,mode,theta,batch_size,loss,target_loss,expected_steps\n"
    for number, table in enumerate(
        [
            f"{PLAIN}a,0,{big},1\n",
            f"{PLAIN}a,0,1,{big}\n",
            f"{servers}a,0,1,1,async,1 1 1 {big},,1 1 0,0.1,100\n",
            f"{servers}a,0,1,1,async,1 1 1 1,,1 {big} 0,0.1,100\n",
        ]
    ):
        path = tmp_path / f"{number}.csv"
        path.write_text(table)
        with pytest.raises(FileFormatError, match=r"line 2: [^\n]* finite"):
            read_jobs(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("pollux_t4_steps.csv", b"\xff\xfe\x00", "is UTF-16 text"),
        ("pollux_t4_steps.csv", STEPS.encode() + b"bert," + b"1" * 200_000, "is not a CSV file: field larger than"),
        ("pollux_t4_steps.csv", STEPS.encode() + b"bert,placements\n", "line 2: it has fewer cells than the header"),
        (
            "pollux_gradient_statistics.csv",
            GRADIENTS.encode() + b"bert,4\n",
            "line 2: it has fewer cells than the header",
        ),
    ],
)
def test_a_damaged_table_of_pollux_is_named(tables, name, content, words):
    (tables / name).write_bytes(content)
    with pytest.raises(FileFormatError, match=f"{name}.* {words}"):
        read_applications(tables)


def test_a_gzipped_table_with_a_damaged_stream_is_no_table(tmp_path):
    path, content = tmp_path / "jobs.csv.gz", bytearray(gzip.compress(PLAIN.encode() * 50, mtime=0))
    content[10] ^= 0b110  # the kind of its first block, which then is none
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="is not a CSV file"):
        read_jobs(path)


def test_a_small_file_that_unpacks_to_too_many_jobs_is_refused(tmp_path):
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(PLAIN.encode() + b"a,0,1,1\n" * 200_001, 1))
    with pytest.raises(FileFormatError, match="has more than 200,000 rows: cut it into parts"):
        read_jobs(path)
