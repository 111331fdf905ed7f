"""The section "Today's GPUs" of docs/accuracy.md, which can be made again without the rest of the page."""

from __future__ import annotations

from collections.abc import Sequence

from lab.accuracy.modern.beside import (
    MAY_GROW,
    Ceiling,
    Older,
    Whole,
    ceilings_of,
    older_sets,
    whole_answers,
    worst_of,
)
from lab.accuracy.modern.carried import Constant
from lab.accuracy.modern.cases import cases_of
from lab.accuracy.modern.gather import Gathered
from lab.accuracy.modern.left_out import Line, lines_of
from lab.accuracy.modern.ranking import MODELS, PRODUCTS, Agreement, Order, agreements_of, orders
from lab.accuracy.modern.situations import (
    FEWEST,
    LEAST_INSIDE,
    MOST_INSIDE,
    Coverage,
    averages,
    coverages_of,
)
from lab.accuracy.modern.tried import WHAT_WAS_TRIED
from lab.markdown import coverage, figures, percent, table
from traincast.errors import InputError
from traincast.units import show_duration
from traincast.validation.bad_cases import BadRow

BEGIN, END = "<!-- Today's GPUs: begin -->", "<!-- Today's GPUs: end -->"
_NEXT = "## At first sight"  # what follows the section
_CEILING_LIMIT = 0.08
_INTRO = """\
Errors on rows of Ampere, Ada, Hopper and Blackwell GPUs by fits that saw nothing of what stands under *left out*: a
whole source of measurements, a GPU in all its forms, every GPU of its generation, or the family of the model.

    python benchmarks/accuracy.py --data DIR --traces DIR --modern-only --write

- *Width* is p90 over p10 of the forecast, the median. *Repeats* is how far measurements of the same thing are apart
  (largest over smallest, less 1, median; n settings): nothing can be better than about half of it.
- *One constant* is the best of three: a factor on the roofline of every kernel, a factor each on flop and bytes, and,
  for language models, one MFU (6 N + 12 L h s flop a token). *In sample* it is fitted on the very rows, *carried over*
  it comes from the rows of the same kind that were not left out; - where there are none.
- Language models ran on one node. Their lines are the kernels alone; what `tc.forecast` answers, with communication
  and its own interval, stands below them. Products have more than 2^32 multiply-adds.
- *Eager* and *tuned* are kernels of language models that move bytes, PyTorch's own and those of libraries. *The only
  one*: such kernels were timed on one GPU, and without it nothing but a guess from their bytes is left.
- A fit without rows starts from the full fit and takes up to eight Gauss-Newton steps. Where a line says *refit*, least
  squares on the remaining rows alone were made as well, and the worse of the two medians is held to the target."""
_RANKING = """\
Milliseconds of a step, or of a product in 16 bits, with the fit that ships; the fastest GPU first, by the mean of
logarithms over all columns. GPUs without bf16 are asked in fp16."""


def modern_section(gathered: Gathered) -> str:
    """From marker to marker. Lines of the older sets by vendor stand in the table and are no rows of today's GPUs."""
    rooms, evidence = gathered.rooms, gathered.evidence
    cases = cases_of(rooms)
    lines = lines_of(cases, evidence)
    modern = [case for case in cases if not case.what.endswith(("AMD", "NVIDIA"))]
    parts = [
        BEGIN,
        "## Today's GPUs",
        _INTRO,
        _counted(lines),
        line_table([line for line in lines if line.limits]),
        "Also measured, nothing promised:",
        line_table([line for line in lines if not line.limits]),
        "### Refits beside the shortcut",
        refit_table(lines),
        "### Language models: kernels alone, and the whole answer",
        whole_table(list(whole_answers(rooms, evidence, gathered.answers))),
        "### The fastest product of each GPU",
        ceiling_table(list(ceilings_of(rooms, evidence))),
        "### AMD",
        _AMD,
        "### The older sets beside the last page",
        older_table(list(older_sets(rooms, evidence))),
        "### Do intervals hold what they promise?",
        coverage_table(coverages_of(rooms.named("timm", "nvidia", "transformers", "language models"), evidence)),
        "### Which GPU is faster?",
        agreement_table(agreements_of(rooms, evidence), agreements_of(rooms, evidence, "GPU")),
        _RANKING,
        order_table(orders()),
        "### The ten worst rows, two a set at most",
        worst_table(worst_of(modern, evidence)),
        "### What was tried",
        WHAT_WAS_TRIED,
        END,
    ]
    return "\n\n".join(parts)


