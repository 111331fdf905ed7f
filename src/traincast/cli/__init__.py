"""The command line: parse, call the function that Python users call, render."""
