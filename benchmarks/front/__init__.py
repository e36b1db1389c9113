"""Benchmarks of commands, reports and exports."""