_AMD = """\
Lone ops of MI100 and MI210 and whole transformers on both are in the table above, NVIDIA's of the same kind under
them. Of GPUs since there is nothing to ask about: MI300X runs of torchao recompute some ops and not others, those of
Primus leave out length and batch, and MLPerf's run LoRA in fp8."""


def replaced(page: str, section: str) -> str:
    """The page with this section in the place of the old one, or before "At first sight" where there was none."""
    if old := section_of(page):
        return page.replace(old, section)
    head, following, tail = page.partition(f"\n{_NEXT}\n")
    if not following:
        raise InputError(
            f"The page has neither '{BEGIN}' nor '{_NEXT}': write the whole page once, without --modern-only."
        )
    return f"{head}\n{section}\n{following}{tail}"


def section_of(page: str) -> str:
    """The section as it is written; nothing where the page has none."""
    begin, end = page.find(BEGIN), page.find(END)
    return page[begin : end + len(END)] if 0 <= begin < end else ""


def _counted(lines: Sequence[Line]) -> str:
    met = sum(line.is_met is True for line in lines)
    missed = [line for line in lines if line.is_met is False]
    names = "; ".join(f"{line.what} ({line.left_out} left out)" for line in missed)
    return f"{met} met, {len(missed)} missed" + (f": {names}." if missed else ".")


def line_table(lines: Sequence[Line]) -> str:
    rows = [
        (
            line.what,
            line.left_out,
            f"{line.summary.n:,}",
            *figures(line.summary),
            coverage(line.summary),
            f"{line.width:.2f}",
            line.noise,
            _constant(line.in_sample),
            _constant(line.carried),
            _wanted(line),
            _verdict(line),
        )
        for line in lines
    ]
    header = (
        "what", "left out", "n", "median %", "mean %", "bias %", "in p10-p90 %", "width", "repeats",
        "one constant, in sample %", "carried over %", "target", "",
    )  # fmt: skip
    return table(header, rows, 2)


def _constant(constant: Constant | None) -> str:
    return "-" if constant is None else f"{percent(constant.median_fraction)} ({constant.name})"


def _wanted(line: Line) -> str:
    return ", ".join(f"{name} ≤ {100 * limit:.0f} %" for name, limit in line.limits.items()) or "-"


def _verdict(line: Line) -> str:
    word = {True: "met", False: "**missed**", None: "reported"}[line.is_met]
    return word if line.refitted_fraction is None else f"{word} (refit {percent(line.refitted_fraction)})"


def refit_table(lines: Sequence[Line]) -> str:
    chosen = [line for line in lines if line.refitted_fraction is not None]
    if not chosen:
        return "No refit was made."
    apart = [100 * abs((line.refitted_fraction or 0.0) - line.summary.median_absolute_fraction) for line in chosen]
    rows = [
        (line.what, line.left_out, f"{line.summary.n:,}", figures(line.summary)[0], percent(line.refitted_fraction))
        for line in chosen
    ]
    told = f"Their medians are {max(apart):.1f} points apart at most, {sum(apart) / len(apart):.1f} on average."
    return told + "\n\n" + table(("what", "left out", "n", "shortcut, median %", "refit, median %"), rows, 2)


def whole_table(found: Sequence[Whole]) -> str:
    rows = [
        (
            each.what,
            f"{each.kernels.n:,}",
            *figures(each.kernels),
            f"{each.whole.n:,}",
            *figures(each.whole),
            coverage(each.whole),
        )
        for each in found
    ]
    errors = ("n", "median %", "mean %", "bias %")
    header = ("in sample", *(f"kernels, {name}" for name in errors), *(f"whole, {name}" for name in errors))
    return table((*header, "in p10-p90 %"), rows)


def ceiling_table(found: Sequence[Ceiling]) -> str:
    rows = [
        (
            f"{each.device}, {each.precision}",
            each.shape.replace('"', ""),
            f"{each.observed_flop_per_s / 1e12:,.0f}",
            *(percent(each.errors[kind], sign=True) for kind in ("nothing", "source", "generation")),
            f"{each.fastest_flop_per_s / 1e12:,.0f}" + _above(each),
            "met" if abs(each.errors["nothing"]) <= _CEILING_LIMIT else "**missed**",
        )
        for each in found
    ]
    header = (
        "GPU", "product", "measured, Tflop/s", "error %, nothing left out", "its source left out",
        "its generation left out", "fastest forecast, Tflop/s", "within 8 %, nothing left out",
    )  # fmt: skip
    told = (
        "One B200 row in bf16 is visible (the line here): bf16 products on Blackwell are as good as untested. *Fastest "
        "forecast* is the best rate among our reference products (below), timed as these were: a search found nothing "
        "faster than what was measured, so it should not be above that."
    )
    return told + "\n\n" + table(header, rows, 2)


