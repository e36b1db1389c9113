"""Classifiers of scikit-learn as they were fitted, as the estimators of the same name: statistics rebuilt from attributes."""
