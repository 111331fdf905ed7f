"""Tiny blocks of lone ops and whole steps on a few GPUs, so that no test needs the public measurements."""

import numpy as np
import pytest

from traincast.kernels.coefficients import shipped
from traincast.kernels.kernels_of import SIZES
from traincast.kernels.refit.block import Block, Kernels
from traincast.kernels.work import Work


def make_block(name, devices, families=None, *, n_sizes=3, factor=1.0, **changes):
    """One elementwise kernel a row; every device (and family) at several sizes, measured as we predict them."""
    families = families or [None]
    rows = [(d, f, 10.0 ** (6 + i)) for d in devices for f in families for i in range(n_sizes)]
    n = len(rows)
    known = tuple(sorted(set(devices)))
    ones = np.ones(n)
    sizes = {key: ones for key in SIZES} | {"bytes": np.array([row[2] for row in rows]), "flop": 1e3 * ones}
    flags = {
        key: np.zeros(n, dtype=bool) for key in Kernels.__dataclass_fields__ if key not in ("work", "item", "sizes")
    }
    tags = {"device": np.array([row[0] for row in rows]), "op": np.full(n, "add"), "dims": np.full(n, "random")}
    if families != [None]:
        tags = {
            "device": tags["device"],
            "family": np.array([row[1] for row in rows]),
            "batch": np.full(n, "8"),
            "samples_per_s": np.full(n, "100"),
            "spread": np.full(n, ""),
        }
        changes.setdefault("n_dispatched", np.zeros(n))
    else:
        tags["is_floor"] = np.zeros(n, dtype=bool)
    block = Block(
        name=name,
        kernels=Kernels(work=np.full(n, Work.ELEMENTWISE), item=np.full(n, 4), sizes=sizes, **flags),
        row=np.arange(n),
        count=ones,
        device=np.searchsorted(known, tags["device"]),
        devices=known,
        observed_s=ones,
        floor_s=np.zeros(n),
        tags=tags,
        **changes,
    )
    return with_observed(block, factor * block.predict(shipped().coefficients))


def with_observed(block, observed_s):
    from dataclasses import replace

    return replace(block, observed_s=observed_s)


@pytest.fixture
def ops():
    return make_block("elementwise", ["T4", "V100-PCIe-32GB", "V100-SXM2-16GB", "A10"])


@pytest.fixture
def steps():
    return make_block("nvidia examples fp32", ["T4", "V100-SXM2-16GB", "A10"], ["resnet50", "bert_base_squad"])


@pytest.fixture
def build():
    """Makes a block of any name, devices and families."""
    return make_block
