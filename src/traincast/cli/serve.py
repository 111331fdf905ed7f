"""`traincast serve`: the page."""

from typing import Annotated

import typer


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets others in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any that is free.")] = 8000,
    max_upload_mib: Annotated[
        int, typer.Option("--max-upload", min=1, max=4096, metavar="MIB", help="The largest file that is taken.")
    ] = 128,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
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

    if not host:
        raise InputError("--host cannot be empty: give an address such as 127.0.0.1, or 0.0.0.0 to let others in.")
    try:
        listening = bound_socket(host, port)
    except OSError as error:
        raise InputError(f"Cannot listen on {host}, port {port}: {error.strerror or error}.") from error
    server = make_server(host=host, limits=Limits(upload_bytes=max_upload_mib * MIB))
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/"
    typer.echo(f"traincast is at {address} (Ctrl-C ends it)")
    if host not in ("127.0.0.1", "::1", "localhost"):
        typer.echo("Everybody who can reach this address can ask and upload: there is no password.", err=True)
    warm_up()
    if open_page:
        typer.launch(address)
    server.run(sockets=[listening])
