"""Readers of the measurements of 2021 to 2026, and what the code said about each file before a fit saw it."""
