"""Kernels of partitions: trees whose splits are found in sums of residuals by column and bin."""
