"""Summaries of columns: what encoders learn from, in memory or added up over the blocks of a table."""

from calibayes.tables.summaries.column import MOST_DISTINCT, ColumnSummary
from calibayes.tables.summaries.in_memory import InMemory, summary_of
from calibayes.tables.summaries.sample import SAMPLE_ROWS, Sample, in_sample
from calibayes.tables.summaries.streamed import Streamed
from calibayes.tables.summaries.summary import Moments, TableSummary
from calibayes.tables.summaries.sums import (
    ColumnSums,
    SurveyPlan,
    column_sums,
    first_plan,
    next_plan,
    totals_after,
)
from calibayes.tables.summaries.weights import summable

__all__ = [
    "MOST_DISTINCT",
    "SAMPLE_ROWS",
    "ColumnSummary",
    "ColumnSums",
    "InMemory",
    "Moments",
    "Sample",
    "Streamed",
    "SurveyPlan",
    "TableSummary",
    "column_sums",
    "first_plan",
    "in_sample",
    "next_plan",
    "summable",
    "summary_of",
    "totals_after",
]
