"""`traincast serve`: the page."""

import typer

from traincast.cli.command import CommandLine, command
from traincast.options import serve as o


def _own(
    *,
    host: o.Address = "127.0.0.1",
    port: o.Port = 8000,
    max_upload_mib: o.MaxUploadMib = 128,
    open_page: o.OpenPage = False,
) -> None:
    """Options of the command alone: it answers no question itself."""


@command(own=_own, has_answer=False)
def serve(line: CommandLine) -> None:
    """Show it all on a page: forecasts, plans, charts, uploads; with a JSON API beside it.

    Example: traincast serve --port 8080
    """
    from traincast.errors import InputError, MissingExtraError

    try:
        from traincast.web.server import bound_socket, make_server, warm_up
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "anyio"):
            raise
        raise MissingExtraError("The page", extra="web") from error
    from traincast.web.limits import MIB, Limits

    host, port = line.own["host"], line.own["port"]
    if not host:
        raise InputError("--host cannot be empty: give an address such as 127.0.0.1, or 0.0.0.0 to let others in.")
    try:
        listening = bound_socket(host, port)
    except OSError as error:
        raise InputError(f"Cannot listen on {host}, port {port}: {error.strerror or error}.") from error
    server = make_server(host=host, limits=Limits(upload_bytes=line.own["max_upload_mib"] * MIB))
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/"
    typer.echo(f"traincast is at {address} (Ctrl-C ends it)")
    if host not in ("127.0.0.1", "::1", "localhost"):
        typer.echo("Anybody who can reach this address can ask and upload: there is no password.", err=True)
    warm_up()
    if line.own["open_page"]:
        typer.launch(address)
    server.run(sockets=[listening])
