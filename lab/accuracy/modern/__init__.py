"""What the code said about each file of the measurements of 2021 to 2026 before a fit saw it."""
