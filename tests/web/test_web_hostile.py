"""Well-formed files that mean harm: the server neither opens them itself, nor waits for them, nor grows."""

import gc
import json
import struct
import tempfile
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import traincast as tc
from traincast.errors import InputError
from traincast.kernels.predictor import PLANS
from traincast.trace.lowering.lower import LOWERED
from traincast.web.answer_process import AnswerProcess, upload_limits
from traincast.web.answer_process_main import Worker
from traincast.web.app import make_app
from traincast.web.limits import Limits
from traincast.web.question_runner import KeptAnswers
from traincast.web.stored_uploads import StoredUploads, Upload

_HEAD = b"traincast-trace 1\n"


@pytest.fixture(scope="module")
def trace_parts(tmp_path_factory):
    """Header and arrays of a small trace as it is saved."""
    path = tmp_path_factory.mktemp("saved") / "small.trace"
    tc.load_model("mnist_cnn").save(path)
    content = zlib.decompress(path.read_bytes().removeprefix(_HEAD))
    (length,) = struct.unpack_from("<Q", content)
    return json.loads(content[8 : 8 + length]), content[8 + length :]


@pytest.fixture(scope="module")
def worker():
    return Worker({"trace_memory_bytes": 64 * 2**20, "answer_bytes": 16 * 2**20})


def packed(header, arrays):
    text = json.dumps(header).encode()
    return _HEAD + zlib.compress(struct.pack("<Q", len(text)) + text + arrays)


def array_of(parts, name):
    offset = 0
    for one, dtype, count in parts[0]["arrays"]:
        if one == name:
            return np.frombuffer(parts[1], dtype, count, offset)
        offset += count * np.dtype(dtype).itemsize
    raise KeyError(name)


def with_array(parts, name, values):
    """The same trace with other numbers in one of its arrays."""
    header, arrays = json.loads(json.dumps(parts[0])), parts[1]
    offset = 0
    for row in header["arrays"]:
        length = row[2] * np.dtype(row[1]).itemsize
        if row[0] == name:
            row[1:] = [values.dtype.str, len(values)]
            arrays = arrays[:offset] + values.tobytes() + arrays[offset + length :]
            break
        offset += length
    return packed(header, arrays)


def upload(client, name, content):
    return client.post("/api/models", params={"name": name}, content=content)


def test_a_small_file_that_is_large_in_memory_is_refused(client, trace_parts):
    """Forty million dimensions of one: 80 kB to send, 640 MB to hold."""
    ones = np.ones(40_000_000, dtype=np.int8)
    bomb = with_array(trace_parts, "dim_base", ones)
    assert len(bomb) < 200_000
    reply = upload(client, "wide.trace", bomb)
    assert reply.status_code == 422
    assert reply.json()["error"] == "'wide.trace' unpacks to more than 64 MiB, the most that a trace may take."


def test_a_million_modules_are_refused(client, trace_parts):
    header = dict(trace_parts[0], modules=trace_parts[0]["modules"] + [["a", "b", -1, -1, []]] * 400_000)
    assert "MiB in memory: at most 64 MiB are kept" in upload(client, "deep.trace", packed(header, trace_parts[1])).text


@pytest.mark.parametrize("where", ["name", "assumptions", "modules"])
def test_half_a_character_is_a_sentence(client, trace_parts, where):
    header = json.loads(json.dumps(trace_parts[0]))
    half = "half \ud800 a character"
    if where == "modules":
        header["modules"][0][0] = half
    else:
        header[where] = half if where == "name" else [half]
    reply = upload(client, "half.trace", packed(header, trace_parts[1]))
    assert reply.status_code == 422
    assert "damaged" in reply.json()["error"]


def test_dimensions_that_no_number_holds_are_a_sentence(client, trace_parts):
    n_dims = next(row[2] for row in trace_parts[0]["arrays"] if row[0] == "dim_slope")
    reply = upload(client, "huge.trace", with_array(trace_parts, "dim_slope", np.full(n_dims, 2**61)))
    assert reply.status_code == 422
    assert "dimensions" in reply.json()["error"]


_ODD = st.one_of(st.integers(-3, 8), st.sampled_from([100, 2**15, 2**31, 2**39, 2**40, 2**62, -(2**63)]))


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_trace_with_odd_numbers_is_read_or_refused_and_never_a_bug(trace_parts, worker, data):
    """Whatever is kept can be asked about: a reply, or a sentence."""
    name, _, count = data.draw(st.sampled_from([row for row in trace_parts[0]["arrays"] if row[2]]))
    values = array_of(trace_parts, name).astype("<i8")
    for place in data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3)):
        values[place] = data.draw(_ODD)
    content = with_array(trace_parts, name, values)
    batch_size = data.draw(st.sampled_from([1, 3, 1_048_576]))
    for what, on in (("forecast", ["T4"]), ("layers", "T4"), ("memory", "T4"), ("explain", "4xT4"), ("scale", "4xT4")):
        asked = {"model": f"upload-{zlib.crc32(content)}", "on": on, "batch_size": batch_size}
        kind, reply = worker.reply(json.dumps({"what": what, "asked": asked, "log_name": ""}).encode(), content, b"")
        assert kind in (b"answer", b"problem")
        assert kind == b"problem" or json.loads(reply)["title"]


