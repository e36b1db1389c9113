"""Kinds of tables and figures that the papers have."""
