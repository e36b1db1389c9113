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
inline void add_factors(const double* factors, const std::int8_t* codes, Int n, Int k, double* scores) {
    for (Int r = 0; r < n; ++r) {
        const double* CALIBAYES_ALONE own = factors + codes[r] * k;
        for (Int c = 0; c < k; ++c) scores[r * k + c] += own[c];
    }
}

inline void packed_residuals(const LabeledScores& all, double scale, const std::uint32_t* fractions, Int packed_classes, Int* packed,
                             double* scratch) {
    const double ratio = ratio_of(all.k);
    const Int skipped = all.k - packed_classes;
    each_stretch(all.scores, all.n, all.k, scratch, [&](Int from, Int many, const Stretch& rows) {
        for (Int r = 0; r < many; ++r) {
            const double units = all.weight[(from + r) * all.step] * scale, fraction = fractions[from + r] * 0x1p-32;
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

// Sums (leaves, k) of residuals, of variances, and of the weights of all rows by class.
inline void leaf_sums(const LabeledScores& all, const std::int8_t* codes, const std::uint8_t* held_out, Int leaves, double scale, Int* sums,
                      double* scratch) {
    const double ratio = ratio_of(all.k);
    Int *residual = sums, *variance = residual + leaves * all.k, *mass = variance + leaves * all.k;
    each_stretch(all.scores, all.n, all.k, scratch, [&](Int from, Int many, const Stretch& rows) {
        for (Int r = 0; r < many; ++r) {
            const double units = all.weight[(from + r) * all.step] * scale;
            const Int first = codes[from + r] * all.k, whole_row = whole(units), own = first + all.labels[from + r];
            mass[own] = added(mass[own], whole_row);
            if (held_out[from + r]) continue;
            for (Int c = 0; c < all.k; ++c) {
                const double p = rows.power[c * ROWS + r];
                residual[first + c] = reduced(residual[first + c], whole(p * units));
                variance[first + c] = added(variance[first + c], whole(variance_at(p, ratio) * units));
            }
            residual[own] = added(residual[own], whole_row);
        }
    });
}

inline Int whole_loss(const LabeledScores& all, const std::uint8_t* held_out, double scale, double most, double* scratch) {
    Int total = 0;
    each_stretch(all.scores, all.n, all.k, scratch, [&](Int from, Int many, const Stretch& rows) {
        for (Int r = 0; r < many; ++r) {
            if (!held_out[from + r]) continue;
            const double loss = rows.log_sum[r] - rows.shifted[all.labels[from + r] * ROWS + r];
            total = added(total, whole((loss < most ? loss : most) * (all.weight[(from + r) * all.step] * scale) + 0.5));
        }
    });
    return total;
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
