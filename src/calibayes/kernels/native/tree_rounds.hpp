// Rounds of growth: residuals, sums of leaves and losses of rows with given log scores, as whole numbers.
//
// This file is compiled without fused multiply-add, so that posteriors have the same bits on every processor, those of NumPy.
#pragma once

#include "posterior.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

// P (1 - P) k / (k - 1), with the operations of the NumPy version.
CALIBAYES_INLINE double variance_at(double posterior, double ratio) { return posterior * (1.0 - posterior) * ratio; }

CALIBAYES_INLINE double ratio_of(Int k) { return static_cast<double>(k) / static_cast<double>(k - 1); }

// Calls use(from, many, rows) for one stretch of rows after another; rows.power are the posteriors, (k, ROWS).
template <class Use>
CALIBAYES_INLINE void each_stretch(const double* scores, Int n, Int k, double* scratch, Use use) {
    Stretch rows;
    for (Int from = 0; from < n; from += ROWS) {
        const Int many = n - from < ROWS ? n - from : ROWS;
        rows.read(scores + from * k, many, k, scratch);
        for (Int c = 0; c < k; ++c)
            for (Int r = 0; r < ROWS; ++r) rows.power[c * ROWS + r] /= rows.sum[r];
        use(from, many, rows);
    }
}

// Adds the log factors (leaves, k) of the leaf of each row to its log scores.
inline void add_factors(const double* factors, const std::int32_t* codes, Int n, Int k, double* scores) {
    for (Int r = 0; r < n; ++r) {
        const double* CALIBAYES_ALONE own = factors + codes[r] * k;
        for (Int c = 0; c < k; ++c) scores[r * k + c] += own[c];
    }
}

inline void packed_residuals(const LabeledScores& all, double scale, const double* fractions, Int packed_classes, Int* packed,
                             double* scratch) {
    const double ratio = ratio_of(all.k);
    const Int skipped = all.k - packed_classes;
    each_stretch(all.scores, all.n, all.k, scratch, [&](Int from, Int many, const Stretch& rows) {
        for (Int r = 0; r < many; ++r) {
            const double units = all.weight[from + r] * scale, fraction = fractions[from + r];
            Int* own = packed + (from + r) * packed_classes;
            for (Int c = 0; c < packed_classes; ++c) {
                const double p = rows.power[(skipped + c) * ROWS + r];
                const Int expected = whole(p * units + fraction);  // not negative: rounded down
                own[c] = reduced(whole(variance_at(p, ratio) * units + fraction), shifted(expected));
            }
            const Int label = all.labels[from + r] - skipped;
            if (label >= 0) own[label] = added(own[label], shifted(whole(units + fraction)));
        }
    });
}

inline void leaf_sums(const LabeledScores& all, const std::int32_t* codes, double scale, Int* residual, Int* variance, Int* mass,
                      double* scratch) {
    const double ratio = ratio_of(all.k);
    each_stretch(all.scores, all.n, all.k, scratch, [&](Int from, Int many, const Stretch& rows) {
        for (Int r = 0; r < many; ++r) {
            const double units = all.weight[from + r] * scale;
            const Int leaf = codes[from + r], whole_row = whole(units);
            Int *deviation = residual + leaf * all.k, *spread = variance + leaf * all.k;
            for (Int c = 0; c < all.k; ++c) {
                const double p = rows.power[c * ROWS + r];
                deviation[c] = reduced(deviation[c], whole(p * units));
                spread[c] = added(spread[c], whole(variance_at(p, ratio) * units));
            }
            deviation[all.labels[from + r]] = added(deviation[all.labels[from + r]], whole_row);
            mass[leaf] = added(mass[leaf], whole_row);
        }
    });
}

inline Int whole_loss(const LabeledScores& all, double scale, double most, double* scratch) {
    Int total = 0;
    each_stretch(all.scores, all.n, all.k, scratch, [&](Int from, Int many, const Stretch& rows) {
        for (Int r = 0; r < many; ++r) {
            const double loss = rows.log_sum[r] - rows.shifted[all.labels[from + r] * ROWS + r];
            total = added(total, whole((loss < most ? loss : most) * (all.weight[from + r] * scale) + 0.5));
        }
    });
    return total;
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
