"""Settings for all tests: the same random examples on every run, and no clock on them."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "traincast", deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("traincast")
