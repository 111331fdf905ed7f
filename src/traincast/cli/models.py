"""`traincast models`: which models are known by name?"""

from traincast.api.listings import list_models
from traincast.cli.command import CommandLine, command


@command(list_models)
def models(line: CommandLine) -> None:
    """Which models are known by name?

    Example: traincast models resnet
    """
    from traincast.views.models import document_of

    found = list_models(**line.options)
    line.show(document_of(found, with_charts=line.has_charts), found.to_dict)
