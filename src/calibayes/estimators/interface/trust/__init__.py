"""What a fitted classifier says about rows that it was not trained on, and what follows from it."""
