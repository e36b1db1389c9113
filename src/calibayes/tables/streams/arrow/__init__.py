"""Streams of Arrow batches: which columns they have, how columns become arrays, and what gives batches again and again."""