def _above(each: Ceiling) -> str:
    return " (too fast)" if each.fastest_flop_per_s > (1 + _CEILING_LIMIT) * each.observed_flop_per_s else ""


def older_table(found: Sequence[Older]) -> str:
    rows = [
        (
            each.name,
            each.left_out,
            f"{each.summary.n:,}",
            f"{each.before_percent:.1f}",
            figures(each.summary)[0],
            coverage(each.summary),
            "**worse**" if each.growth_points > MAY_GROW else "held" if each.growth_points > -MAY_GROW else "better",
        )
        for each in found
    ]
    worse = [each.name for each in found if each.growth_points > MAY_GROW]
    told = f"Same rows. Worse by more than {MAY_GROW} points: {', '.join(worse) or 'none'}."
    header = ("set", "left out", "n", "last page, median %", "now, median %", "in p10-p90 %", "")
    return told + "\n\n" + table(header, rows, 2)


def coverage_table(found: Sequence[Coverage]) -> str:
    means = [f"{situation} {percent(share)} % (mean of {n})" for situation, (share, n) in averages(found).items()]
    rows = [
        (each.situation, each.left_out, each.name, f"{each.summary.n:,}", coverage(each.summary), f"{each.width:.2f}")
        for each in found
        if each.summary.n >= FEWEST
    ]
    missed = [each for each in found if each.summary.n >= FEWEST and not each.is_kept]
    named = [f"{each.name} ({each.situation}, {each.left_out} left out)" for each in missed]
    told = (
        "Whole steps, by how near the fit came to the GPU. Every set of families, and every source, GPU or generation "
        f"of a set that was left out, counts once: {'; '.join(means)}. Sets of {FEWEST} rows and more are below. "
        f"Aimed at are {percent(LEAST_INSIDE)} to {percent(MOST_INSIDE)} % of each, which is missed by "
        f"{'; '.join(named) if named else 'none'}. *Width* is p90 over p10, the median."
    )
    return told + "\n\n" + table(("situation", "left out", "set", "n", "in p10-p90 %", "width"), rows, 3)


def agreement_table(shipped: Sequence[Agreement], left_out: Sequence[Agreement]) -> str:
    pairs = list(zip(shipped, left_out, strict=True))
    rows = [
        (ours.kind, f"{ours.n_pairs:,}", f"{ours.n_clear:,}", f"{ours.n_agreeing:,}", f"{other.n_agreeing:,}")
        for ours, other in pairs
    ]
    header = ("measured on two GPUs", "pairs", "more than 10 % apart", "forecast agrees", "with each GPU left out")
    wrong = [
        (
            each.what,
            each.faster,
            each.slower,
            percent(each.observed_ratio - 1.0, sign=True),
            percent(each.predicted_ratio - 1.0, sign=True),
        )
        for ours in shipped
        for each in ours.disagreements
    ]
    told = (
        "Pairs that the forecast puts the wrong way round, nothing left out (the slower one's time over the faster's):"
    )
    listed = table(("what", "measured faster", "slower", "measured %", "forecast %"), wrong, 3) if wrong else "None."
    return "\n\n".join([table(header, rows), told, listed])


def order_table(found: Sequence[Order]) -> str:
    header = (
        "GPU",
        *("x".join(map(str, sizes)) for sizes in PRODUCTS),
        *(f"{model} {precision} batch {batch}" for model, precision, batch in MODELS),
    )
    rows = [(each.device, *(f"{1e3 * seconds:.3g}" for seconds in each.seconds)) for each in found]
    return table(header, rows)


def worst_table(found: Sequence[BadRow]) -> str:
    rows = [
        (
            row.set_name, row.row, show_duration(row.observed_s), show_duration(row.predicted_s),
            percent(row.error_fraction, sign=True),
        )
        for row in found
    ]  # fmt: skip
    return table(("set", "row", "measured", "predicted", "error %"), rows, 2)
