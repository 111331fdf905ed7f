"""What others measured: profiler traces and tables, read into our own records."""
