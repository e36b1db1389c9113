"""Rows of files, Arrow streams and memory-mapped arrays, chunk by chunk; `open_stream` is the entry."""
