"""Neutral traces of the same model trained in another way: blocks run again, adapters beside frozen layers."""
