"""Functions of fitted models: explanations, samples, prediction sets, drift, forgetting, privacy and others."""
