"""Where pages and images may go: asked while the command line is read, before any work that would be lost."""

from pathlib import Path

import typer

from traincast.errors import InputError

_OTHER = {"html": "png", "png": "html"}


def page_file(context: typer.Context, path: Path | None) -> Path | None:
    """The file of --html, if a page can be written there."""
    return _checked(context, path, "html")


def image_file(context: typer.Context, path: Path | None) -> Path | None:
    """The file of --png, if an image can be drawn and written there; no other kind of image is drawn."""
    if path is not None and path.suffix.lower() != ".png":
        raise InputError(f"--png writes PNG images, so its file should end in .png, not '{path.name}'.")
    if _checked(context, path, "png") is not None:
        from traincast.report.png import require_kaleido

        require_kaleido()
    return path


def _checked(context: typer.Context, path: Path | None, name: str) -> Path | None:
    """Options are read one after the other: the later of the two sees the earlier."""
    if path is None:
        return None
    from traincast.report.files import check_writable

    other: Path | None = context.params.get(_OTHER[name])
    if other is not None and other.resolve() == path.resolve():
        raise InputError(f"--html and --png both name '{path}': give each a file of its own.")
    check_writable(path)
    return path
