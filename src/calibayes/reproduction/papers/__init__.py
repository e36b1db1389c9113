"""The experiments of each paper."""
