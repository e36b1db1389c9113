"""The default classifier: a weighted ensemble of generative classifiers."""
