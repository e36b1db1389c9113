"""Rows of tables that commands read and write."""
