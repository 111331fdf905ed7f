"""Readers of the measurements of 2021 to 2026: lone kernels, steps of language models, newer whole models."""
