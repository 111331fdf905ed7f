"""Traces of torch.profiler: phases, kinds and self times add up, GPU kernels find their op, broken files say why."""

import gzip
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from profiled_traces import N_STEPS, event, gpu_events, kernel, launch, small_cnn, write_cpu_trace, write_json
from traincast.errors import FileFormatError, InputError
from traincast.records.imports.events import parse_events
from traincast.records.imports.intervals import difference, intersection, length, union
from traincast.records.imports.kineto import profiled_run, read_kineto
from traincast.records.op_names import kind_of_kernel, kind_of_op, op_roles

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def cpu_trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "cpu.json"
    return path, write_cpu_trace(path)


@pytest.fixture(scope="module")
def cpu_run(cpu_trace):
    return read_kineto(cpu_trace[0])


def test_a_step_is_what_our_own_clock_says(cpu_trace, cpu_run):
    ours_s = sum(cpu_trace[1][1:])  # the first was the profiler's warm-up
    assert cpu_run.n_steps == N_STEPS
    assert 0.5 * ours_s < N_STEPS * cpu_run.step_s < 2 * ours_s


def test_phases_add_up_to_the_step(cpu_run):
    assert sum(cpu_run.phases.values()) == pytest.approx(cpu_run.step_s)
    assert list(cpu_run.phases)[:4] == ["input", "forward", "backward", "optimizer"]


def test_work_and_waiting_and_the_host_add_up_to_the_step(cpu_run):
    told_s = cpu_run.work_s + cpu_run.input_wait_s + cpu_run.host_s
    assert told_s == pytest.approx(cpu_run.step_s)
    assert cpu_run.host_s > 0


def test_every_layer_is_found_with_its_kind_in_its_phase(cpu_run):
    assert set(cpu_run.work["forward"]) >= {"convolution", "normalisation", "elementwise", "pooling", "gemm", "softmax"}
    assert set(cpu_run.work["backward"]) >= {"convolution backward", "normalisation", "pooling", "gemm"}
    assert set(cpu_run.work) == {"forward", "backward", "optimizer"}


def test_calls_are_those_of_one_step_and_shapes_are_kept(cpu_run):
    ops = {(op.name, op.phase): op for op in cpu_run.ops}
    assert ops["aten::conv2d", "forward"].n_calls == 1
    assert ops["aten::mm", "backward"].n_calls in (1, 2)
    assert ops["aten::conv2d", "forward"].shapes == ("4x3x16x16, 8x3x3x3, 8",)
    n_weights = len(list(small_cnn().parameters()))
    assert ops["aten::addcdiv_", "optimizer"].n_calls == n_weights


def test_waiting_for_a_slow_loader_is_input(tmp_path):
    path = tmp_path / "slow.json"
    write_cpu_trace(path, sleep_s=0.005)
    run = read_kineto(path)
    assert run.input_wait_s >= 4 * 0.005  # it sleeps so long for the four samples of a batch, and rather longer
    assert run.phases["input"] == run.input_wait_s


def test_steps_without_marks_are_counted_by_their_updates(tmp_path):
    path = tmp_path / "unmarked.json"
    write_cpu_trace(path, with_marks=False)
    run = read_kineto(path)
    assert run.n_steps == N_STEPS + 1
    assert "does not mark steps" in run.notes[0]
    assert sum(run.phases.values()) == pytest.approx(run.step_s)


def test_a_gzipped_trace_is_read_alike(cpu_trace, cpu_run, tmp_path):
    packed = tmp_path / "cpu.json.gz"
    packed.write_bytes(gzip.compress(cpu_trace[0].read_bytes()))
    assert read_kineto(packed).to_dict() | {"source": ""} == cpu_run.to_dict() | {"source": ""}


@st.composite
def call_trees(draw, start=0.0, end=1000.0, depth=0):
    """Calls within calls on one thread, in any order, as (start, end)."""
    calls, cursor = [], start
    for _ in range(draw(st.integers(0, 3 if depth < 3 else 0))):
        low = draw(st.floats(cursor, end))
        high = draw(st.floats(low, end))
        calls.append((low, high))
        if high - low > 1:
            calls += draw(call_trees(start=low, end=high, depth=depth + 1))
        cursor = high
    return draw(st.permutations(calls)) if depth == 0 else calls


@given(call_trees())
def test_self_times_add_up_to_the_time_of_the_outermost_calls(calls):
    events = parse_events(event("cpu_op", "aten::add", low, high - low) for low, high in calls)
    spans = union((low * 1e-6, high * 1e-6) for low, high in calls)
    rounded = 1e-9 * (1 + len(calls))  # the profiler's clock ticks so
    assert sum(one.self_s for one in events.host) == pytest.approx(length(spans), abs=rounded)


