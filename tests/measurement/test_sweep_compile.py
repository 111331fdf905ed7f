"""Eager against torch.compile, for real: with a compiler and without one."""

import pytest
import torch
import torch._inductor.config as inductor
from torch import nn

from sweep_samples import runnable
from traincast.measurement.sweeps.compiling import sweep_compile

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own, in its compiler


def linear():
    return runnable(nn.Linear(4, 2), lambda batch_size: (torch.zeros(batch_size, 4),))


def test_compiling_is_told_apart_from_the_steps_that_follow():
    sweep = sweep_compile(linear(), batch_size=4, n_steps=2)
    eager, compiled = sweep.rows
    if compiled.reason:
        pytest.skip(f"no compiler here: {compiled.reason}")
    assert eager.compile_s is None
    assert compiled.measurement.compiled
    assert compiled.compile_s > 10 * compiled.measurement.step_s
    assert "Compiling took" in sweep.verdict


def test_without_a_compiler_the_row_says_so_and_eager_is_measured():
    with inductor.patch({"cpp.cxx": (None, "/no/such/compiler")}):
        sweep = sweep_compile(linear(), batch_size=4, n_steps=2)
    assert [row.label for row in sweep.measured] == ["eager"]
    assert "/no/such/compiler" in sweep.rows[1].reason
