"""The documentation is true because it runs: pages are fresh, commands and code give what they show."""

import importlib.metadata
import importlib.util
import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest

from traincast.__main__ import run

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)(?:#[^)\s]*)?\)")

PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def generator():
    spec = importlib.util.spec_from_file_location("generate_docs", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(page):
    return [(match["info"].strip(), match["body"]) for match in FENCE.finditer(page.read_text(encoding="utf-8"))]


def commands():
    """(arguments, the output that README shows below it) of each command in a console block."""
    for info, body in blocks(ROOT / "README.md"):
        if info != "console":
            continue
        for part in re.split(r"^\$ ", body.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            yield pytest.param(shlex.split(line), output.rstrip("\n"), id=line)


def snippets():
    """(code, the output that the page shows right after it, or None) of each python block."""
    for page in PAGES:
        found = blocks(page)
        for number, (info, body) in enumerate(found):
            if info == "python":
                following, text = found[number + 1] if number + 1 < len(found) else ("", "")
                yield pytest.param(body, text if following == "text" else None, id=f"{page.name}-{number}")


def test_the_command_reference_is_what_the_commands_print():
    page, fresh = (DOCS / "cli.md").read_text(encoding="utf-8"), generator().cli_page()
    if f"typer {importlib.metadata.version('typer')};" in page:
        assert page == fresh, "docs/cli.md is stale: run 'python docs/generate.py'"
    else:  # another typer lays the same help out differently
        flags = re.compile(r"^## \w+|--[a-z][a-z-]*", re.MULTILINE)
        assert set(flags.findall(page)) == set(flags.findall(fresh)), "docs/cli.md is stale: run docs/generate.py"


def test_the_command_reference_has_every_command():
    from typer.main import get_command

    from traincast.cli.app import make_app

    assert set(get_command(make_app()).commands) == set(generator().COMMANDS)


def test_the_zoo_page_is_what_the_traces_say():
    fresh = generator().zoo_page()
    assert (DOCS / "zoo.md").read_text(encoding="utf-8") == fresh, "docs/zoo.md is stale: run 'python docs/generate.py'"


@pytest.mark.parametrize(("arguments", "shown"), list(commands()))
def test_readme_commands_print_what_readme_shows(arguments, shown, capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("COLUMNS", raising=False)
    shutil.copytree(DOCS / "story", tmp_path, dirs_exist_ok=True)  # the files that README's story reads
    monkeypatch.chdir(tmp_path)
    program, *rest = arguments
    assert program == "traincast"
    assert run(rest) == 0
    printed = capsys.readouterr().out.rstrip("\n")
    if shown:
        assert printed == shown


@pytest.mark.parametrize(("code", "shown"), list(snippets()))
def test_code_on_a_page_runs_and_prints_what_the_page_shows(code, shown, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if "import torch" in code:
        pytest.importorskip("torch")
    file = tmp_path / "snippet.py"
    file.write_text(code, encoding="utf-8")
    runpy.run_path(str(file))
    printed = capsys.readouterr().out
    if shown is not None:
        assert printed == shown


def test_there_are_commands_and_code_to_run():
    assert len(list(commands())) >= 2
    assert len(list(snippets())) >= 2


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    targets = [match["target"] for match in LINK.finditer(page.read_text(encoding="utf-8"))]
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert not missing


def test_every_page_is_reachable_from_the_index():
    linked = set(re.findall(LINK, (DOCS / "index.md").read_text(encoding="utf-8")))
    assert {page.name for page in DOCS.glob("*.md")} - linked == {"index.md"}


def test_no_page_ends_a_training_for_another_exit_code_than_that_of_the_rule():
    recipes = [line for page in PAGES for line in page.read_text().splitlines() if "kill $TRAINING" in line]
    assert recipes
    assert all("[ $? -eq 3 ] && kill $TRAINING" in line for line in recipes)
