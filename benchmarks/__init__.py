"""Benchmarks: one row for each promise of speed or memory, each beside a reference measured in the same run."""
