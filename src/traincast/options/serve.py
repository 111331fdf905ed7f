"""Where the page listens, and what it takes."""

from typing import Annotated

from traincast.options.option import Option

Address = Annotated[str, Option(help="Address to listen on; 0.0.0.0 lets others in.")]
Port = Annotated[int, Option(help="Port to listen on; 0: any that is free.", at_least=0, at_most=65535)]
MaxUploadMib = Annotated[
    int, Option(help="The largest file that is accepted.", flag="--max-upload", metavar="MIB", at_least=1, at_most=4096)
]
OpenPage = Annotated[bool, Option(help="Open the page in the browser.", flag="--open")]
