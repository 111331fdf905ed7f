"""Train for real: experiments that run on small data here and unchanged on the real thing, each with its forecast."""
