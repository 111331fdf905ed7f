"""Settings for all tests: the same random examples on every run, no clock on them, and Ctrl-C as in a terminal."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "traincast", deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("traincast")

# A shell starts what it runs in the background with Ctrl-C ignored, and the tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
