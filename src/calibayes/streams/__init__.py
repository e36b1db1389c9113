"""Rows that are read in chunks: files, Arrow data, queries and text."""
