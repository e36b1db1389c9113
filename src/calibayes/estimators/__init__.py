"""The scikit-learn face: one general estimator and presets under names that people know."""
