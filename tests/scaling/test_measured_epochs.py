"""Measured epochs on several GPUs: how a table is read, what it is assumed to say, and what a step waits for."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincast.errors import FileFormatError, InputError
from traincast.scaling.measured import DataParallelModel, analyse, fit_data_parallel, least_log_squares
from traincast.scaling.measured_file import MeasuredEpoch, epoch_sum, read_measured

# ResNet-18 on CIFAR-10, torch.nn.DataParallel, seconds of the second epoch, as a course report of 2022 prints them.
N_PARAMETERS, N_SAMPLES = 11_173_962, 50_000
REPORT = {32: (38, 67, 121), 128: (16, 18, 30), 512: (13, 9, 11), 2048: (13, 10, 11)}
TRUTH = DataParallelModel(host_s=0.02, replica_s=0.015, compute_s_per_sample=3e-4, input_s_per_sample=1e-4)


def epoch(batch_size, n_devices, epoch_s, n_samples=N_SAMPLES):
    return MeasuredEpoch(
        batch_size=batch_size,
        n_devices=n_devices,
        epoch_s=epoch_s,
        n_iterations=math.ceil(n_samples / batch_size),
        where=f"row {batch_size} x {n_devices}",
    )


REPORT_ROWS = [
    epoch(batch, n, seconds) for batch, times in REPORT.items() for n, seconds in zip((1, 2, 4), times, strict=True)
]


def rows_of(model, batches, counts):
    empty = [epoch(batch, n, 1.0) for batch in batches for n in counts]
    seconds = epoch_sum(empty, N_SAMPLES)(model.step_s)
    return [epoch(row.batch_size, row.n_devices, float(each)) for row, each in zip(empty, seconds, strict=True)]


def point(scaling, batch_size, n_devices):
    return next(p for p in scaling.points if (p.row.batch_size, p.row.n_devices) == (batch_size, n_devices))


def table(tmp_path, text):
    path = tmp_path / "runs.csv"
    path.write_text(text, encoding="utf-8")
    return path


class TestReading:
    def test_spaces_capitals_and_units_in_headers_do_not_matter(self, tmp_path):
        path = table(tmp_path, " Global Batch , GPUs,Epoch time (s), remark\n32, 1 ,38.5,\n\n32,2,67,slow\n")
        first, second = read_measured(path, n_samples=N_SAMPLES)
        assert (first.batch_size, first.n_devices, first.epoch_s, first.n_iterations) == (32, 1, 38.5, 1563)
        assert second.where == f"'{path}', line 4"

    def test_iterations_do_not_depend_on_the_number_of_gpus_because_the_batch_is_global(self, tmp_path):
        path = table(tmp_path, "batch,gpus,epoch_s\n512,1,13\n512,2,9\n512,4,11\n")
        assert [row.n_iterations for row in read_measured(path, n_samples=N_SAMPLES)] == [98, 98, 98]

    def test_seconds_of_a_step_and_iterations_make_an_epoch(self, tmp_path):
        path = table(tmp_path, "batch,gpus,step seconds,iterations\n512,1,0.125,98\n")
        (row,) = read_measured(path)
        assert (row.epoch_s, row.n_iterations) == (12.25, 98)

    def test_a_step_beside_its_epoch_is_not_needed_and_may_be_left_empty(self, tmp_path):
        path = table(tmp_path, "batch,gpus,epoch_s,step_s\n512,1,13,\n")
        assert read_measured(path, n_samples=N_SAMPLES)[0].epoch_s == 13

    def test_a_byte_order_mark_is_no_part_of_the_first_header(self, tmp_path):
        path = tmp_path / "excel.csv"
        path.write_bytes("batch,gpus,epoch_s,steps\n8,1,2,3\n".encode("utf-8-sig"))
        assert read_measured(path)[0].batch_size == 8

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (
                "batch,epoch_s\n32,38\n",
                r"line 1: no column for the number of devices, such as 'gpus'; found batch, epoch_s",
            ),
            ("gpus,epoch_s\n1,38\n", r"line 1: no column for the global batch size"),
            ("batch,gpus\n32,1\n", r"line 1: no column for the seconds of an epoch, such as 'epoch_s' or 'step_s'"),
            ("", r"line 1: no column for the global batch size, such as 'batch'; found nothing"),
            ("batch,global_batch,gpus,epoch_s\n1,1,1,1\n", r"line 1: two columns give the global batch size"),
            ("batch,gpus,epoch_s\n32,1,fast\n", r"line 2: the seconds of an epoch is 'fast', not a number"),
            ("batch,gpus,epoch_s\n32,1,38\n32,2,0\n", r"line 3: the seconds of an epoch should be above 0, not 0"),
            ("batch,gpus,epoch_s\n32,1,-4\n", r"line 2: the seconds of an epoch should be above 0, not -4"),
            (
                "batch,gpus,epoch_s\n1e308,1,38\n",
                r"line 2: .* should be from 1e-15 to 1e\+15, not 1e\+308",
            ),
            ("batch,gpus,epoch_s\n32,1,nan\n", r"line 2: .* should be above 0, not nan"),
            ("batch,gpus,epoch_s\n32,1.5,38\n", r"line 2: the number of devices should be a whole number, not 1\.5"),
            ("batch,gpus,epoch_s\n32,1\n", r"line 2: 2 cells where the header has 3"),
            (
                "batch,gpus,epoch_s\n32,1,38\n32,1,39\n",
                r"line 3: batch 32 on 1 devices occurs twice \(first in .*line 2\)",
            ),
            ("batch,gpus,epoch_s\n", r"has no measured rows"),
            ('batch,gpus,epoch_s\n32,"1,38\n', r"is not a CSV table: .* in line 2"),
        ],
    )
    def test_what_is_wrong_is_said_with_file_and_line(self, tmp_path, text, words):
        with pytest.raises(FileFormatError, match=words) as caught:
            read_measured(table(tmp_path, text), n_samples=N_SAMPLES)
        assert "runs.csv" in str(caught.value)

    def test_an_epoch_without_a_number_of_steps_is_refused(self, tmp_path):
        with pytest.raises(InputError, match=r"line 2: the steps per epoch are unknown\. Give the number of samples"):
            read_measured(table(tmp_path, "batch,gpus,epoch_s\n32,1,38\n"))

    def test_a_batch_per_device_is_noticed_by_its_iterations(self, tmp_path):
        path = table(tmp_path, "batch,gpus,epoch_s,iterations\n32,1,38,1563\n32,2,67,782\n")
        with pytest.raises(InputError, match=r"line 3: .* make 1563 steps, not 782: the batch seems to be per device"):
            read_measured(path, n_samples=N_SAMPLES)

    def test_other_iterations_are_a_contradiction_unless_the_last_batch_was_dropped(self, tmp_path):
        path = table(tmp_path, "batch,gpus,epoch_s,iterations\n32,1,38,1562\n")
        assert read_measured(path, n_samples=N_SAMPLES)[0].n_iterations == 1562
        with pytest.raises(InputError, match=r"make 1563 steps, not 1000\.$"):
            read_measured(table(tmp_path, "batch,gpus,epoch_s,iterations\n32,1,38,1000\n"), n_samples=N_SAMPLES)

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(InputError, match="cannot be read: No such file"):
            read_measured(tmp_path / "none.csv")
        with pytest.raises(InputError, match="cannot be read: Is a directory"):
            read_measured(tmp_path)


class TestTheReportsSplit:
    """The columns that the report prints, to its digits, and what its figures become with the right bytes."""

    @pytest.mark.parametrize(
        ("batch", "n", "speedup", "compute_s", "communication_s", "elements", "reported"),
        [
            (32, 2, 0.5671641791, 19, 48, 1.746490261e10, 0.363852),
            (32, 4, 0.3140495868, 9.5, 111.5, 2.619735391e10, 0.234954),
            (128, 4, 0.5333333333, 4, 26, 6553528713, 0.252059),
            (512, 2, 1.444444444, 6.5, 2.5, 1095048276, 0.438019),
            (2048, 4, 1.181818182, 3.25, 7.75, 419023575, None),
        ],
    )
    def test_published_figures(self, batch, n, speedup, compute_s, communication_s, elements, reported):
        found = point(analyse(REPORT_ROWS, N_PARAMETERS), batch, n)
        assert found.speedup == pytest.approx(speedup, rel=1e-9)
        assert (found.compute_s, found.communication_s) == (compute_s, communication_s)
        assert found.ring_bytes / 4 == pytest.approx(elements, rel=1e-9)
        if reported is not None:  # the report divides by 10^9 and calls parameters a second GB/s
            assert found.ring_bytes_per_s == pytest.approx(4 * reported * 1e9, rel=2e-6)

    def test_bytes_that_pass_the_first_gpu_by_hand(self):
        rows = [epoch(10, 1, 8.0, n_samples=100), epoch(10, 4, 5.0, n_samples=100)]
        found = point(analyse(rows, 1000, sample_bytes=40.0, link_bytes_per_s=1e6), 10, 4)
        # Ten steps: weights to three GPUs, gradients from three, and three quarters of ten samples
        assert found.hub_bytes == 10 * (3 * 4000 + 3 * 4000 + 0.75 * 10 * 40)
        assert found.ring_bytes == 10 * 1.5 * 4000
        assert found.hub_bytes_per_s == pytest.approx(243_000 / 3)
        assert found.hub_link_fraction == pytest.approx(0.081)
        assert found.ring_link_fraction == pytest.approx(0.02)

    def test_two_bytes_a_parameter_halve_the_traffic(self):
        full, half = (analyse(REPORT_ROWS, N_PARAMETERS, bytes_per_parameter=n).points[2] for n in (4, 2))
        assert (half.ring_bytes, half.hub_bytes) == (full.ring_bytes / 2, full.hub_bytes / 2)

    def test_one_gpu_sends_nothing_and_has_no_rate(self):
        alone = analyse(REPORT_ROWS, N_PARAMETERS, link_bytes_per_s=1e9).points[0]
        assert (alone.speedup, alone.communication_s, alone.ring_bytes, alone.hub_bytes) == (1, 0, 0, 0)
        assert alone.ring_bytes_per_s is alone.hub_bytes_per_s is alone.hub_link_fraction is None
        assert math.isnan(alone.serial_fraction)

    def test_a_superlinear_row_leaves_no_time_for_communication_and_says_so(self):
        scaling = analyse([epoch(8, 1, 10.0), epoch(8, 2, 4.0)], 1000)
        assert scaling.points[1].communication_s == -1.0
        assert scaling.points[1].ring_bytes_per_s is None
        assert "Faster than linear on 2 devices" in scaling.warnings[0]

    def test_assumptions_travel_with_the_answer(self):
        scaling = analyse(REPORT_ROWS, N_PARAMETERS)
        assert any("T1/N" in each for each in scaling.assumptions)
        assert any("not use a ring" in each for each in scaling.assumptions)

    def test_a_batch_without_one_gpu_has_no_speedup(self):
        with pytest.raises(InputError, match=r"row 8192 x 2: batch 8192 has no single-device row to compare with"):
            analyse([*REPORT_ROWS, epoch(8192, 2, 13)], N_PARAMETERS)
        with pytest.raises(InputError, match=r"batch 32 has two rows for a single device"):
            analyse([*REPORT_ROWS, epoch(32, 1, 39)], N_PARAMETERS)

    def test_figures_that_cannot_be(self):
        with pytest.raises(InputError, match=r"above 0, not 0 and None"):
            analyse(REPORT_ROWS, 0)
        with pytest.raises(InputError, match=r"above 0, not 5 and 0\.0"):
            analyse(REPORT_ROWS, 5, link_bytes_per_s=0.0)
        with pytest.raises(InputError, match=r"row 32 x 1: epoch_s must be above 0, not 0"):
            epoch(32, 1, 0.0)


class TestWhatAStepWaitsFor:
    @pytest.mark.parametrize(
        ("batch", "n", "seconds", "bound"),
        [
            (10, 1, 0.02, "host"),
            (10, 4, 0.02 + 3 * 0.015, "host"),  # replicas are dispatched one after the other
            (1000, 1, 0.3, "compute"),
            (1000, 2, 0.15, "compute"),
            (1000, 4, 0.1, "input"),  # the loader does not know how many GPUs wait
        ],
    )
    def test_a_step_takes_as_long_as_its_slowest_timeline(self, batch, n, seconds, bound):
        assert TRUTH.step_s(batch, n) == pytest.approx(seconds)
        assert TRUTH.bound_by(batch, n) == bound

    def test_the_last_batch_is_what_is_left_of_the_samples(self):
        rows = [epoch(100, 1, 1.0, n_samples=250)]
        per_sample = DataParallelModel(host_s=0, replica_s=0, compute_s_per_sample=1.0, input_s_per_sample=0)
        assert epoch_sum(rows, 250)(per_sample.step_s) == pytest.approx([250.0])
        assert epoch_sum(rows)(per_sample.step_s) == pytest.approx(
            [300.0]
        )  # without a number of samples: three full ones
        dropped = MeasuredEpoch(batch_size=100, n_devices=1, epoch_s=1.0, n_iterations=2)
        assert epoch_sum([dropped], 250)(per_sample.step_s) == pytest.approx([200.0])

    @settings(max_examples=8)
    @given(
        values=st.tuples(st.floats(0.01, 0.05), st.floats(0.005, 0.03), st.floats(2e-4, 5e-4), st.floats(2e-5, 8e-5))
    )
    def test_the_fit_finds_the_model_behind_noise_free_epochs(self, values):
        names = ("host_s", "replica_s", "compute_s_per_sample", "input_s_per_sample")
        truth = DataParallelModel(**dict(zip(names, values, strict=True)))
        rows = rows_of(truth, batches=(16, 256, 4096), counts=(1, 2, 8))
        fit = fit_data_parallel(rows, n_samples=N_SAMPLES)
        assert fit.mean_error_fraction < 1e-3
        if not fit.warnings:
            assert [getattr(fit.model, name) for name in names] == pytest.approx(values, rel=0.02)

    def test_the_report_is_explained_to_twelve_percent_and_better_than_by_rules_of_thumb(self):
        fit = fit_data_parallel(REPORT_ROWS, n_samples=N_SAMPLES, resolution_s=1.0)
        assert (len(fit.rows), fit.n_parameters) == (12, 4)
        assert fit.mean_error_fraction < 0.065
        assert fit.leave_one_out_error_fraction < 0.10
        assert fit.error_fractions.max() < 0.15
        several = np.array([row.n_devices > 1 for row in REPORT_ROWS])
        assert fit.error_fractions[several].mean() < 0.5 * min(each.mean_error_fraction for each in fit.baselines)
        assert fit.warnings == ()

    def test_four_gpus_are_slower_than_one_at_batch_32_because_the_host_serves_four_replicas(self):
        fit = fit_data_parallel(REPORT_ROWS, n_samples=N_SAMPLES)
        host_s, compute_s, input_s = fit.model.parts_s(32, 4)
        assert fit.model.bound_by(32, 4) == fit.model.bound_by(32, 1) == "host"
        assert host_s > 20 * compute_s
        assert host_s > 10 * input_s
        assert fit.model.step_s(32, 4) > 3 * fit.model.step_s(32, 1)
        assert fit.model.bound_by(2048, 4) == "input"  # and large batches wait for the loader

    def test_a_further_replica_bounds_the_link_from_below(self):
        assert TRUTH.least_link_bytes_per_s(45e6) == pytest.approx(6e9)  # 90 MB in 15 ms, if nothing else took time

    def test_a_clock_of_one_second_alone_makes_an_error(self):
        fit = fit_data_parallel(REPORT_ROWS, n_samples=N_SAMPLES, resolution_s=1.0)
        assert fit.noise_floor_fraction == pytest.approx(np.mean([1 / row.epoch_s for row in REPORT_ROWS]) / 3)
        assert fit_data_parallel(REPORT_ROWS).noise_floor_fraction is None

    def test_two_clock_readings_rounded_down_are_off_by_a_third_of_a_tick_on_average(self):
        begin = np.random.default_rng(0).uniform(0, 100, 20_000)
        error = np.floor(begin + 9.37) - np.floor(begin) - 9.37
        spread = np.floor(begin + np.linspace(9, 12, 20_000)) - np.floor(begin) - np.linspace(9, 12, 20_000)
        assert np.abs(error).max() < 1
        assert np.abs(spread).mean() == pytest.approx(1 / 3, abs=0.01)

    def test_rules_of_thumb_by_hand(self):
        rows = [epoch(8, 1, 8.0), epoch(8, 2, 5.0), epoch(8, 4, 5.0), epoch(16, 1, 8.0), epoch(16, 2, 5.0)]
        found = {each.name: each for each in fit_data_parallel(rows).baselines}
        assert found["T1"].mean_error_fraction == pytest.approx(0.6)
        assert found["T1/N"].mean_error_fraction == pytest.approx((0.2 + 0.6 + 0.2) / 3)
        assert found["T1/N + seconds per epoch"].n_fitted == 1
        assert found["T1/N + seconds per epoch"].mean_error_fraction < 1 / 3

    def test_what_no_row_shows_is_said(self):
        rows = rows_of(TRUTH, batches=(1, 2, 4), counts=(1, 2))
        warnings = fit_data_parallel(rows, n_samples=N_SAMPLES).warnings
        assert any("No row is clearly limited by compute" in each for each in warnings)
        assert any("No row is clearly limited by input" in each for each in warnings)
        big = rows_of(TRUTH, batches=(1024, 4096), counts=(1, 2, 4))
        assert any("limited by host" in each for each in fit_data_parallel(big, n_samples=N_SAMPLES).warnings)
        small = rows_of(TRUTH, batches=(8,), counts=(2,))
        assert any(
            "cannot be separated" in each for each in fit_data_parallel([*small, *big], n_samples=N_SAMPLES).warnings
        )

    def test_a_row_is_predicted_without_itself_only_where_there_is_one_to_spare(self):
        assert fit_data_parallel(REPORT_ROWS[:4]).leave_one_out_error_fraction is None
        assert len(fit_data_parallel(REPORT_ROWS[:5]).left_out_s) == 5

    def test_too_few_rows_or_devices_are_refused(self):
        with pytest.raises(
            InputError,
            match="Fitting four parameters needs at least four rows with two different numbers of devices; these 3",
        ):
            fit_data_parallel(REPORT_ROWS[:3])
        with pytest.raises(InputError, match="two different numbers of devices; these 4"):
            fit_data_parallel([row for row in REPORT_ROWS if row.n_devices == 1])

    def test_another_number_of_samples_than_measured_is_refused(self):
        with pytest.raises(InputError, match=r"60000 samples in batches of 32 make 1875 steps, not 1563"):
            fit_data_parallel(REPORT_ROWS, n_samples=60_000)

    def test_logarithms_weigh_a_twofold_error_alike_whether_up_or_down(self):
        found = least_log_squares(lambda value: value * np.ones(2), np.array([1.0, 4.0]), np.array([1.0]))
        assert found == pytest.approx([2.0])
