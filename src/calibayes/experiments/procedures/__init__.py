"""The computations of the experiments: data entries, splits, simulations, and tasks that fit and score models.

Cached results are valid as long as the code of this folder is unchanged (`calibayes.experiments.task.task_key`).
"""
