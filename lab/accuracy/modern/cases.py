"""Which rows of today's GPUs are judged, what is left out for them, and what was promised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lab.accuracy.modern.left_out import Case, LeftOut
from traincast.hardware.catalog import find_device
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.model_rows import OLDER_EXAMPLES
from traincast.validation.errors import Rows
from traincast.validation.splits import units_of

A100, H100 = "A100-SXM4-80GB", "H100-SXM5-80GB"
_LANGUAGE = "language models"
_SMALL, _LARGE = ("mpt-125m", "mpt-350m", "mpt-760m"), ("mpt-1b", "mpt-3b", "mpt-7b")
_SIZES = {"125M to 760M": _SMALL, "1B to 7B": _LARGE}
_LENGTHS = {
    "to 1,024 tokens": (0, 1024),
    "2,048 to 8,192 tokens": (2048, 8192),
    "16,384 tokens and more": (16384, 2**60),
}
# What the byte movers of language models are called; their blocks join the others when the fit takes them in.
_BYTES = "language kernels"


@dataclass(frozen=True, eq=False, slots=True)
class Rooms:
    """All blocks by name, fitted or only scored, and what is known of repeats by kind of measurement."""

    blocks: Mapping[str, Block]
    noise: Mapping[str, str] = field(default_factory=dict)

    def named(self, *starts: str) -> list[Block]:
        return [block for name, block in self.blocks.items() if name.startswith(starts)]

    def noise_of(self, kind: str) -> str:
        return self.noise.get(kind, "-")


def cases_of(rooms: Rooms) -> list[Case]:
    return [
        *language_cases(rooms),
        *product_cases(rooms),
        *attention_cases(rooms),
        *byte_cases(rooms),
        *image_cases(rooms),
        *example_cases(rooms),
        *amd_cases(rooms),
    ]


def on_devices(block: Block, *starts: str) -> Block:
    return block.take(np.array([str(name).startswith(starts) for name in block.tags["device"]], dtype=bool))


def with_tag(block: Block, tag: str, *values: str) -> Block:
    return block.take(np.isin(block.tags[tag].astype(str), values))


def _kept(blocks: Sequence[Block]) -> tuple[Block, ...]:
    return tuple(block for block in blocks if block.n_rows)


def language_cases(rooms: Rooms) -> Iterator[Case]:
    """Kernels only: communication, which NVLink hides, is no part of these forecasts."""
    blocks = rooms.named(_LANGUAGE)
    for gpu, device, median in (("A100", A100, 0.06), ("H100", H100, 0.08)):
        own = _kept([with_tag(on_devices(block, device), "recompute", "none") for block in blocks])
        others = _kept([with_tag(_off(block, device), "recompute", "none") for block in blocks])
        base = Case(
            what=f"language models, bf16, {gpu}",
            blocks=own,
            left_out="source",
            kin=others,
            noise=rooms.noise_of(f"language {device}"),
            limits={"median": median, "mean": 0.10},
        )
        yield base
        for label, names in _SIZES.items():
            yield _part(base, label, [np.isin(block.tags["family"], names) for block in own])
        for label, (low, high) in _LENGTHS.items():
            yield _part(base, label, [(b.tags["seqlen"] >= low) & (b.tags["seqlen"] <= high) for b in own])
        again = _kept([with_tag(on_devices(block, device), "recompute", "full") for block in blocks])
        kin = _kept([with_tag(_off(block, device), "recompute", "full") for block in blocks])
        yield replace(base, what=f"{base.what}, recomputed", blocks=again, kin=kin, limits={})
        generation = find_device(device).arch
        limits = {"median": 0.12} if gpu == "H100" else {}
        yield replace(base, left_out="generation", told=f"all {generation}", limits=limits)


def _off(block: Block, device: str) -> Block:
    return block.take(block.tags["device"] != device)


def _part(case: Case, label: str, rows: Sequence[Rows]) -> Case:
    """Some rows of a case, reported. Constants are those of its own rows."""
    taken = _kept([block.take(chosen) for block, chosen in zip(case.blocks, rows, strict=True)])
    return replace(case, what=f"{case.what}, {label}", blocks=taken, limits={})


def product_cases(rooms: Rooms) -> Iterator[Case]:
    """Of more than 2^32 multiply-adds; smaller ones are no part of these blocks."""
    products = rooms.named("products ", "product ceilings")
    lines: tuple[tuple[str, str, str, LeftOut, dict[str, float]], ...] = (
        ("products, bf16, H100", f"products {H100}", "all Hopper", "generation", {"median": 0.15}),
        ("products, fp8, B200", "products B200", "all Blackwell", "generation", {"median": 0.15}),
        ("products, fp8, H800 (DeepGEMM)", "products fp8 H800", "source", "nothing", {}),
        ("products, fp8, H800 (DeepGEMM)", "products fp8 H800", "all Hopper", "generation", {}),
        ("grouped products, bf16, B200", "grouped products B200", "all Blackwell", "generation", {}),
        ("grouped products, bf16, B200", "grouped products B200", "source", "nothing", {}),
    )  # no fit takes in the sources of the last four
    for what, name, told, left_out, limits in lines:
        for block in rooms.named(name):
            kin = tuple(each for each in products if each.name != name)
            noise = rooms.noise_of(name)
            yield Case(what=what, blocks=(block,), left_out=left_out, told=told, kin=kin, noise=noise, limits=limits)


def attention_cases(rooms: Rooms) -> Iterator[Case]:
    """Each generation from the other one: with the one left out, the other is all that is known of such kernels."""
    for block in rooms.named("attention"):
        for direction in ("forward", "backward"):
            for precision in ("bf16", "fp8"):
                some = with_tag(with_tag(block, "direction", direction), "precision", precision)
                for device in sorted(set(some.tags["device"].tolist())):
                    generation = find_device(device).arch
                    case = Case(
                        what=f"attention {direction}, {precision}, {device}",
                        blocks=(on_devices(some, device),),
                        left_out="generation",
                        told=f"all {generation}",
                        kin=_kept([_off(some, device)]),
                        noise=rooms.noise_of("attention"),
                        limits={"median": 0.15},
                    )
                    yield case
                    windows = [block.tags["window"] != "" for block in case.blocks]
                    yield _part(case, "sliding windows", windows)


def byte_cases(rooms: Rooms) -> Iterator[Case]:
    """Norms, losses, rotary positions and the like, by kind."""
    for block in rooms.named(_BYTES):
        for family in sorted(set(block.tags["family"].tolist())):
            own = with_tag(block, "family", family)
            is_alone = len(set(units_of(own.tags, "GPU").tolist())) == 1
            yield Case(
                what=f"{block.name.partition(', ')[2] or block.name}: {family}",
                blocks=(own,),
                left_out="GPU",
                told="GPU, the only one" if is_alone else "",
                noise=rooms.noise_of(_BYTES),
                limits={"median": 0.15},
            )


def image_cases(rooms: Rooms) -> Iterator[Case]:
    for layout in ("nchw", "nhwc"):
        older = tuple(rooms.named(f"timm inference {layout}"))
        for software, limits in (("", {"median": 0.09}), (", PyTorch 2.9", {})):
            for block in rooms.named(f"timm inference RTX-4090 {layout}"):
                if block.name != f"timm inference RTX-4090 {layout}{software}":
                    continue
                label = f"image models, eager {layout}, RTX 4090{software or ', PyTorch 2.4'}"
                noise = rooms.noise_of("timm")
                yield Case(what=label, blocks=(block,), left_out="family", noise=noise, limits=limits)
                yield Case(what=label, blocks=(block,), left_out="generation", told="all Ada", kin=older, noise=noise)


def example_cases(rooms: Rooms) -> Iterator[Case]:
    """NVIDIA's examples on the GPUs that came later; the older rows are their kin."""
    for gpu, starts in (("A100", "A100"), ("H100 PCIe", "H100-PCIe"), ("RTX 4090", "RTX-4090")):
        for block in rooms.named("nvidia examples tf32", "nvidia examples amp-fp16"):
            own = on_devices(newer_rows(block), starts)
            yield Case(
                what=f"NVIDIA's examples, {block.name.removeprefix('nvidia examples ')}, {gpu}",
                blocks=_kept([own]),
                left_out="GPU",
                kin=_kept([older_rows(block)]),
                noise=rooms.noise_of("examples"),
                limits={"median": 0.09},
            )