def test_a_question_about_an_upload_has_a_time_limit_and_harms_nobody(trace_parts):
    """The worker is ended, the zoo is answered meanwhile, and the next question finds a new worker."""
    hasty = Limits(question_s=0.05)  # Python alone takes longer to start
    with TestClient(make_app(limits=hasty), base_url="http://localhost") as client:
        found = upload(client, "mine.trace", packed(*trace_parts)).json()
        question = {"model": found["id"], "on": ["T4"], "batch_size": 8}
        late = client.post("/api/forecast", json=question)
        zoo = client.post("/api/forecast", json={**question, "model": "mnist_cnn"})
    assert late.status_code == 422
    assert late.json()["error"] == "The answer took longer than the 0.05 s that one about an upload may take."
    assert zoo.status_code == 200


def test_the_worker_and_its_folder_end_with_the_server(trace_parts, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    upload_process = AnswerProcess(upload_limits(Limits()))
    asked = {"model": "upload-0", "on": ["T4"], "batch_size": 4}
    question = json.dumps({"what": "forecast", "asked": asked, "log_name": ""}).encode()
    assert b"mnist_cnn on T4" in upload_process.answer(question, packed(*trace_parts), b"")
    process = upload_process.start()
    assert (process.poll(), len(list(tmp_path.iterdir()))) == (None, 1)
    process.stdin.close()  # what a server leaves behind that has no time to say goodbye
    assert process.wait(timeout=20) == 0
    assert list(tmp_path.iterdir()) == []
    process = upload_process.start()
    del upload_process
    gc.collect()
    assert process.poll() is not None
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_is_too_large_is_not_sent(trace_parts):
    small = Limits(answer_bytes=1000)
    with TestClient(make_app(limits=small), base_url="http://localhost") as client:
        found = upload(client, "mine.trace", packed(*trace_parts)).json()
        reply = client.post("/api/layers", json={"model": found["id"], "batch_size": 8})
    assert reply.status_code == 422
    assert "larger than" in reply.json()["error"]


def test_uploads_are_kept_as_long_as_they_fit():
    stored = StoredUploads(most=3, most_bytes=100)
    keys = [stored.put("upload", Upload("a", bytes([number]) * 40)) for number in range(3)]
    assert stored.n_bytes == 80
    with pytest.raises(InputError, match="no longer available"):
        stored.find(keys[0])
    with pytest.raises(InputError, match="'b' is larger than"):
        stored.put("upload", Upload("b", bytes(101)))
    assert stored.find(keys[2]).content == b"\x02" * 40


def test_answers_are_kept_as_long_as_they_fit():
    kept = KeptAnswers(most=10, most_bytes=100)
    for number in range(8):
        kept.put(("forecast", str(number)), bytes(20))
    assert kept.n_bytes == 100
    kept.put(("forecast", "large"), bytes(90))  # it alone would push out all others
    assert kept.get(("forecast", "large")) is None
    assert kept.get(("forecast", "7")) == bytes(20)


def test_many_different_questions_leave_the_memory_of_the_server_flat(monkeypatch):
    """Bytes that Python and numpy hold, once everything that may be kept is full."""
    monkeypatch.setattr(LOWERED, "most_bytes", 2**18)
    monkeypatch.setattr(PLANS, "most_bytes", 2**18)
    optimizers = ("sgd", "momentum", "nesterov", "adagrad", "adadelta", "rmsprop", "adam", "adamw")
    devices = ("T4", "A10", "A100-SXM4-80GB", "RTX-3090", "V100-SXM2-16GB", "L4", "H100-SXM5-80GB", "generic-cpu")
    small = Limits(kept_answers=8)

    def ask(client, round_):
        for place, optimizer in enumerate(optimizers):
            for precision in ("fp32", "bf16"):
                question = {
                    "model": ("mnist_cnn", "alexnet")[round_ % 2],
                    "optimizer": optimizer,
                    "precision": precision,
                }
                where = devices[(place + round_) % len(devices)]
                reply = client.post("/api/forecast", json={**question, "on": [where], "batch_size": 8 + round_})
                assert reply.status_code == 200, reply.text
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    with TestClient(make_app(limits=small), base_url="http://localhost") as client:
        ask(client, 0)
        tracemalloc.start()
        try:
            held = [ask(client, round_) for round_ in range(1, 5)]
        finally:
            tracemalloc.stop()
    assert LOWERED.n_bytes <= LOWERED.most_bytes
    assert PLANS.n_bytes <= PLANS.most_bytes
    # Without limits each round would add about a MiB: 16 graphs with their tables and plans.
    assert max(held) - held[0] < 2**19
