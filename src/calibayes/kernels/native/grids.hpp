// Positions on uniform grids: linear binning, and densities interpolated linearly between grid points.
#pragma once

#include <cmath>
#include <cstring>

#include "vector_row.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

// Location of an entry: the two neighboring cells of its column and the weight of the upper one; none if it is missing.
struct Place {
    Int lower, upper;
    double share, log_tail;
    bool there;
};

CALIBAYES_INLINE Place place_of(double position, Int points) {
    const double last = static_cast<double>(points - 1);
    if (position != position) return {0, 0, 0.0, 0.0, false};
    if (position < 0.0) return {points, points, 0.0, -3.0 * std::log1p(-position / last), true};
    if (position > last) return {points + 1, points + 1, 0.0, -3.0 * std::log1p((position - last) / last), true};
    Int lower = static_cast<Int>(position);
    lower = lower > points - 2 ? points - 2 : lower;
    return {lower, lower + 1, position - static_cast<double>(lower), 0.0, true};
}

// A product of many numbers: exponents are summed, mantissas (between 1 and 2) multiplied, which overflows after 1000.
template <int K>
struct Product {
    double part[K], rest[K];
    std::int64_t exponent[K];

    CALIBAYES_INLINE void clear() {
        for (int c = 0; c < K; ++c) part[c] = 1.0, rest[c] = 0.0, exponent[c] = 0;
    }
    CALIBAYES_INLINE void multiply(const double* factor) {
        bool small = false;
        for (int c = 0; c < K; ++c) small |= !(factor[c] >= 2.3e-308);
        if (small) {  // zero, subnormal or NaN: add the logarithm
            for (int c = 0; c < K; ++c) rest[c] += std::log(factor[c]);
            return;
        }
        for (int c = 0; c < K; ++c) {
            std::int64_t bits;
            std::memcpy(&bits, factor + c, 8);
            exponent[c] += (bits >> 52) - 1023;
            bits = (bits & 0x000fffffffffffff) | 0x3ff0000000000000;
            double mantissa;
            std::memcpy(&mantissa, &bits, 8);
            part[c] *= mantissa;
        }
    }
    CALIBAYES_INLINE void settle() {
        for (int c = 0; c < K; ++c) rest[c] += std::log(part[c]), part[c] = 1.0;
    }
    CALIBAYES_INLINE double log(int c) const {
        return rest[c] + std::log(part[c]) + static_cast<double>(exponent[c]) * 6.93147180559945309417e-01;
    }
};

constexpr Int SETTLE = 512;

// Sums of log densities, from densities (cells, K); column j has cells from start[j], scaled down by exp(log_scale[j]).
template <int K>
void binned_sums(const Numbers<double>& x, const Int* points, const Int* start, const double* density,
                 const double* log_scale, double* sums) {
    Product<K> product;
    for (Int r = 0; r < x.n; ++r) {
        const double* row = x.data + r * x.stride;
        double shared = 0.0;
        product.clear();
        for (Int j = 0; j < x.d; ++j) {
            const Place at = place_of(row[j], points[j]);
            if (!at.there) continue;
            const double *low = density + (start[j] + at.lower) * K, *high = density + (start[j] + at.upper) * K;
            double value[K];
            for (int c = 0; c < K; ++c) value[c] = (1.0 - at.share) * low[c] + at.share * high[c];
            product.multiply(value);
            shared += at.log_tail + log_scale[j];
            if (j % SETTLE == SETTLE - 1) product.settle();
        }
        for (int c = 0; c < K; ++c) sums[r * K + c] = product.log(c) + shared;
    }
}

template <int K>
void binned_counts(const Numbers<double>& x, const Int* points, const Int* start, const double* weights,
                   double* table) {
    for (Int r = 0; r < x.n; ++r) {
        const double* row = x.data + r * x.stride;
        const auto own = Pack<K>::load(weights + r * K);
        for (Int j = 0; j < x.d; ++j) {
            const Place at = place_of(row[j], points[j]);
            if (!at.there) continue;
            double *low = table + (start[j] + at.lower) * K, *high = table + (start[j] + at.upper) * K;
            (Pack<K>::load(low) + own * Pack<K>::all(1.0 - at.share)).store(low);
            if (at.share != 0.0) (Pack<K>::load(high) + own * Pack<K>::all(at.share)).store(high);
        }
    }
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
