// Sums of Gaussian kernels by class at several bandwidths: kernels of each are powers of those of the one before.
#pragma once

#include "posterior.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

constexpr Int NEARBY = 128;  // kernels computed at a time

using Lanes = Pack<static_cast<int>(BESIDE)>;

CALIBAYES_INLINE double nearest_of(const double* away, Int m) {
    double low[BESIDE];
    for (Int i = 0; i < BESIDE; ++i) low[i] = away[0];
    Int i = 0;
    for (; i + BESIDE <= m; i += BESIDE)
        for (Int j = 0; j < BESIDE; ++j) low[j] = away[i + j] < low[j] ? away[i + j] : low[j];
    for (; i < m; ++i) low[0] = away[i] < low[0] ? away[i] : low[0];
    for (Int j = 1; j < BESIDE; ++j) low[0] = low[j] < low[0] ? low[j] : low[0];
    return low[0] > 0.0 ? low[0] : 0.0;
}

// Adds the kernels of up to NEARBY distances to `lanes` (steps, BESIDE). Bandwidths at which all of them are 0 are
// skipped.
CALIBAYES_INLINE void add_kernels(const double* away, const double* weight, Int many, double nearest, double scale,
                                  const Int* gaps, Int steps, double* lanes) {
    double kernel[NEARBY], own[NEARBY];
    for (Int i = 0; i < NEARBY; ++i) {
        const double square = i < many ? away[i] - nearest : 0.0;
        kernel[i] = square > 0.0 ? -scale * square : 0.0;
        own[i] = i < many ? weight[i] : 0.0;
    }
    double least = -1e300;  // largest exponent of these
    for (Int i = 0; i < many; ++i) least = kernel[i] > least ? kernel[i] : least;
    for (Int i = 0; i < NEARBY; ++i) kernel[i] = exp_of(kernel[i]);
    for (Int step = 0; step < steps; ++step) {
        for (Int gap = 0; gap < gaps[step]; ++gap) least *= 2.0;
        if (least < -745.0) break;
        Lanes sum = Lanes::load(lanes + step * BESIDE);
        for (Int i = 0; i < NEARBY; i += BESIDE) {
            Lanes power = Lanes::load(kernel + i);
            for (Int gap = 0; gap < gaps[step]; ++gap) power = power * power;
            power.store(kernel + i);
            sum = sum + power * Lanes::load(own + i);
        }
        sum.store(lanes + step * BESIDE);
    }
}

inline void kernel_sums(const double* away, Int n, Int m, const double* weight, const Int* ends, Int k, double scale,
                        const Int* gaps, Int steps, double* sums, double* nearest, double* lanes) {
    for (Int row = 0; row < n; ++row, away += m) {
        const double low = nearest_of(away, m);
        nearest[row] = low;
        for (Int c = 0; c < k; ++c) {
            for (Int i = 0; i < steps * BESIDE; ++i) lanes[i] = 0.0;
            for (Int from = ends[c]; from < ends[c + 1]; from += NEARBY) {
                const Int many = ends[c + 1] - from < NEARBY ? ends[c + 1] - from : NEARBY;
                add_kernels(away + from, weight + from, many, low, scale, gaps, steps, lanes);
            }
            for (Int step = 0; step < steps; ++step) {
                double sum = 0.0;
                for (Int i = 0; i < BESIDE; ++i) sum += lanes[step * BESIDE + i];
                sums[(step * n + row) * k + c] = sum;
            }
        }
    }
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
