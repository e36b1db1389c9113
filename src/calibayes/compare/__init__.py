"""Compare models and training rules by cross-validation on the same folds."""

from calibayes.compare.baselines import BASELINES
from calibayes.compare.cross_validation import FoldResult, compare, run_fold, stratified_folds
from calibayes.compare.models import MODELS, RULES, model_rule_pairs
from calibayes.compare.ranking import MeanResult, describe_best, rank_results

__all__ = [
    "BASELINES",
    "MODELS",
    "RULES",
    "FoldResult",
    "MeanResult",
    "compare",
    "describe_best",
    "model_rule_pairs",
    "rank_results",
    "run_fold",
    "stratified_folds",
]
