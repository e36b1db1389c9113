"""A leaderboard of classifiers on larger tables: `python benchmarks/accuracy.py leaderboard`."""
