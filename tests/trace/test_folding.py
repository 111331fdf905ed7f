"""A model that is stored with three of its blocks is the same step as one that is captured with all of them."""

from collections.abc import Sequence
from functools import cache

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import traincast as tc
from traincast.errors import CaptureError
from traincast.frontend.capturing.capture import capture_step
from traincast.frontend.capturing.fold import capture_folded
from traincast.frontend.models.llama import Llama, LlamaSizes
from traincast.frontend.models.training_step import next_token_loss
from traincast.frontend.step import TrainingStep
from traincast.trace.folding.file import folded_bytes, parse_folded
from traincast.trace.folding.folded import FoldedTrace, fold_of
from traincast.trace.folding.same import differences
from traincast.trace.folding.units import Stack
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.trace import Trace

BLOCKS = [Stack("model.layers")]
TALKERS = [Stack("encoder"), Stack("decoder", period=2)]


class Block(nn.Module):
    """Attention to itself or to a memory, and a feed-forward part."""

    def __init__(self, width: int, n_wide: int) -> None:
        super().__init__()
        self.query, self.key, self.out = (nn.Linear(width, width) for _ in range(3))
        self.up, self.down = nn.Linear(width, n_wide), nn.Linear(n_wide, width)

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        query, key = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in (self.query(x), self.key(memory)))
        x = x + self.out(scaled_dot_product_attention(query, key, key).transpose(1, 2).flatten(2))
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Talker(nn.Module):
    """An encoder of equal blocks and a decoder whose blocks alternate between two widths, on one table of words."""

    def __init__(self, n_encoder: int, n_decoder: int) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.encoder = nn.ModuleList(Block(16, 24) for _ in range(n_encoder))
        self.decoder = nn.ModuleList(Block(16, 24 + 16 * (number % 2)) for number in range(n_decoder))
        self.norm = nn.LayerNorm(16)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        memory = x = self.words(ids)
        for block in self.encoder:
            memory = block(memory, memory)
        for block in self.decoder:
            x = block(x, memory)
        return self.norm(x) @ self.words.weight.T


def llama(units: Sequence[int], length: int) -> TrainingStep:
    sizes = LlamaSizes(hidden=32, n_layers=units[0], n_heads=4, n_kv_heads=2, feed_forward=48, vocabulary=64)
    return _step(Llama(sizes), length)


def talker(units: Sequence[int], length: int) -> TrainingStep:
    return _step(Talker(units[0], 2 * units[1]), length)


def _step(module: nn.Module, length: int) -> TrainingStep:
    def example(batch: int) -> tuple[torch.Tensor]:
        return (torch.zeros(batch, length, dtype=torch.long),)

    return TrainingStep(module=module, example=example, loss=next_token_loss, name="model")


@cache
def folded_llama() -> FoldedTrace:
    return capture_folded(llama, BLOCKS, [7])


@cache
def folded_talker() -> FoldedTrace:
    return capture_folded(talker, TALKERS, [5, 4])


@cache
def whole_llama(length: int = 33) -> Trace:
    return capture_step(llama([7], length))


@cache
def whole_talker() -> Trace:
    return capture_step(talker([5, 4], 33))


CASES = [(folded_llama, whole_llama), (folded_talker, whole_talker)]


@pytest.mark.parametrize(("folded", "whole"), CASES)
def test_all_blocks_at_a_new_length_are_the_step_that_a_capture_sees(folded, whole):
    made, wanted = folded().at(33), whole()
    assert differences(made.graph, wanted.graph) == []
    assert [(m.path, m.kind, m.parameters) for m in made.modules] == [
        (m.path, m.kind, m.parameters) for m in wanted.modules
    ]
    assert [(p.name, p.tensor, p.gradient) for p in made.parameters] == [
        (p.name, p.tensor, p.gradient) for p in wanted.parameters
    ]
    assert {tuple(row) for row in made.gradient_of.tolist()} == {tuple(row) for row in wanted.gradient_of.tolist()}
    assert made.op_call.tolist() == wanted.op_call.tolist()
    assert made.call_functions == wanted.call_functions
    assert made.n_parameters == wanted.n_parameters
    assert made.tokens_per_sample == 33


@pytest.mark.parametrize("length", [3, 5, 17, 64])
def test_the_length_may_be_any(length):
    assert differences(folded_llama().at(length).graph, whole_llama(length).graph) == []


def test_attention_is_quadratic_in_the_length_and_the_rest_linear():
    flop = [folded_llama().at(length).forward_flop(1) for length in (100, 200, 400)]
    square = (flop[2] - 2 * flop[1]) / (2 * 200 * 200)
    assert square == pytest.approx(7 * 2 * 2 * 32)  # layers x (scores and values) x multiply-add x width
    assert flop[1] - 2 * flop[0] == pytest.approx(square * 2 * 100 * 100, rel=1e-3)


@pytest.mark.parametrize("target", ["cuda", "cpu"])
@pytest.mark.parametrize("precision", ["fp32", "amp-bf16", "bf16"])
@pytest.mark.parametrize("optimizer", ["none", "sgd", "adamw", "adagrad"])
@pytest.mark.parametrize(("folded", "whole"), CASES)
def test_lowering_three_blocks_is_lowering_all_of_them(folded, whole, target, precision, optimizer):
    settings = Settings(precision, optimizer)
    trace = folded().at(33)
    found, length = fold_of(trace)
    assert length == 33
    assert found.lowered(33, (target, precision, optimizer), lambda part: lower(part, target=target, settings=settings))
    made = lower(trace, target=target, settings=settings)
    assert differences(made, lower(whole(), target=target, settings=settings)) == []


@pytest.mark.parametrize(("folded", "whole"), CASES)
@pytest.mark.parametrize("method", ["traincast", "roofline", "paleo"])
def test_a_forecast_does_not_know_how_the_trace_was_made(folded, whole, method):
    options = {"on": "8xA100-SXM4-80GB", "batch_size": 24, "optimizer": "adamw", "precision": "amp-bf16"}
    made, wanted = (tc.forecast(trace, method=method, **options) for trace in (folded().at(33), whole()))
    assert made.to_dict() == wanted.to_dict()


def test_a_compiled_step_of_repeated_blocks_is_compiled_like_any_other():
    made, wanted = (
        tc.forecast(trace, on="T4", batch_size=8, compiled=True) for trace in (folded_llama().at(33), whole_llama())
    )
    assert made.to_dict() == wanted.to_dict()


def test_a_folded_trace_is_small_and_comes_back_from_its_file():
    content = folded_bytes(folded_llama())
    back = parse_folded(content, where="a test")
    assert len(content) < 16_000
    assert differences(back.at(33).graph, whole_llama().graph) == []
    assert back.at(33).n_parameters == whole_llama().n_parameters


def test_a_change_of_each_block_is_made_on_three_of_them():
    def frozen(trace: Trace) -> Trace:
        from dataclasses import replace

        return replace(trace, name="frozen")

    changed = folded_llama().changed(frozen)
    assert differences(changed.at(33).graph, whole_llama().graph) == []
    assert changed.at(33).name == "frozen"


def test_blocks_that_are_not_alike_are_refused():
    def uneven(units: Sequence[int], length: int) -> TrainingStep:
        return _step(Talker(3, units[0]), length)

    with pytest.raises(CaptureError, match="cannot be folded"):
        capture_folded(uneven, [Stack("decoder")], [8])
