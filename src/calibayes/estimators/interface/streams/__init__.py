"""Training and predictions for rows that are not in memory."""
