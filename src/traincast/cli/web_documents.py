"""What the page shows of each answer: the same documents as the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traincast.web.presenting import Presenters


def presenters() -> Presenters:
    """One document a question."""
    from traincast.views import converge, forecast, plan, scale
    from traincast.web.presenting import Presenters

    return Presenters(
        forecast=forecast.document_of,
        scale=scale.document_of,
        plan=plan.document_of,
        converge=converge.document_of,
    )
