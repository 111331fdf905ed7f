"""Broken off and gone on with: the same run, bit for bit; and files that are torn, foreign or hostile."""

import os
import pickle
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_runs import N_STEPS, SETTINGS, rows_of, tiny_data, tiny_net, tiny_run

from traincast.errors import FileFormatError, InputError
from traincast.recipes.engine.checkpoint import load_checkpoint, load_weights, save_checkpoint

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    net = tiny_net()
    tiny_run(folder, net=net)
    return rows_of(folder), net.state_dict()


def broken_off(folder, after_step):
    """Ctrl-C while that step is told."""

    def press(n_done, n_all):
        if n_done == after_step:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        tiny_run(folder, on_progress=press)


@pytest.mark.parametrize("step", [1, 3, N_STEPS, N_STEPS + 1, 2 * N_STEPS - 1])
def test_a_run_that_was_interrupted_goes_on_bit_for_bit(tmp_path, unbroken, step):
    broken_off(tmp_path, step)
    net = tiny_net()
    result = tiny_run(tmp_path, net=net)
    rows, weights = unbroken
    assert result.resumed_at_step == step
    assert rows_of(tmp_path) == rows
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, weights[name]), name


def test_a_run_may_be_interrupted_again_and_again(tmp_path, unbroken):
    for step in range(1, 15, 3):
        broken_off(tmp_path, step)
    tiny_run(tmp_path)
    assert rows_of(tmp_path) == unbroken[0]


def test_a_run_killed_after_its_last_step_only_tells_its_result(tmp_path):
    first = tiny_run(tmp_path)
    (tmp_path / "result.json").unlink()
    again = tiny_run(tmp_path)
    assert (again.resumed_at_step, again.test_accuracy, again.test_loss) == (15, first.test_accuracy, first.test_loss)


def test_the_clock_of_a_resumed_run_goes_on(tmp_path):
    broken_off(tmp_path, 7)
    spent_s = load_checkpoint(tmp_path / "checkpoint.pt")["spent_s"]
    assert tiny_run(tmp_path).train_s > spent_s["train"] > 0


def test_a_torn_log_row_and_half_a_checkpoint_do_not_matter(tmp_path, unbroken):
    broken_off(tmp_path, 7)
    with (tmp_path / "log.csv").open("ab") as file:
        file.write(b"2,8,1.5,0.5,0.05,1.0,,\n2,9,1.")
    (tmp_path / ".checkpoint.pt.tmp").write_bytes(b"PK\x03\x04half")
    tiny_run(tmp_path)
    assert rows_of(tmp_path) == unbroken[0]


def test_a_log_shorter_than_its_checkpoint_remembers_is_said(tmp_path):
    broken_off(tmp_path, 7)
    os.truncate(tmp_path / "log.csv", 60)
    with pytest.raises(FileFormatError, match="rows of the log are lost"):
        tiny_run(tmp_path)


def test_ctrl_c_is_as_before_after_a_run(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    broken_off(tmp_path, 2)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_in_another_thread_works_without_signals(tmp_path):
    done = []
    thread = threading.Thread(target=lambda: done.append(tiny_run(tmp_path)))
    thread.start()
    thread.join()
    assert done[0].n_steps == 15


CHILD = """
    import sys
    from pathlib import Path
    import torch
    sys.path.insert(0, sys.argv[2])
    from dataclasses import replace
    from tiny_runs import SETTINGS, tiny_run
    torch.set_num_threads(1)
    import time
    settings = replace(SETTINGS, checkpoint_s=0.0, optimizer=sys.argv[3])
    tiny_run(Path(sys.argv[1]), settings, on_progress=lambda *steps: time.sleep(0.05))
"""


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_a_run_killed_in_mid_epoch_goes_on_bit_for_bit(tmp_path, optimizer):
    settings = replace(SETTINGS, optimizer=optimizer)
    whole, net = tiny_net(), tiny_net()
    tiny_run(tmp_path / "unbroken", settings, net=whole)
    killed = tmp_path / "killed"
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(killed), str(Path(__file__).parent), optimizer]
    child = subprocess.Popen(command)
    log = killed / "log.csv"
    try:
        until_s = time.monotonic() + 60
        while not log.exists() or log.read_text().count("\n") < N_STEPS + 4:
            assert child.poll() is None
            assert time.monotonic() < until_s
            time.sleep(0.005)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    result = tiny_run(killed, settings, net=net)
    assert result.resumed_at_step is not None
    assert 0 < result.resumed_at_step % N_STEPS < N_STEPS
    assert rows_of(killed) == rows_of(tmp_path / "unbroken")
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, whole.state_dict()[name]), name


