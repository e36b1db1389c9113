"""The scikit-learn face: estimators, and the functions of fitted models that they delegate to."""
