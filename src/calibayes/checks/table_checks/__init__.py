"""Checks of a labeled table."""
