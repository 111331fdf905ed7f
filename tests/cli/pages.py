"""Pages that commands write, read again."""

import html
import json
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """`figures` by title, as plotly gets them; `tables` as rows of cells; what is assumed; and where it comes from."""

    figures: dict
    tables: list
    notes: list
    provenance: str

    def n_points(self, title):
        """That are drawn."""
        return sum(y is not None for trace in self.figures[title]["data"] for y in trace["y"])


def read_page(path):
    text = path.read_text(encoding="utf-8")
    body = text.partition("<script>")[0]
    titles = re.findall(r"<figure><h2>(.*?)</h2>", body)
    figures = json.loads(re.search(r"const figures = (\[.*?\]);\n", text).group(1)) if titles else []
    tables = [
        [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", part)]
        for part in re.findall(r"<tbody>(.*?)</tbody>", body, re.DOTALL)
    ]
    return Page(
        figures=dict(zip(map(html.unescape, titles), figures, strict=True)),
        tables=tables,
        notes=[html.unescape(note) for note in re.findall(r"<li>(.*?)</li>", body)],
        provenance=html.unescape("".join(re.findall(r"<footer>(.*?)</footer>", body))),
    )