def test_a_call_that_starts_as_another_ends_was_not_called_by_it():
    """755 - 1.506 + 1.506 is a little more than 755 in floating point."""
    first, second = (1.5064711571741327, 755.0), (755.0, 756.0)
    events = parse_events(event("cpu_op", "aten::add", low, high - low) for low, high in (first, second))
    assert [one.parent for one in events.host] == [-1, -1]


SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda pair: (min(pair), max(pair))), max_size=8)


@given(SPANS, SPANS)
def test_intervals_obey_the_laws_of_sets(left, right):
    a, b = union(left), union(right)
    covered = {at for low, high in a for at in range(low, high)}
    other = {at for low, high in b for at in range(low, high)}
    assert length(a) == len(covered)
    assert length(intersection(a, b)) == len(covered & other)
    assert length(difference(a, b)) == len(covered - other)


def test_a_gpu_step_lasts_from_its_first_kernel_to_the_next_steps():
    run = profiled_run(gpu_events(n_steps=3), source="run.json")
    assert (run.device_kind, run.n_steps) == ("gpu", 2)
    assert run.step_s == pytest.approx(1000e-6)
    assert sum(run.phases.values()) == pytest.approx(run.step_s)


def test_kernels_count_for_the_op_that_launched_them():
    run = profiled_run(gpu_events(), source="run.json")
    assert run.work["forward"] == {"convolution": pytest.approx(100e-6)}
    assert run.work["backward"] == {"convolution backward": pytest.approx(200e-6)}
    assert run.work["optimizer"] == {"optimizer": pytest.approx(30e-6)}
    device_s = {op.name: op.device_s for op in run.ops if op.device_s}
    assert device_s["aten::cudnn_convolution"] == pytest.approx(100e-6)
    assert device_s["aten::convolution_backward"] == pytest.approx(200e-6)


def test_of_an_all_reduce_only_what_runs_alone_is_exposed():
    run = profiled_run(gpu_events(), source="run.json")
    assert run.communication_s == pytest.approx(100e-6)
    assert run.exposed_communication_s == run.phases["communication"] == pytest.approx(50e-6)


def test_copies_of_inputs_are_told_apart_and_the_rest_is_an_idle_gpu():
    run = profiled_run(gpu_events(), source="run.json")
    assert run.copy_s == run.phases["copy"] == pytest.approx(20e-6)
    busy_us = 20 + 100 + 200 + 50 + 30
    assert run.host_s == pytest.approx((1000 - busy_us) * 1e-6)


def test_a_gpu_that_waits_for_the_loader_waits_for_input():
    run = profiled_run(gpu_events(load_us=4000), source="run.json")
    assert run.step_s == pytest.approx(5000e-6)
    assert run.input_wait_s == run.phases["input"] == pytest.approx(4000e-6)


def test_a_single_gpu_step_lasts_until_host_and_gpu_are_done():
    late = [event("user_annotation", "ProfilerStep#0", 0, 50), event("cpu_op", "aten::mm", 10, 20), launch(15, 1)]
    run = profiled_run([*late, kernel("sgemm", 40, 60, 1)], source="run.json")
    assert run.n_steps == 1
    assert run.step_s == pytest.approx(100e-6)
    assert run.work == {"forward": {"gemm": pytest.approx(60e-6)}}


def test_a_kernel_without_a_launch_is_known_by_its_name():
    run = profiled_run([event("cpu_op", "aten::mm", 0, 5), kernel("cutlass_80_gemm", 10, 20, 99)], source="run.json")
    assert run.work == {"forward": {"gemm": pytest.approx(20e-6)}}


def test_of_several_gpus_the_busiest_is_told():
    second = kernel("cutlass_gemm", 0, 5, 99)
    second["args"]["device"] = 1
    run = profiled_run([*gpu_events(), second], source="run.json")
    assert any("2 GPUs" in note and "GPU 0" in note for note in run.notes)


def test_all_reduces_of_gloo_beside_the_loop_are_exposed_where_no_op_runs():
    loop = [
        event("user_annotation", "ProfilerStep#0", 0, 1000),
        event("cpu_op", "aten::mm", 0, 400),
        event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 400, 300),
        event("cpu_op", "aten::mm", 400, 300),
        event("cpu_op", "c10d::allreduce_", 600, 1),
        event("user_annotation", "gloo:all_reduce", 600, 300, tid=9),
        event("cpu_op", "torch.distributed.ddp.reducer::copy_bucket_to_grad", 900, 20),
        event("user_annotation", "Optimizer.step#SGD.step", 920, 80),
    ]
    run = profiled_run(loop, source="run.json")
    assert run.communication_s == pytest.approx(300e-6)
    assert run.exposed_communication_s == run.phases["communication"] == pytest.approx(200e-6)
    assert run.phases["backward"] == pytest.approx(320e-6)
    assert run.work["backward"] == {"gemm": pytest.approx(300e-6), "copy": pytest.approx(20e-6)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("aten::addmm", "gemm"),
        ("aten::linear", None),
        ("aten::conv2d", None),
        ("aten::convolution", "convolution"),
        ("aten::mkldnn_convolution", "convolution"),
        ("aten::native_batch_norm", "normalisation"),
        ("aten::cudnn_batch_norm_backward", "normalisation"),
        ("aten::relu", "elementwise"),
        ("aten::view", None),
        ("aten::as_strided", None),
        ("aten::empty", None),
        ("aten::_local_scalar_dense", None),
        ("aten::scaled_dot_product_attention", None),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "attention"),
        ("aten::mkldnn_rnn_layer", "recurrent"),
        ("aten::_foreach_addcdiv_", "optimizer"),
        ("autograd::engine::evaluate_function: AddmmBackward0", None),
        ("AddmmBackward0", None),
        ("triton_poi_fused_add_relu_0", "elementwise"),
        ("flash_attn::_flash_attn_forward", "uncosted"),
        ("c10d::allreduce_", "communication"),
        ("nccl:all_reduce", "communication"),
    ],
)
def test_an_op_is_known_by_its_name(name, kind):
    assert kind_of_op(name) == kind


