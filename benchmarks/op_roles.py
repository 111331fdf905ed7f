"""Writes src/traincast/data/op_roles.csv from PyTorch's own dispatch table: which ops only call others, or are views.

python benchmarks/op_roles.py prints how many names changed; --write replaces the table.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

TABLE = Path(__file__).parents[1] / "src" / "traincast" / "data" / "op_roles.csv"


def roles() -> dict[str, str]:
    """An op is composite if all of its overloads are, but for those that write to an argument named out."""
    found: dict[str, list[tuple[bool, bool]]] = {}
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::") or schema.overload_name.endswith("out"):
            continue
        full = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        try:
            is_composite = torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd")
        except RuntimeError:  # TorchScript alone knows it
            continue
        aliases = [result.alias_info for result in schema.returns]
        is_view = bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)
        found.setdefault(schema.name, []).append((is_composite, is_view))
    return {
        name: "composite" if all(composite for composite, _ in overloads) else "view"
        for name, overloads in sorted(found.items())
        if all(composite for composite, _ in overloads) or all(view for _, view in overloads)
    }


if __name__ == "__main__":
    lines = ["name,role", *(f"{name},{role}" for name, role in roles().items())]
    before = set(TABLE.read_text(encoding="utf-8").splitlines())
    print(f"torch {torch.__version__}: {len(lines) - 1} ops, {len(before ^ set(lines))} lines changed")
    if "--write" in sys.argv:
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
