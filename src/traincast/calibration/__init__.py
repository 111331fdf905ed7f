"""The shortest set of benchmarks that pins down a machine."""