def newer_rows(block: Block) -> Block:
    """Of the table of newer GPUs, which names the release of PyTorch."""
    return block.take(block.tags["file"] != OLDER_EXAMPLES) if "file" in block.tags else block.take(_none(block))


def older_rows(block: Block) -> Block:
    """Of NVIDIA's examples those of the first file."""
    return with_tag(block, "file", OLDER_EXAMPLES) if "file" in block.tags else block


def _none(block: Block) -> Rows:
    return np.zeros(block.n_rows, dtype=bool)


def amd_cases(rooms: Rooms) -> Iterator[Case]:
    """Of each set with rows of AMD those, then NVIDIA's of the same kind."""
    for name in ("gemm", "elementwise", "softmax and layer norm", "transformers fp32"):
        for block in rooms.named(name):
            scored = block.take(~block.tags["is_floor"]) if "is_floor" in block.tags else block
            devices, place = np.unique(scored.tags["device"], return_inverse=True)
            is_amd = np.array([find_device(str(device)).vendor == "AMD" for device in devices])[place]
            for vendor, rows in (("AMD", is_amd), ("NVIDIA", ~is_amd)):
                own, kin = _kept([scored.take(rows)]), _kept([scored.take(~rows)])
                yield Case(what=f"{name}, {vendor}", blocks=own, left_out="GPU", kin=kin, noise=rooms.noise_of(name))
