"""What results look like in a notebook."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from traincast.report.notebook import to_notebook


class Seen(HTMLParser):
    """The elements of a fragment and its text."""

    def __init__(self, fragment):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(fragment)

    def handle_starttag(self, tag, attrs):
        assert not attrs
        self.tags.append(tag)

    def handle_data(self, data):
        self.words.append(data)


def test_a_table_has_its_title_its_heading_and_its_remarks():
    shown = to_notebook("A run", [("step", "3 s", None)], header=("", "p50", "p90"), notes=["It fits."])
    assert shown == (
        "<table><caption>A run</caption><thead><tr><th></th><th>p50</th><th>p90</th></tr></thead>"
        "<tbody><tr><th>step</th><td>3 s</td><td>-</td></tr></tbody></table><ul><li>It fits.</li></ul>"
    )


@given(st.text(alphabet="<>&\"'/=scriptonerror $`", max_size=40))
def test_no_text_becomes_an_element(text):
    seen = Seen(to_notebook(text, [(text, text)], header=(text, text), notes=[text]))
    assert set(seen.tags) <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li", "span"}
    assert "".join(seen.words) == 6 * text


def test_two_prices_are_no_formula():
    shown = to_notebook("$1 or $2", [])
    assert Seen(shown).words == ["$", "1 or ", "$", "2"]
