"""Several processes, as torchrun starts them: what a step of all takes, and what their link gives."""