def test_a_kernel_is_known_by_its_name():
    assert kind_of_kernel("ampere_sgemm_128x64_tn") == "gemm"
    assert kind_of_kernel("void cudnn::bn_fw_tr_1C11_kernel_NCHW") == "normalisation"
    assert kind_of_kernel("ncclKernel_AllReduce_RING_LL_Sum_float") == "communication"
    assert kind_of_kernel("somebody_elses") == "uncosted"


def test_composite_ops_are_those_that_pytorch_has_no_kernel_for():
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for name in ("conv2d", "linear", "matmul", "reshape", "to", "layer_norm", "cross_entropy_loss", "batch_norm"):
        assert op_roles()[f"aten::{name}"] == "composite"
    known = set(torch._C._dispatch_get_all_op_names())
    composite = [name for name, role in op_roles().items() if role == "composite" and name in known]
    assert len(composite) > 300
    assert [name for name in composite if not has(name, "CompositeImplicitAutograd")] == []


TEXT = json.dumps({"schemaVersion": 1, "traceEvents": gpu_events(1)}, indent=2)


@given(st.integers(1, len(TEXT) - 1))
def test_a_trace_cut_short_anywhere_says_so_and_shows_its_end(tmp_path_factory, n_characters):
    path = tmp_path_factory.getbasetemp() / "cut.json"
    path.write_text(TEXT[:n_characters])
    with pytest.raises(FileFormatError, match=r"cut\.json' is cut short: .* ends with '") as caught:
        read_kineto(path)
    assert TEXT[:n_characters].split()[-1][-5:] in str(caught.value)


def test_a_gzip_cut_short_says_so(tmp_path):
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(TEXT.encode())[:200])
    with pytest.raises(FileFormatError, match="cut short: its gzip stream has no end"):
        read_kineto(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\x00\xff\xfe\x80", "is not UTF-8 text"),
        (b'{"weights": [1, 2]}', "no list of 'traceEvents'"),
        (b'{"traceEvents": []}', "has no ops"),
        (b'{"traceEvents": [{"ph": "M", "name": "process_name"}]}', "has no ops"),
        (b'{"traceEvents": nothing, "other": 1}', "is not JSON"),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 0}]}',
            "has no step: none of its events takes any time",
        ),
    ],
)
def test_what_is_no_trace_says_why(tmp_path, content, words):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=words):
        read_kineto(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"no file '.*gone\.json'"):
        read_kineto(tmp_path / "gone.json")


def test_strange_events_are_skipped(tmp_path):
    strange = [None, 3, {"ph": "X"}, {"ph": "X", "ts": "soon", "dur": 1}, {"ph": "X", "ts": 1, "dur": 1, "args": 5}]
    path = write_json(tmp_path / "strange.json", [*strange, *gpu_events()])
    assert read_kineto(path).n_steps == 2


def test_ids_that_are_no_names_join_nothing(tmp_path):
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1, "dur": 1}
    strange = [{**launch, "tid": [1], "args": {"correlation": {"a": 1}}}, {**launch, "pid": {}, "cat": "kernel"}]
    path = write_json(tmp_path / "strange.json", [*gpu_events(), *strange])
    assert read_kineto(path).step_s > 0


@pytest.mark.parametrize("field", ["ts", "dur"])
def test_a_time_of_400_digits_is_no_time(tmp_path, field):
    strange = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 1, field: 10**400}
    assert read_kineto(write_json(tmp_path / "strange.json", [strange, *gpu_events()])).n_steps == 2


def test_a_number_of_5000_digits_is_refused_by_the_name_of_its_file(tmp_path):
    (tmp_path / "file.json").write_text('{"traceEvents": [{"ts": ' + "9" * 5000 + "}]}")
    with pytest.raises(FileFormatError, match=r"file\.json' is not JSON: it has a whole number of thousa"):
        read_kineto(tmp_path / "file.json")