def test_a_long_epoch_has_checkpoints_in_its_middle_as_often_as_asked_for(tmp_path):
    seen = {}
    for seconds in (0.0, 30.0):
        told, folder = [], tmp_path / f"{seconds}"
        tiny_run(
            folder,
            replace(SETTINGS, checkpoint_s=seconds),
            on_progress=lambda *steps, told=told, folder=folder: told.append((folder / "checkpoint.pt").exists()),
        )
        seen[seconds] = told
    assert seen[0.0][:2] == [False, True]
    assert not any(seen[30.0])
    assert rows_of(tmp_path / "0.0") == rows_of(tmp_path / "30.0")
    tiny_run(tmp_path / "0.0", replace(SETTINGS, checkpoint_s=30.0))  # it is the same run


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_a_truncated_checkpoint_is_said_in_one_sentence(tmp_path, share):
    broken_off(tmp_path, 7)
    path = tmp_path / "checkpoint.pt"
    os.truncate(path, int(share * path.stat().st_size))
    with pytest.raises(FileFormatError) as caught:
        tiny_run(tmp_path)
    assert f"'{path}' is not a" in str(caught.value)


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_file_with_code_in_it_is_never_run(tmp_path):
    exploded = tmp_path / "exploded"
    for name in ("zip.pt", "bare.pt"):
        torch.save({"module": Bomb(exploded)}, tmp_path / name, _use_new_zipfile_serialization=name == "zip.pt")
    (tmp_path / "pickle.pt").write_bytes(pickle.dumps(Bomb(exploded)))
    for name, words in (("zip", "more than tensors"), ("bare", "does not begin"), ("pickle", "does not begin")):
        with pytest.raises(FileFormatError, match=words):
            load_checkpoint(tmp_path / f"{name}.pt")
    assert not exploded.exists()


def test_foreign_files_are_said_in_one_sentence(tmp_path):
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as file:
        file.writestr("a.txt", "a")
    torch.save(tiny_net().state_dict(), tmp_path / "weights.pt")
    torch.save({"format": "traincast checkpoint", "version": 99, "module": {}}, tmp_path / "newer.pt")
    (tmp_path / "text.pt").write_text("hello")
    for name, words in {
        "some.zip": "not a whole checkpoint",
        "weights.pt": "is not a checkpoint of a traincast run",
        "newer.pt": "of version 99",
        "text.pt": "does not begin",
    }.items():
        with pytest.raises(FileFormatError, match=words):
            load_checkpoint(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_checkpoint(tmp_path / "nothing.pt")


def test_a_checkpoint_of_another_pickle_protocol_is_said_without_advice_of_torch(tmp_path):
    torch.save({"module": {"weight": torch.ones(2)}}, tmp_path / "checkpoint.pt", pickle_protocol=4)
    with warnings.catch_warnings(record=True) as shown, pytest.raises(FileFormatError, match="not a whole checkpoint"):
        load_checkpoint(tmp_path / "checkpoint.pt")
    assert not shown


def test_a_checkpoint_of_another_architecture_is_said_in_one_sentence(tmp_path):
    tiny_run(tmp_path)
    with pytest.raises(FileFormatError, match=r"another architecture than Sequential: 7 of its 9 tensors do not fit"):
        load_weights(tiny_net(width=5), tmp_path / "checkpoint.pt")


def test_the_checkpoint_of_another_run_is_not_gone_on_with(tmp_path):
    broken_off(tmp_path / "a", 7)
    tiny_run(tmp_path / "b", data=tiny_data(n_train=30))
    (tmp_path / "b" / "checkpoint.pt").rename(tmp_path / "a" / "checkpoint.pt")
    with pytest.raises(FileFormatError, match="is the checkpoint of another run"):
        tiny_run(tmp_path / "a")


def test_a_checkpoint_without_its_settings_is_not_taken_over(tmp_path):
    broken_off(tmp_path, 7)
    (tmp_path / "settings.json").unlink()
    with pytest.raises(InputError, match=r"has no settings.json beside its checkpoint"):
        tiny_run(tmp_path)


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        tiny_run(tmp_path / "file" / "run")
    with pytest.raises(InputError, match="cannot be written"):
        save_checkpoint(tmp_path / "nowhere" / "checkpoint.pt", {"module": {}})


def test_a_disk_that_fills_up_keeps_the_checkpoint_before_and_the_run_goes_on(tmp_path, unbroken):
    """Files may grow no larger than so much, as on a full disk: the system refuses the rest of a write."""
    broken_off(tmp_path, 7)
    before = (tmp_path / "checkpoint.pt").read_bytes()
    usual, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) - 2000, hard))
    try:
        with pytest.raises(InputError) as refused:
            tiny_run(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, hard))
    path = tmp_path / "checkpoint.pt"
    stays = "the previous one is kept, and the same command continues from it"
    assert str(refused.value) == f"The checkpoint '{path}' cannot be written: File too large; {stays}."
    assert path.read_bytes() == before
    net = tiny_net()
    assert tiny_run(tmp_path, net=net).resumed_at_step == 7
    assert rows_of(tmp_path) == unbroken[0]


def test_a_checkpoint_that_lacks_something_is_said_in_one_sentence(tmp_path):
    broken_off(tmp_path, 7)
    path = tmp_path / "checkpoint.pt"
    for name in ("name", "optimizer", "n_log_bytes"):
        whole = load_checkpoint(path)
        save_checkpoint(tmp_path / "checkpoint.pt", {key: value for key, value in whole.items() if key != name})
        with pytest.raises(FileFormatError, match="is not a checkpoint of this run: delete the folder"):
            tiny_run(tmp_path)
        save_checkpoint(path, whole)
