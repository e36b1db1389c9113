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

// Sums of one row, at (steps, n, k) `sums` of row `row`; returns the distance of the nearest center.
CALIBAYES_INLINE double sums_of_row(const double* away, Int m, const double* weight, const Int* ends, Int k,
                                    double scale, const Int* gaps, Int steps, Int row, Int n, double* sums,
                                    double* lanes) {
    const double low = nearest_of(away, m);
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
    return low;
}

inline void kernel_sums(const double* away, Int n, Int m, const double* weight, const Int* ends, Int k, double scale,
                        const Int* gaps, Int steps, double* sums, double* nearest, double* lanes) {
    for (Int row = 0; row < n; ++row, away += m)
        nearest[row] = sums_of_row(away, m, weight, ends, k, scale, gaps, steps, row, n, sums, lanes);
}

// Squared distances (R, m) of R rows (R, d) to centers, |x|^2 - 2 x'c + |c|^2. The factor (d + 2, m) has -2 c, ones, |c|^2.
template <int R>
CALIBAYES_INLINE void distances_of(const double* rows, Int d, const double* factor, Int m, double* away) {
    using Wide = Pack<2 * LANES>;
    const double* squares = factor + (d + 1) * m;
    double own[R];
    for (int r = 0; r < R; ++r) {
        own[r] = 0.0;
        for (Int j = 0; j < d; ++j) own[r] += rows[r * d + j] * rows[r * d + j];
    }
    Int i = 0;
    for (; i + 2 * LANES <= m; i += 2 * LANES) {
        Wide sum[R];
        for (int r = 0; r < R; ++r) sum[r] = Wide::load(squares + i) + Wide::all(own[r]);
        for (Int j = 0; j < d; ++j) {
            const Wide column = Wide::load(factor + j * m + i);
            for (int r = 0; r < R; ++r) sum[r] = sum[r] + column * Wide::all(rows[r * d + j]);
        }
        for (int r = 0; r < R; ++r) sum[r].store(away + r * m + i);
    }
    for (; i < m; ++i)
        for (int r = 0; r < R; ++r) {
            double sum = squares[i] + own[r];
            for (Int j = 0; j < d; ++j) sum += factor[j * m + i] * rows[r * d + j];
            away[r * m + i] = sum;
        }
}

// Kernel sums around rows (n, d); `away` (TOGETHER, m) is scratch. Rows are taken together, so that the centers are read
// from memory less often.
inline void kernel_sums_around(const double* rows, Int n, Int d, const double* factor, Int m, const double* weight,
                               const Int* ends, Int k, double scale, const Int* gaps, Int steps, double* sums,
                               double* nearest, double* lanes, double* away) {
    Int row = 0;
    for (; row + TOGETHER <= n; row += TOGETHER) {
        distances_of<TOGETHER>(rows + row * d, d, factor, m, away);
        for (Int r = 0; r < TOGETHER; ++r)
            nearest[row + r] = sums_of_row(away + r * m, m, weight, ends, k, scale, gaps, steps, row + r, n, sums, lanes);
    }
    for (; row < n; ++row) {
        distances_of<1>(rows + row * d, d, factor, m, away);
        nearest[row] = sums_of_row(away, m, weight, ends, k, scale, gaps, steps, row, n, sums, lanes);
    }
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
