"""How wrong are we? Every method on every public measurement, held out; writes docs/accuracy.md and its charts.

    python benchmarks/accuracy.py --data ../shared/data [--traces DIR] [--write]

Traces are those of capture_models.py and capture_language_models.py. Takes about half an hour on one core; blocks and
fits are kept beside the traces, and a second run takes seconds. --modern-only renews the section on today's GPUs alone.
Charts need kaleido and a Chrome; without, the page has none and says so.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from pathlib import Path

import checkout  # noqa: F401 - finds lab
from lab.accuracy.modern.gather import gather
from lab.accuracy.modern.left_out_page import modern_section, replaced
from lab.accuracy.page import page
from lab.accuracy.shortcut import Difference, compare_with_refits
from lab.accuracy.targets import targets_of
from lab.accuracy.unscored import unscored_of
from traincast.kernels.refit.folders import USUAL_TRACES
from traincast.report.chart import Chart
from traincast.report.files import write_file
from traincast.report.html import to_html
from traincast.report.text import to_text
from traincast.validation import charts
from traincast.validation.document import document_of
from traincast.validation.measured_set import MeasuredSet
from traincast.validation.score import Scored, score_all
from traincast.validation.splits import Split

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--traces", type=Path, default=USUAL_TRACES)
    parser.add_argument("--html", type=Path, help="also write an HTML report with every chart")
    parser.add_argument("--real-fits", action="store_true", help="fit every split anew, without the shortcut (an hour)")
    parser.add_argument("--no-refits", action="store_true", help="do not check the shortcut against refits (minutes)")
    parser.add_argument("--modern-only", action="store_true", help="only the section on today's GPUs")
    parser.add_argument("--processes", type=int, default=1, help="so many at once (the page is the same)")
    parser.add_argument("--write", action="store_true", help="write docs/accuracy.md and docs/images/accuracy_*.png")
    arguments = parser.parse_args()
    if arguments.write and arguments.no_refits:
        parser.error("the page says how far the shortcut can be trusted: leave out --no-refits, or --write")
    modern = modern_text(arguments) if arguments.modern_only or arguments.write else ""
    if arguments.modern_only:
        print(modern)
        if arguments.write:
            page_file = DOCS / "accuracy.md"
            print(f"Wrote {write_file(page_file, replaced(page_file.read_text(encoding='utf-8'), modern))}")
        return
    scored = score_all(arguments.data, arguments.traces, real_fits=arguments.real_fits, n_processes=arguments.processes)
    document = document_of(scored.sets)
    print(to_text(document))
    for target in targets_of(scored.sets):
        verdict = {True: "met     ", False: "MISSED  ", None: "reported"}[target.is_met]
        print(f"{verdict}  {target.what}: {target.reached} ({target.wanted}, n={target.n})")
    is_unchecked = arguments.real_fits or arguments.no_refits
    differences = [] if is_unchecked else list(refit_differences(scored, arguments.traces))
    for each in differences:
        print(f"{each.split}, {each.set_name}: {each.shortcut_fraction:.4f} shortcut, {each.real_fraction:.4f} refit")
    if arguments.html:
        print(f"Wrote {write_file(arguments.html, to_html(document))}")
    if arguments.write:
        unscored = unscored_of(arguments.data, arguments.traces, scored.splits, scored.fits)
        images = write_images(pictures(scored.sets))
        seen = (DOCS / "first_sight.md").read_text(encoding="utf-8")
        text = page(scored.sets, differences, images, unscored, first_sight=seen, modern=modern)
        print(f"Wrote {write_file(DOCS / 'accuracy.md', text)}")


def modern_text(arguments: argparse.Namespace) -> str:
    are_refitted, n_processes = not arguments.no_refits, arguments.processes
    return modern_section(gather(arguments.data, arguments.traces, are_refitted=are_refitted, n_processes=n_processes))


def refit_differences(scored: Scored, folder: Path) -> Sequence[Difference]:
    """One GPU that was measured in several sets, and the split of families that holds BERT."""
    chosen = [split for split in scored.splits if split == Split("GPU", ("T4",))]
    chosen += [split for split in scored.splits if split.kind == "family" and "bert" in split.values]
    return list(compare_with_refits(scored, chosen, folder))


def pictures(sets: Sequence[MeasuredSet]) -> dict[str, Chart]:
    """By the name of the file."""
    ops = [each for each in sets if "op" in each.tags]
    timm = [each for each in sets if each.name.startswith("timm")]
    layers = [each for each in sets if each.name.startswith("layers")]
    others = [each for each in sets if each not in (*ops, *timm, *layers)]
    found = {
        "methods_ops": charts.methods(ops, title="Lone ops: median absolute error by method, GPU left out"),
        "methods_models": charts.methods([*timm, *others], title="Whole models: median absolute error by method"),
        "methods_layers": charts.methods(layers, title="Lone layers: median absolute error by method, GPU left out"),
        "gpu_ops": charts.by_tag(ops, "device", title="Lone ops: median error by GPU left out"),
        "gpu_models": charts.by_tag(others, "device", title="Whole models: median error by GPU left out"),
        "gpu_layers": charts.by_tag(layers, "device", title="Lone layers: median error by GPU left out"),
        "family": charts.by_tag(
            timm, "family", title="Image models: median error by family left out, the 30 worst families"
        ),
    }
    return found | {f"scatter_{each.name.replace(' ', '_')}": charts.scatter(each) for each in sets}


def write_images(found: dict[str, Chart]) -> list[tuple[str, str]]:
    """Titles and paths from docs/."""
    if importlib.util.find_spec("kaleido") is None:
        print("No charts: kaleido is not installed (pip install 'traincast[png]').")
        return []
    from traincast.report.png import to_png

    (DOCS / "images").mkdir(exist_ok=True)
    written = []
    for name, chart in found.items():
        path = write_file(DOCS / "images" / f"accuracy_{name}.png", to_png(chart))
        written.append((chart.title, path.relative_to(DOCS).as_posix()))
    return written


if __name__ == "__main__":
    main()
