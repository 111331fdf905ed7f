"""Where an answer goes, for commands that are not derived from a question yet."""

from traincast.cli.command import AsJson, HtmlFile, PngFile

__all__ = ["AsJson", "HtmlFile", "PngFile"]
