"""The faces of the house in figures: what is written in cli, api, web and report, and what was made of them.

    python lab/count_faces.py            # the working tree beside the commit where the work began
    python lab/count_faces.py HEAD~5     # one commit more

Lines are all lines of a file; code lines are neither blank, comment nor docstring. The length of a function is from its
`def` to its last line; its complexity is one more than its branches, as ruff's C901 counts them. An option list that is
repeated: six or more parameters in a row, of equal names, in two functions of different files.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BEGAN = "b9d973d"
FACES = ("cli", "api", "web", "report", "views", "options")  # the last two were made of the first three
_RUN = 6  # parameters in a row
_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case)
_LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Sources = dict[str, str]  # text by path, below src/traincast


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of some files."""

    n_files: int
    n_lines: int
    n_code_lines: int
    n_functions: int
    n_function_lines: int
    n_complexity: int

    @property
    def length(self) -> float:
        return self.n_function_lines / max(self.n_functions, 1)

    @property
    def complexity(self) -> float:
        return self.n_complexity / max(self.n_functions, 1)


def of_tree() -> Sources:
    """What lies in the working tree."""
    top = ROOT / "src" / "traincast"
    return {str(path.relative_to(top)): path.read_text(encoding="utf-8") for path in sorted(top.rglob("*.py"))}


def of_commit(commit: str) -> Sources:
    """What a commit holds."""
    top = "src/traincast/"
    archive = subprocess.run(["git", "archive", commit, top], cwd=ROOT, capture_output=True, check=True).stdout
    import tarfile

    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            held = files.extractfile(member) if member.name.endswith(".py") else None
            if held is not None:
                found[member.name.removeprefix(top)] = held.read().decode()
    return found


def functions_of(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def complexity_of(function: Function) -> int:
    """One more than the branches; a function inside counts for itself alone."""
    n, waiting = 1, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        n += isinstance(node, _BRANCHES) + (len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0)
        waiting += ast.iter_child_nodes(node)
    return n


def code_lines(text: str, tree: ast.AST) -> int:
    """Lines with anything on them but comments and docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def figures(sources: Sources) -> Figures:
    trees = {path: ast.parse(text) for path, text in sources.items()}
    functions = [function for tree in trees.values() for function in functions_of(tree)]
    return Figures(
        n_files=len(sources),
        n_lines=sum(text.count("\n") for text in sources.values()),
        n_code_lines=sum(code_lines(text, trees[path]) for path, text in sources.items()),
        n_functions=len(functions),
        n_function_lines=sum((function.end_lineno or 0) - function.lineno + 1 for function in functions),
        n_complexity=sum(map(complexity_of, functions)),
    )


def repeated_lists(sources: Sources) -> dict[tuple[str, str], int]:
    """Functions of two files that share a run of parameters: the longest run by pair."""
    where: defaultdict[tuple[str, ...], list[tuple[str, str, int, tuple[str, ...]]]] = defaultdict(list)
    for path, text in sources.items():
        for function in functions_of(ast.parse(text)):
            given = function.args
            names = tuple(one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs) if one.arg != "self")
            for start in range(len(names) - _RUN + 1):
                where[names[start : start + _RUN]].append((path, function.name, start, names))
    longest: dict[tuple[str, str], int] = {}
    for places in where.values():
        for i, (path, name, start, names) in enumerate(places):
            for other_path, other_name, other_start, other_names in places[i + 1 :]:
                if path != other_path:
                    pair = (f"{path}:{name}", f"{other_path}:{other_name}")
                    longest[pair] = max(longest.get(pair, 0), _shared(names[start:], other_names[other_start:]))
    return longest


def _shared(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    """How many names are equal from the first on."""
    n = 0
    while n < min(len(left), len(right)) and left[n] == right[n]:
        n += 1
    return n


def _of_room(sources: Sources, *rooms: str) -> Sources:
    return {path: text for path, text in sources.items() if path.split("/")[0] in rooms}


def _show(name: str, sources: Sources) -> None:
    faces = _of_room(sources, *FACES)
    others = {path: text for path, text in sources.items() if path not in faces}
    print(f"{name:24} {'files':>6} {'lines':>8} {'code':>8} {'functions':>10} {'length':>7} {'complexity':>11}")
    rows = [(room, _of_room(sources, room)) for room in FACES] + [("all faces", faces), ("the rest", others)]
    for room, held in rows:
        if held:
            of = figures(held)
            print(
                f"  {room:22} {of.n_files:6,} {of.n_lines:8,} {of.n_code_lines:8,} {of.n_functions:10,} "
                f"{of.length:7.2f} {of.complexity:11.2f}"
            )
    for where, held in (("the faces", faces), ("all", sources)):
        runs = repeated_lists(held)
        print(f"  repeated option lists in {where}: {len(runs)} pairs of functions, {sum(runs.values()):,} parameters")
        if where == "the faces" and "--pairs" in sys.argv:
            for pair, n in sorted(runs.items(), key=lambda item: -item[1]):
                print(f"    {n:4}  {pair[0]}  ~  {pair[1]}")
    print()


if __name__ == "__main__":
    for commit in (BEGAN, *(word for word in sys.argv[1:] if not word.startswith("-"))):
        _show(commit, of_commit(commit))
    _show("working tree", of_tree())
