"""Classifiers of sequences: strings, and lists of symbols."""

from __future__ import annotations

from calibayes.analysis.positions import PositionExplanation, explain_positions
from calibayes.encoders.sequence_codes import Sequences
from calibayes.estimators.sequence_classifier import SequenceClassifier
from calibayes.families.hidden_markov import HiddenMarkov
from calibayes.families.markov_chain import MarkovChain

__all__ = [
    "HiddenMarkov",
    "MarkovChain",
    "PositionExplanation",
    "SequenceClassifier",
    "Sequences",
    "explain_positions",
]
