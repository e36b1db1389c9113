"""Checks of a fitted model, and of the results of a comparison."""
