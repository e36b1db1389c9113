"""Averages of posteriors: members, their weights from held-out rows, and the default classifier."""
