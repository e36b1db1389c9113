// From joint log densities to posterior probabilities, the weights of the next step, and how good they are, in one go.
#pragma once

#include <cmath>
#include <cstring>

#include "pack.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

// e^x for x <= 0, without a branch, so that loops over it become vectors: x = m log 2 + r, a Taylor polynomial in r
// (|r| < 0.35, so its error is below half a unit in the last place), and m added to the exponent.
CALIBAYES_INLINE double exp_of(double x) {
    constexpr double LOG2_HIGH = 6.93147180369123816490e-01, LOG2_LOW = 1.90821492927058770002e-10;
    constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to a whole number
    const double safe = x > -708.0 ? x : -708.0;
    const double shifted = safe * 1.44269504088896340736 + ROUND;
    const double m = shifted - ROUND;
    const double r = (safe - m * LOG2_HIGH) - m * LOG2_LOW;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    std::uint64_t bits, exponent;
    std::memcpy(&bits, &p, 8);
    std::memcpy(&exponent, &shifted, 8);
    bits += exponent << 52;
    std::memcpy(&p, &bits, 8);
    return x > -708.0 ? p : 0.0;
}

// Rows at a time: their exponentials stay in the nearest cache.
constexpr Int FEW = 64;

inline Int rows_at_once(Int k) {
    const Int rows = SCRATCH / (k > 0 ? k : 1);
    return rows < 1 ? 1 : rows > FEW ? FEW : rows;
}

// A row about its largest entry. One that no class can explain, or with NaN, is flat.
CALIBAYES_INLINE double shift(const double* row, Int k, double* to) {
    double top = row[0], odd = 0.0;
    for (Int c = 0; c < k; ++c) top = row[c] > top ? row[c] : top;
    for (Int c = 0; c < k; ++c) odd += row[c] != row[c];
    const bool flat = !(top - top == 0.0) || odd != 0.0;
    for (Int c = 0; c < k; ++c) to[c] = flat ? 0.0 : row[c] - top;
    return odd != 0.0 ? row[0] + odd * NAN : top;
}

CALIBAYES_INLINE double total(const double* row, Int k) {
    double sum = 0.0;
    for (Int c = 0; c < k; ++c) sum += row[c];
    return sum;
}

CALIBAYES_INLINE Int first_largest(const double* row, Int k) {
    Int which = 0;
    for (Int c = 1; c < k; ++c) which = row[which] == row[which] && !(row[c] <= row[which]) ? c : which;
    return which;
}

CALIBAYES_INLINE void count(Scores& scores, double weight, bool wrong, double soft, double log_true) {
    if (weight == 0.0) return;  // what is not counted may be anything
    scores.weight += weight;
    scores.error += wrong ? weight : 0.0;
    scores.soft_error += weight * soft;
    scores.log_loss -= weight * log_true;
}

inline Assessment assess(const double* log_joint, Int n, Int k, const Int* labels, const double* weight,
                         const double* held_out, double generative, double decided, double* weights, double* scratch) {
    Assessment found{};
    double *shifted = scratch, *power = scratch + (k > SCRATCH ? k : SCRATCH);
    const Int step = rows_at_once(k);
    for (Int from = 0; from < n; from += step) {
        const Int rows = n - from < step ? n - from : step;
        for (Int r = 0; r < rows; ++r) shift(log_joint + (from + r) * k, k, shifted + r * k);
        for (Int i = 0; i < rows * k; ++i) power[i] = exp_of(shifted[i]);
        for (Int r = 0; r < rows; ++r) {
            const Int y = labels[from + r];
            const double own = weight[from + r], *e = power + r * k;
            const double sum = total(e, k);
            if (y >= 0 && y < k) {
                const double log_true = shifted[r * k + y] - std::log(sum);
                const double others = total(e, y) + total(e + y + 1, k - y - 1);
                const bool wrong = first_largest(shifted + r * k, k) != y;
                count(found.train, own, wrong, others / sum, log_true);
                count(found.held_out, held_out[from + r], wrong, others / sum, log_true);
                double gain = generative != 1.0 ? (1.0 - generative) * log_true : 0.0;
                if (generative != 0.0) gain += generative * log_joint[(from + r) * k + y];
                if (own != 0.0) found.objective += own * gain;
            }
            if (weights) {
                double* to = weights + (from + r) * k;
                const double share = (1.0 - generative) / sum;
                for (Int c = 0; c < k; ++c) to[c] = share * e[c] > decided ? -own * (share * e[c]) : 0.0;
                if (y >= 0 && y < k) {
                    const double others = total(e, y) + total(e + y + 1, k - y - 1);
                    const double left = generative + (1.0 - generative) * (others / sum);
                    to[y] = left > decided ? own * left : 0.0;
                }
            }
        }
    }
    return found;
}

inline void normalise(const double* log_joint, Int n, Int k, double* log_posterior, double* evidence,
                      double* power) {
    const Int step = rows_at_once(k);
    for (Int from = 0; from < n; from += step) {
        const Int rows = n - from < step ? n - from : step;
        for (Int r = 0; r < rows; ++r)
            evidence[from + r] = shift(log_joint + (from + r) * k, k, log_posterior + (from + r) * k);
        for (Int i = 0; i < rows * k; ++i) power[i] = exp_of(log_posterior[from * k + i]);
        for (Int r = 0; r < rows; ++r) {
            const double log_sum = std::log(total(power + r * k, k));
            evidence[from + r] += log_sum;
            for (Int c = 0; c < k; ++c) log_posterior[(from + r) * k + c] -= log_sum;
        }
    }
}

inline void largest(const double* rows, Int n, Int k, Int* which) {
    for (Int r = 0; r < n; ++r) which[r] = first_largest(rows + r * k, k);
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
