"""What the page shows of each answer: the same documents as the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traincast.web.presenting import Presenters


def presenters() -> Presenters:
    """One document a question."""
    from traincast.cli import (
        converge_document,
        explain_document,
        forecast_document,
        plan_document,
        scale_document,
    )
    from traincast.web.presenting import Presenters

    return Presenters(
        forecast=forecast_document.document_of,
        scale=scale_document.document_of,
        explain=explain_document.document_of,
        explain_data=explain_document.data_of,
        plan=plan_document.document_of,
        converge=converge_document.document_of,
    )
