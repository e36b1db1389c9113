"""Measurements for docs/scale.md: tables larger than memory, workers, devices."""
