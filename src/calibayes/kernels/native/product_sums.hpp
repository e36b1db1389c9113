// Sums of kernels around rows, for columns and for pairs of columns: products of one kernel for each column, or kernels with a
// full bandwidth matrix.
#pragma once

#include "posterior.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

using Eight = Pack<8>;

CALIBAYES_INLINE double sum_of(const Eight& lanes) {
    double each[8];
    lanes.store(each);
    return ((each[0] + each[4]) + (each[1] + each[5])) + ((each[2] + each[6]) + (each[3] + each[7]));
}

// Adds the inner products of `left` with R columns to `sums`, eight lanes each.
template <int R>
CALIBAYES_INLINE void add_products(const double* left, const double* kernels, const Int* columns, double* sums) {
    Eight lanes[R];
    for (int r = 0; r < R; ++r) lanes[r] = Eight::load(sums + 8 * r);
    for (Int i = 0; i < CENTERS; i += 8) {
        const Eight own = Eight::load(left + i);
        for (int r = 0; r < R; ++r) lanes[r] = lanes[r] + own * Eight::load(kernels + columns[r] * CENTERS + i);
    }
    for (int r = 0; r < R; ++r) lanes[r].store(sums + 8 * r);
}

// Kernels of numbers, exp(scale * gap^2), or of levels, by whether they are equal; 0 for a gap that is missing (NaN).
CALIBAYES_INLINE void kernels_of(const double* gaps, double scale, double same, double other, double* kernels) {
    if (same > 0.0)
        for (Int i = 0; i < CENTERS; ++i) kernels[i] = gaps[i] == 0.0 ? same : gaps[i] == gaps[i] ? other : 0.0;
    else
        for (Int i = 0; i < CENTERS; ++i) kernels[i] = exp_of(scale * (gaps[i] * gaps[i]));
}

CALIBAYES_INLINE void add_full(const double* left, const double* right, const double* shape, const double* weight,
                               double* sums) {
    Eight lanes = Eight::load(sums);
    for (Int i = 0; i < CENTERS; i += 8) {
        double kernel[8];
        for (Int j = 0; j < 8; ++j) {
            const double x = left[i + j], y = right[i + j];
            kernel[j] = exp_of((shape[0] * x + shape[1] * y) * x + shape[2] * (y * y));
        }
        lanes = lanes + Eight::load(kernel) * Eight::load(weight + i);
    }
    lanes.store(sums);
}

// Adds the sums of pairs over one block of centers, eight lanes each; pairs with the same first column are taken together.
CALIBAYES_INLINE void add_pairs(const ProductKernels& of, const double* gaps, const double* kernels, const double* weight,
                                double* sums) {
    const Int *first = of.pairs, *second = of.pairs + of.p;
    double weighted[CENTERS];
    Int current = -1;
    for (Int q = 0; q < of.p;) {
        const double* shape = of.shapes + 3 * q;
        if (shape[0] == shape[0]) {
            add_full(gaps + first[q] * CENTERS, gaps + second[q] * CENTERS, shape, weight, sums + 8 * q);
            ++q;
            continue;
        }
        if (first[q] != current) {
            current = first[q];
            for (Int i = 0; i < CENTERS; ++i) weighted[i] = kernels[current * CENTERS + i] * weight[i];
        }
        Int many = 1;
        while (many < 8 && q + many < of.p && first[q + many] == current && shape[3 * many] != shape[3 * many]) ++many;
        for (; many >= 8; many -= 8, q += 8) add_products<8>(weighted, kernels, second + q, sums + 8 * q);
        for (; many >= 4; many -= 4, q += 4) add_products<4>(weighted, kernels, second + q, sums + 8 * q);
        for (; many > 0; --many, ++q) add_products<1>(weighted, kernels, second + q, sums + 8 * q);
    }
}

// Adds the sums of columns, eight lanes each, and computes the gaps and kernels of pairs, (d, CENTERS) each.
CALIBAYES_INLINE void add_columns(const ProductKernels& of, const double* row, Int from, Int many, const double* weight,
                                  double* gaps, double* kernels, double* sums) {
    double alone[CENTERS];
    for (Int j = 0; j < of.d; ++j) {
        const double *center = of.centers + j * of.m + from, same = of.levels[j], other = of.levels[of.d + j];
        double* gap = gaps + j * CENTERS;
        for (Int i = 0; i < many; ++i) gap[i] = row[j] - center[i];
        for (Int i = many; i < CENTERS; ++i) gap[i] = 0.0;
        kernels_of(gap, of.scales[j], same, other, alone);
        Eight lanes = Eight::load(sums + 8 * j);
        for (Int i = 0; i < CENTERS; i += 8) lanes = lanes + Eight::load(alone + i) * Eight::load(weight + i);
        lanes.store(sums + 8 * j);
        if (of.p) kernels_of(gap, of.scales[of.d + j], same, other, kernels + j * CENTERS);
    }
}

// Sums (n, d) of columns and (n, p) of pairs; scratch has 2 d CENTERS + 8 (d + p) numbers.
inline void product_sums(const ProductKernels& of, double* single, double* pairs, double* scratch) {
    const Int all = of.d + of.p;
    double *gaps = scratch, *kernels = gaps + of.d * CENTERS, *sums = kernels + of.d * CENTERS;
    double weight[CENTERS];
    for (Int row = 0; row < of.n; ++row) {
        for (Int i = 0; i < 8 * all; ++i) sums[i] = 0.0;
        for (Int from = 0; from < of.m; from += CENTERS) {
            const Int many = of.m - from < CENTERS ? of.m - from : CENTERS, own = of.own[row];
            for (Int i = 0; i < CENTERS; ++i) weight[i] = i < many ? of.weights[from + i] : 0.0;
            if (own >= from && own < from + many) weight[own - from] = weight[own - from] > 1.0 ? weight[own - from] - 1.0 : 0.0;
            add_columns(of, of.rows + row * of.d, from, many, weight, gaps, kernels, sums);
            add_pairs(of, gaps, kernels, weight, sums + 8 * of.d);
        }
        for (Int j = 0; j < of.d; ++j) single[row * of.d + j] = sum_of(Eight::load(sums + 8 * j));
        for (Int q = 0; q < of.p; ++q) pairs[row * of.p + q] = sum_of(Eight::load(sums + 8 * (of.d + q)));
    }
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
