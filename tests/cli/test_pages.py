"""The page of each command: charts with points, tables with rows, what is assumed, and how to make it again."""

import pytest
from pages import read_page

from traincast.__main__ import run
from traincast.records.environment import Environment
from traincast.records.record import Record
from traincast.records.store import Store

HERE = Environment(device="Test CPU", device_kind="cpu", host="h", n_threads=1, n_cores=1, versions={}, clocks={})
LOG = "step,train_loss,seconds\n" + "".join(f"{n},{1 + 4 * n**-0.5:.4f},{n / 2}\n" for n in range(10, 401, 10))
JOBS = "name,submit_s,seconds,n_devices\na,0,100,1\nb,10,50,2\n"
RUNS = "model,depth,b0,b1,b2\n" + "".join(f"net{n},{n},{1e-4 * n},0.6,0.02\n" for n in (10, 16, 24, 32))


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "home"))
    for name, content in {"run.csv": LOG, "jobs.csv": JOBS, "runs.csv": RUNS}.items():
        (tmp_path / name).write_text(content)
    with Store(tmp_path / "a.db") as store:
        store.add_all(records())


def records():
    """Products, what has no flop, one that failed, and steps of a model."""
    for n in range(1, 4):
        yield record("op", {"op": "linear", "m": n}, {"median_s": 1e-3 * n, "flop": 1e6 * n, "bytes": 1e3 * n})
        yield record("op", {"op": "add", "rows": n}, {"median_s": 1e-5 * n, "flop": 0.0, "bytes": 1e3 * n})
        task = {"model": "mnist_cnn", "batch_size": 2**n}
        yield record("step", task, {**task, "step_s": 0.01 * n})
    yield record("op", {"op": "linear", "m": 9}, {"error": "It rained."})


def record(kind, task, values):
    return Record(kind=kind, task=task, values=values, environment=HERE, created_s=1e9)


def page_of(line, tmp_path):
    assert run([*line.split(), "--html", "page.html"]) == 0
    page = read_page(tmp_path / "page.html")
    assert page.provenance.endswith(f"traincast {line} --html page.html")
    return page


@pytest.mark.parametrize(
    ("line", "titles"),
    [
        ("forecast mnist_cnn --on T4 --batch 8 --samples 1000", None),
        ("scale mnist_cnn --on T4 --gpus 1,2 --batch 8", None),
        ("plan mnist_cnn --samples 1000 --provider Lambda --method roofline", None),
        ("layers mnist_cnn --batch 8", None),
        ("memory mnist_cnn --batch 8 --on T4", None),
        ("explain mnist_cnn --on T4 --batch 8", None),
        ("models vgg", ["Size and work of the models"]),
        ("devices v100", ["Compute and memory"]),
        ("devices --machines p3", ["Price and compute of machines"]),
        (
            "records a.db",
            [
                "Time by work: linear",
                "Time by bytes, of what has no flop: elementwise",
                "Steps of models: mnist_cnn on Test CPU",
                "Records by kind and campaign",
            ],
        ),
        ("converge run.csv --target 1.1", None),
        ("watch run.csv --once --total-steps 1000", None),
        ("transfer runs.csv --predict depth=20 --total-steps 1000", None),
        ("simulate jobs.csv --cluster 1x2xT4 --policy fifo,srtf", None),
    ],
)
def test_a_page_has_charts_tables_assumptions_and_its_command(line, titles, tmp_path):
    page = page_of(line, tmp_path)
    assert page.figures
    assert titles is None or list(page.figures) == titles
    for title in page.figures:
        assert page.n_points(title) > 0
    assert all(row for table in page.tables for row in table)
    assert page.tables
    assert page.notes


@pytest.mark.parametrize(
    "line",
    ["scale mnist_cnn --on T4 --gpus 1,2 --batch 8 --input-samples-per-s 5000", "explain mnist_cnn --on T4 --batch 8"],
)
def test_pages_of_steps_say_what_their_times_rest_on(line, tmp_path):
    notes = page_of(line, tmp_path).notes
    loader = "delivers 5,000 samples per second" if "5000" in line else "keeps up with the step"
    for words in ("p10-p90 covers", "Ops are dispatched one at a time", loader):
        assert any(words in note for note in notes)


def test_records_that_failed_are_counted_and_not_drawn(tmp_path):
    page = page_of("records a.db --kind op", tmp_path)
    assert page.n_points("Time by work: linear") == 3
    measured, failed = page.figures["Records by kind and campaign"]["data"]
    assert (measured["y"], failed["y"]) == ([6], [1])


def test_a_store_without_a_matching_record_has_a_page_and_no_chart(tmp_path):
    assert page_of("records a.db --kind nothing", tmp_path).figures == {}


def test_layers_that_were_timed_here_stand_beside_what_is_predicted_for_them(tmp_path, monkeypatch):
    import traincast.microbenchmarks.layer_bench as layers

    def run_layer(settings):
        return {"step_s": 1e-3, "flop": 0.0 if settings["layer"] == "pool" else 1e6, "bytes": 1e3}

    monkeypatch.setattr(layers, "run_layer", run_layer)
    page = page_of("bench layers --rows 8 --store b.db", tmp_path)
    predicted = page.figures["Layers: predicted and measured"]
    assert [trace["name"] for trace in predicted["data"]] == ["dense", "conv", "lstm"]
    assert predicted["layout"]["shapes"]  # the diagonal
    assert page.n_points("Time by work") == 6
    assert page.n_points("Time by bytes, of what has no flop: pool") == 2
    assert [row[0] for row in page.tables[1]] == ["dense", "conv", "lstm"]
    assert any("This machine was not calibrated" in note for note in page.notes)


def test_ops_that_were_timed_are_drawn_by_their_work(tmp_path, monkeypatch):
    import traincast.microbenchmarks.op_bench as ops

    monkeypatch.setattr(ops, "run_op", lambda settings: {"median_s": 1e-3, "flop": 1e6, "bytes": 1e3})
    page = page_of("bench ops --rows 6 --store b.db", tmp_path)
    assert page.n_points("Time by work") == 6
    assert page.notes
