"""A page and a JSON API for people who rather click: what the commands answer, in a browser."""
