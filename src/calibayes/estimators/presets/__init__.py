"""Presets: which families model which columns, with the parameters that users of scikit-learn know."""
