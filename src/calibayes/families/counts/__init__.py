"""Families whose statistics are counts: levels, flags and numbers of events."""
