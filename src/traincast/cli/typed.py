"""The command line as it was typed, for pages that say how they were made and for errors that name an option."""

from collections.abc import Sequence
from contextvars import ContextVar

from traincast.errors import ParameterError, TraincastError

TYPED: ContextVar[Sequence[str]] = ContextVar("TYPED", default=())
# Where the option does not follow from the name.
_OPTIONS = {"price_usd_per_hour": "--price"}


def in_options(error: TraincastError) -> str:
    """The message of an error, with the option in the place of the parameter where that was typed."""
    if not isinstance(error, ParameterError):
        return str(error)
    typed = {argument.partition("=")[0] for argument in TYPED.get()}
    own = f"--{error.name.removeprefix('n_').replace('_', '-')}"
    option = next((option for option in (own, _OPTIONS.get(error.name)) if option in typed), None)
    return str(error) if option is None else error.called(option)
