"""Whatever is in a file: a log with the promised shape, or an error that says why not."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import traincast as tc
from traincast.errors import TraincastError

cells = st.sampled_from(
    ["", "0", "1", "2", "3", "7", "0.5", "-1.5", "1e-5", "nan", "inf", "x", "12:30", '"', "2024-01-01 10:00:00"]
)
headers = st.lists(
    st.sampled_from(
        [
            "step",
            "epoch",
            "loss",
            "acc",
            "val_loss",
            "lr",
            "seconds",
            "time",
            "phase",
            "note",
            "batch",
            "_step",
            "l2",
            "top5",
            "lr0",
        ]
    ),
    min_size=1,
    max_size=6,
)
tables = st.tuples(headers, st.lists(st.lists(cells, min_size=1, max_size=7), max_size=30)).map(
    lambda table: "\n".join([",".join(table[0]), *(",".join(row) for row in table[1])]).encode()
)
words = st.sampled_from(
    [
        "Epoch",
        "step",
        "loss",
        "acc",
        "val",
        "train",
        ":",
        "=",
        "1",
        "2/3",
        "0.5",
        "[",
        "]",
        "%",
        "nan",
        "\n",
        "{",
        '"',
        ":::MLL",
        "|",
        "ms",
        "best",
        "Eval",
        "Epoch(val)",
        "Iter(train)",
        "loss train:",
        "value",
        "[1, 2]",
        "2024/01/02 10:00:00",
        "\nTest Error:\n",
        "\0",
    ]
)
texts = st.lists(words, max_size=60).map(lambda some: " ".join(some).encode())


def check(log):
    for one in (*log.series, *([log.learning_rate] if log.learning_rate else [])):
        assert len(one) > 0
        assert np.isfinite(one.steps).all()
        assert (np.diff(one.steps) > 0).all()
        assert np.isfinite(one.values).all()
        assert len(one.values) == len(one.steps)
        assert one.epochs is None or len(one.epochs) == len(one)
        if one.seconds is not None:
            known = one.seconds[~np.isnan(one.seconds)]
            assert (np.diff(known) >= 0).all()
            assert len(one.seconds) == len(one)
        assert one.split in ("train", "validation", "test")
        assert one.kind in ("point", "epoch_mean", "running_mean")


@settings(max_examples=300)
@given(content=st.one_of(tables, texts, st.binary(max_size=300)))
def test_any_file_is_a_log_or_is_refused_in_words(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.log"
    path.write_bytes(content)
    log = refused = None
    try:
        log = tc.read_log(path)
    except TraincastError as error:
        refused = error
    if log is None:
        assert str(refused).endswith(".")
    else:
        check(log)
