"""One made-up line of a run file: Llama 3 8B on eight A100."""

import json

import pytest

LLAMA = {
    "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256, "gated_mlp": True,
    "norm": "rmsnorm", "pos": "rope", "tied_embeddings": False,
}  # fmt: skip
COLUMNS = (  # noqa: SIM905 - one a line would fill the page
    "source ref device n_gpus n_nodes interconnect model model_settings n_parameters precision seqlen global_batch"
    " micro_batch grad_accum activation_checkpointing compiled attention sharding optimizer finetuning"
    " tokens_per_s_per_gpu step_ms peak_memory_GB framework date flag note grade"
).split()


def make_line(**changes):
    usual = {
        "source": "made up", "device": "A100-SXM4-80GB", "n_gpus": "8", "model": "llama", "precision": "bf16",
        "model_settings": json.dumps(LLAMA), "seqlen": "2048", "global_batch": "64", "micro_batch": "2",
        "activation_checkpointing": "none", "compiled": "0", "attention": "flash", "sharding": "fsdp=zero3",
        "finetuning": "pretrain", "step_ms": "4000", "grade": "A",
    }  # fmt: skip
    return dict.fromkeys(COLUMNS, "") | usual | changes


@pytest.fixture
def line():
    """Makes a line with some cells changed."""
    return make_line


@pytest.fixture
def llama():
    return dict(LLAMA)
