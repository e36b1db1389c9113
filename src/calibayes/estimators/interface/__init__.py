"""What all estimators share: input, targets, parameter checks, splits, decisions, explanations, progress."""
