"""A user's own file gives a training step, or a message that names the file, the line and what is wrong."""

import subprocess
import sys
import textwrap

import pytest
from step_on_meta import run_on_meta

from traincast.errors import CaptureError, InputError, MissingExtraError, UnknownModelError
from traincast.frontend.python_file import read_factory

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layer = nn.Linear(width, 4)
    def forward(self, x):
        return self.layer(x)

def example(batch_size):
    return torch.zeros(batch_size, 8)
"""


@pytest.fixture
def write(tmp_path):
    def to_file(body, name="mine.py"):
        path = tmp_path / name
        path.write_text(NET + textwrap.dedent(body))
        return path

    return to_file


@pytest.mark.parametrize(
    "body",
    [
        "from traincast.frontend.step import TrainingStep\n"
        "def make(): return TrainingStep(name='net', module=Net(), example=example)",
        "def make(): return Net(), example",
        "def make(): return Net(), example, lambda output, inputs: (output ** 2).mean()",
        "def make(): return Net(), torch.zeros(7, 8)",
        "class make(Net):\n    def example_inputs(self, batch_size): return example(batch_size)",
        "class make(Net):\n    example_inputs = torch.zeros(7, 8)",
    ],
)
def test_every_shape_of_answer_becomes_a_step_that_trains(write, body):
    step = read_factory(f"{write(body)}:make")
    assert step.example(3).shape == (3, 8)
    assert run_on_meta(step, 3).flop == 2 * (2 * 3 * 8 * 4)


def test_options_reach_the_factory_and_a_loss_is_kept(write):
    path = write(
        """
        def make(n_classes, depth=1):
            return Net(8), example, lambda output, inputs: output.sum() * n_classes * depth
        """
    )
    step = read_factory(f"{path}:make", n_classes=10)
    assert step.name == "mine:make"
    assert run_on_meta(step, 2).loss.shape == ()
    with pytest.raises(InputError, match=r"make\(\) of .* cannot be called with width=3: missing a required argument"):
        read_factory(f"{path}:make", width=3)


def test_the_file_can_import_its_neighbours_and_the_path_is_left_alone(write, tmp_path):
    (tmp_path / "neighbour_of_mine.py").write_text("WIDTH = 8")
    path = write("from neighbour_of_mine import WIDTH\ndef make(): return Net(WIDTH), example")
    before = list(sys.path)
    assert read_factory(f"{path}:make").example(2).shape == (2, 8)
    assert sys.path == before


@pytest.mark.parametrize("spec", ["nothing", "model.py", "model.py:", ":make", "model.py:two words"])
def test_what_names_no_factory_is_told_how_to_write_it(spec):
    with pytest.raises(InputError, match=r"file\.py:factory"):
        read_factory(spec)


def test_a_missing_file_and_a_missing_factory_are_named(write, tmp_path):
    with pytest.raises(UnknownModelError, match=r"There is no file .*absent\.py"):
        read_factory(f"{tmp_path / 'absent.py'}:make")
    path = write("def make_net(): ...\nlimit = 3")
    with pytest.raises(
        InputError, match=r"no factory 'make_nett'.*it has Net, example, make_net\. Close names: make_net"
    ):
        read_factory(f"{path}:make_nett")
    with pytest.raises(InputError, match="limit is not callable"):
        read_factory(f"{path}:limit")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("def make(): return 3", "returned a int; it must return a TrainingStep"),
        ("def make(): pass", "returned nothing; it must return"),
        ("def make(): return Net()", "returned a Net without example_inputs"),
        ("def make(): return Net(), example, None, 4", "returned a tuple of 4"),
        ("def make(): return example, Net()", "returned a function for a torch module"),
        ("def make(): return Net(), example, 'mse'", "returned a str for a loss"),
        ("def make(): return Net(), 'images'", "example holds no tensor"),
    ],
)
def test_a_wrong_answer_says_what_came_and_what_is_wanted(write, body, says):
    with pytest.raises(InputError, match=says):
        read_factory(f"{write(body)}:make")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "def make():\n    raise OSError('no such disk')",
            r"mine\.py, line 15: make\(\) raised OSError: no such disk\.",
        ),
        ("def make():\n    return Net(None), example", r"line 8: make\(\) raised TypeError"),
        ("import not_installed_anywhere", r"line 14: running the file raised ModuleNotFoundError"),
        ("1 / 0", r"line 14: running the file raised ZeroDivisionError: division by zero\."),
    ],
)
def test_an_error_in_the_file_is_told_in_one_line_with_its_place(write, body, says):
    with pytest.raises(CaptureError, match=says) as raised:
        read_factory(f"{write(body)}:make")
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is not None


def test_a_file_that_imports_torch_where_there_is_none_is_told_the_extra(write, monkeypatch):
    path = write("def make():\n    return Net(), example")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingExtraError, match=r"mine\.py, line 2: importing torch needs the 'torch' extra: pip install"
    ):
        read_factory(f"{path}:make")


def test_a_syntax_error_is_the_files_mistake(write):
    with pytest.raises(InputError, match=r"mine\.py, line 14: .*\(SyntaxError\)\."):
        read_factory(f"{write('def make(:')}:make")


def test_a_file_without_torch_does_not_load_torch(tmp_path):
    (tmp_path / "plain.py").write_text("def make(): return 3")
    code = (
        "import sys\nfrom traincast.errors import InputError\n"
        "from traincast.frontend.python_file import read_factory\n"
        f"try: read_factory({str(tmp_path / 'plain.py')!r} + ':make')\n"
        "except InputError: print('torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
