"""The fields of the page's form, out of what the questions declare: labels, bounds, choices.

In `index.html` a field stands as `{{plan.budget_usd wide}}`: the question, its option, and how it lies in the form
(`wide`: over both columns; `needed`: the form is not sent without it).
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from traincast.options.fields import page_bounds
from traincast.options.option import Declared, declared
from traincast.web.questions import FUNCTIONS

_FIELD = re.compile(r"\{\{(?P<question>[a-z]+)\.(?P<name>[a-z_]+)(?P<words>[a-z ]*)\}\}")
_AS_CAPTURED = "as captured"


def filled(page: str) -> str:
    """The page with its fields."""
    return _FIELD.sub(lambda field: _html(_declared(field["question"], field["name"]), field["words"].split()), page)


def label_of(one: Declared) -> str:
    return one.option.label or one.name.replace("_", " ").capitalize()


def _declared(question: str, name: str) -> Declared:
    (one,) = (one for one in declared(FUNCTIONS[question]) if one.name == name)
    return one


def _html(one: Declared, words: list[str]) -> str:
    classes = [name for name in ("check",) if one.type_text == "bool"] + [name for name in ("wide",) if name in words]
    tag = f'<label class="{" ".join(classes)}">' if classes else "<label>"
    label, title = escape(label_of(one)), escape(one.option.help, quote=True)
    if one.type_text == "bool":
        return f'{tag}<input name="{one.name}" type="checkbox" title="{title}"> {label}</label>'
    choices = one.option.choices_on_page or one.option.choices
    if choices:
        usual = one.default or _AS_CAPTURED
        others = "".join(f"<option>{escape(name)}</option>" for name in choices if name != usual)
        options = f'<option value="">{escape(usual)}</option>{others}'
        return f'{tag}{label} <select name="{one.name}" title="{title}">{options}</select></label>'
    if one.type_text.startswith("str"):
        return f'{tag}{label} <input name="{one.name}" maxlength="40" spellcheck="false" title="{title}"></label>'
    is_whole = "int" in one.type_text
    least, most = page_bounds(one)
    attributes: dict[str, Any] = {
        "name": one.name,
        "type": "number",
        "min": f"{least:.0f}" if least is not None else None,
        "max": f"{most:.0f}" if most is not None else None,
        "step": "1" if is_whole else "any",
        "inputmode": "numeric" if is_whole else "decimal",
        "title": one.option.help,
    }
    shown = " ".join(
        f'{key}="{escape(str(value), quote=True)}"' for key, value in attributes.items() if value is not None
    )
    return f"{tag}{label} <input {shown}{' required' if 'needed' in words else ''}></label>"
