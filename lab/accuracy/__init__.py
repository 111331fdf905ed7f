"""How wrong forecasts are, for the pages of accuracy: scores beyond those of `traincast compare`, and first sights."""
