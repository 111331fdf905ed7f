"""Neutral tables and charts, rendered as text, JSON, HTML and PNG. Knows no other room."""
