"""Naive Bayes over the leaves of trees that are grown by calibration."""
