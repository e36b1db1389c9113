// Posterior probabilities, class weights of the next update and scores from joint log densities in one pass.
#pragma once

#include <cmath>
#include <cstring>

#include "vector_row.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

// e^x for x <= 0, without a branch, so that loops are vectorized: x = m log 2 + r, a Taylor polynomial in r
// (|r| < 0.35, so its error is below half a unit in the last place), and m added to the exponent.
CALIBAYES_INLINE double exp_of(double x) {
    constexpr double LOG2_HIGH = 6.93147180369123816490e-01, LOG2_LOW = 1.90821492927058770002e-10;
    constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
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

// log x for normal x > 0: x = 2^m y with y about 1, and the series of the inverse hyperbolic tangent of (y - 1) / (y + 1).
CALIBAYES_INLINE double log_of(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, 8);
    // Shift the exponent so that y lies between sqrt(1/2) and sqrt(2).
    const std::uint64_t moved = bits - 0x3fe6a09e667f3bcdull;
    const double m = static_cast<double>(static_cast<std::int32_t>(static_cast<std::int64_t>(moved) >> 52));
    const std::uint64_t own = bits - (moved & 0xfff0000000000000ull);
    double y;
    std::memcpy(&y, &own, 8);
    const double f = (y - 1.0) / (y + 1.0), z = f * f;
    double p = 1.0 / 23.0;
    p = p * z + 1.0 / 21.0;
    p = p * z + 1.0 / 19.0;
    p = p * z + 1.0 / 17.0;
    p = p * z + 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z + 1.0 / 7.0;
    p = p * z + 1.0 / 5.0;
    p = p * z + 1.0 / 3.0;
    return m * 6.93147180559945309417e-01 + (2.0 * f + 2.0 * f * (z * p));
}

// A block of rows stored class by class, so that loops over rows are vectorized for any number of classes.
struct Stretch {
    double *shifted, *power;  // (k, ROWS) each: log joint densities less the largest, and their exponentials
    double top[ROWS], sum[ROWS], log_sum[ROWS];

    // A row with probability 0 in every class, or with NaN, has a uniform posterior.
    CALIBAYES_INLINE void read(const double* log_joint, Int n, Int k, double* scratch) {
        shifted = scratch, power = scratch + k * ROWS;
        for (Int c = 0; c < k; ++c) {
            double* to = shifted + c * ROWS;
            for (Int r = 0; r < n; ++r) to[r] = log_joint[r * k + c];
            for (Int r = n; r < ROWS; ++r) to[r] = 0.0;
        }
        double odd[ROWS];
        for (Int r = 0; r < ROWS; ++r) top[r] = shifted[r], odd[r] = 0.0, sum[r] = 0.0;
        for (Int c = 0; c < k; ++c) {
            const double* CALIBAYES_ALONE own = shifted + c * ROWS;
            for (Int r = 0; r < ROWS; ++r) {
                top[r] = own[r] > top[r] ? own[r] : top[r];
                odd[r] += own[r] - own[r] == 0.0 || own[r] < 0.0 ? 0.0 : own[r];  // NaN and inf
            }
        }
        for (Int r = 0; r < ROWS; ++r) top[r] = odd[r] == 0.0 ? top[r] : odd[r];
        for (Int c = 0; c < k; ++c) {
            double *CALIBAYES_ALONE own = shifted + c * ROWS, *CALIBAYES_ALONE out = power + c * ROWS;
            for (Int r = 0; r < ROWS; ++r) {
                own[r] = top[r] - top[r] == 0.0 ? own[r] - top[r] : 0.0;
                out[r] = exp_of(own[r]);
                sum[r] += out[r];
            }
        }
        for (Int r = 0; r < ROWS; ++r) log_sum[r] = log_of(sum[r]);
    }
};

CALIBAYES_INLINE void count(Scores& scores, double weight, double wrong, double soft, double log_true) {
    if (weight == 0.0) return;  // a value of weight 0 may be infinite or NaN
    scores.weight += weight;
    scores.error += weight * wrong;
    scores.soft_error += weight * soft;
    scores.log_loss -= weight * log_true;
}

