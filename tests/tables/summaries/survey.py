"""The summary of a table from sums over parts of its rows, as it is made for rows that are not in memory."""

import numpy as np

from calibayes.core.named_arrays import total
from calibayes.engines import Serial
from calibayes.kernels.growth_rows import ManyBlocks
from calibayes.streams.growth_blocks import BlockList
from calibayes.tables.summary import Sample, in_sample
from calibayes.tables.summary_sums import Streamed, column_sums, first_plan, next_plan, totals_after


def parts(n, count, rng):
    """Rows in parts of random sizes, some of them empty, in random order: (first, last) each."""
    cuts = np.sort(np.concatenate([[0, n], rng.integers(0, n + 1, count - 1)]))
    return rng.permutation(np.stack([cuts[:-1], cuts[1:]], axis=1))


def totals_of(table, weight, codes, ranges, k):
    """Totals of all columns after the last pass, and the number of passes."""
    blocks = [
        (table.rows(np.arange(first, last)), weight[first:last], None if codes is None else codes[first:last])
        for first, last in ranges
    ]
    plan, totals, passes = first_plan(range(len(table.names)), k, weight), {}, 0
    while plan is not None:
        totals = totals_after(totals, total(column_sums(*block, plan) for block in blocks))
        plan, passes = next_plan(plan, totals), passes + 1
    return totals, passes


def streamed(table, weight, codes, ranges):
    """The summary of a table from parts of its rows."""
    k = 0 if codes is None else int(codes.max()) + 1
    totals, _ = totals_of(table, weight, codes, ranges, k)
    chosen = np.concatenate(
        [in_sample(first, last - first, table.n) for first, last in sorted(map(tuple, ranges))]
    )
    sample = Sample(table.rows(chosen), weight[chosen], None if codes is None else codes[chosen])

    def all_blocks(encoder, counts):
        blocks = [
            encoder.one_block(
                table.rows(np.arange(*own)), codes[slice(*own)], weight[slice(*own)], counts
            ).rows
            for own in ranges
        ]
        return ManyBlocks(Serial(), BlockList(blocks))

    return Streamed(sample.table, weight, codes, sample, totals, all_blocks)