inline Assessment assess(const double* log_joint, Int n, Int k, const Int* labels, const double* weight,
                         const double* held_out, double generative, double decided, double* weights, double* scratch) {
    Assessment found{};
    Stretch rows;
    for (Int from = 0; from < n; from += ROWS) {
        const Int many = n - from < ROWS ? n - from : ROWS;
        rows.read(log_joint + from * k, many, k, scratch);
        double others[ROWS], truth[ROWS], best[ROWS], own[ROWS];
        Int label[ROWS], first[ROWS];
        for (Int r = 0; r < ROWS; ++r) {
            label[r] = r < many ? labels[from + r] : -1;
            own[r] = r < many ? weight[from + r] : 0.0;
            others[r] = truth[r] = 0.0, best[r] = rows.shifted[r], first[r] = 0;
        }
        for (Int c = 0; c < k; ++c) {
            const double *CALIBAYES_ALONE e = rows.power + c * ROWS, *CALIBAYES_ALONE x = rows.shifted + c * ROWS;
            for (Int r = 0; r < ROWS; ++r) {
                others[r] += label[r] == c ? 0.0 : e[r];
                truth[r] = label[r] == c ? x[r] : truth[r];
                first[r] = x[r] > best[r] ? c : first[r];
                best[r] = x[r] > best[r] ? x[r] : best[r];
            }
        }
        for (Int r = 0; r < many; ++r) {
            const Int y = label[r];
            if (y < 0 || y >= k) continue;
            const double log_true = truth[r] - rows.log_sum[r], soft = others[r] / rows.sum[r], wrong = first[r] != y;
            count(found.train, own[r], wrong, soft, log_true);
            count(found.held_out, held_out[from + r], wrong, soft, log_true);
            double gain = generative != 1.0 ? (1.0 - generative) * log_true : 0.0;
            if (generative != 0.0) gain += generative * log_joint[(from + r) * k + y];
            if (own[r] != 0.0) found.objective += own[r] * gain;
        }
        if (!weights) continue;
        for (Int c = 0; c < k; ++c) {
            double* CALIBAYES_ALONE e = rows.power + c * ROWS;
            for (Int r = 0; r < ROWS; ++r) {
                const double share = (1.0 - generative) / rows.sum[r];
                const double left = label[r] == c ? generative + others[r] * share : -share * e[r];
                e[r] = (left < 0.0 ? -left : left) > decided ? own[r] * left : 0.0;
            }
            for (Int r = 0; r < many; ++r) weights[(from + r) * k + c] = e[r];
        }
    }
    return found;
}

inline void normalize(const double* log_joint, Int n, Int k, double* log_posterior, double* evidence, double* scratch) {
    Stretch rows;
    for (Int from = 0; from < n; from += ROWS) {
        const Int many = n - from < ROWS ? n - from : ROWS;
        rows.read(log_joint + from * k, many, k, scratch);
        for (Int r = 0; r < many; ++r) evidence[from + r] = rows.top[r] + rows.log_sum[r];
        for (Int c = 0; c < k; ++c)
            for (Int r = 0; r < many; ++r)
                log_posterior[(from + r) * k + c] = rows.shifted[c * ROWS + r] - rows.log_sum[r];
    }
}

// Position of the largest entry; NaN is larger than any number, as in NumPy. Blocks of rows, so that loops are vectorized.
inline void largest(const double* rows, Int n, Int k, Int* which) {
    for (Int from = 0; from < n; from += ROWS) {
        const Int many = n - from < ROWS ? n - from : ROWS;
        double best[ROWS] = {}, now[ROWS] = {};
        Int first[ROWS] = {};
        for (Int r = 0; r < many; ++r) best[r] = rows[(from + r) * k];
        for (Int c = 1; c < k; ++c) {
            for (Int r = 0; r < many; ++r) now[r] = rows[(from + r) * k + c];
            for (Int r = 0; r < ROWS; ++r) {
                const bool larger = best[r] == best[r] && !(now[r] <= best[r]);
                first[r] = larger ? c : first[r];
                best[r] = larger ? now[r] : best[r];
            }
        }
        for (Int r = 0; r < many; ++r) which[from + r] = first[r];
    }
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
