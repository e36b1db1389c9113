// Sweeps over the numbers of a column: moments of those that are known, and which ones may be in a sample.
#pragma once

#include <cmath>

#include "vector_row.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

constexpr int WIDE_SUMS = 32;

// Adds numbers that are not NaN, WIDE at a time; each lane has its own sums, minimum and maximum.
template <int WIDE>
CALIBAYES_INLINE void add_known(const double* x, Int n, double pivot, double* CALIBAYES_ALONE low,
                                double* CALIBAYES_ALONE high, double* CALIBAYES_ALONE sum,
                                double* CALIBAYES_ALONE squares) {
    for (Int r = 0; r + WIDE <= n; r += WIDE)
        for (int l = 0; l < WIDE; ++l) {
            const double value = x[r + l], away = (value == value ? value : pivot) - pivot;
            low[l] = value < low[l] ? value : low[l];
            high[l] = value > high[l] ? value : high[l];
            sum[l] += away;
            squares[l] += away * away;
        }
}

// Adds the sums of lanes to a total, and sets them to zero.
CALIBAYES_INLINE void collect(double* lanes, double& total) {
    for (int l = 0; l < WIDE_SUMS; ++l) total += lanes[l], lanes[l] = 0.0;
}

// Lanes are collected after each stretch of rows, which keeps rounding errors small.
KnownMoments known_moments(const double* x, Int n, double pivot) {
    KnownMoments all{HUGE_VAL, -HUGE_VAL, 0.0, 0.0};
    double sum[WIDE_SUMS] = {}, squares[WIDE_SUMS] = {}, low[WIDE_SUMS], high[WIDE_SUMS];
    for (int l = 0; l < WIDE_SUMS; ++l) low[l] = all.low, high[l] = all.high;
    for (Int begin = 0; begin < n; begin += STRETCH) {
        const Int size = n - begin < STRETCH ? n - begin : STRETCH, rest = size % WIDE_SUMS;
        add_known<WIDE_SUMS>(x + begin, size, pivot, low, high, sum, squares);
        add_known<1>(x + begin + size - rest, rest, pivot, low, high, sum, squares);
        collect(sum, all.sum), collect(squares, all.squares);
    }
    for (int l = 0; l < WIDE_SUMS; ++l) {
        all.low = low[l] < all.low ? low[l] : all.low;
        all.high = high[l] > all.high ? high[l] : all.high;
    }
    return all;
}

void sample_flags(const double* x, Int n, std::uint64_t bound, std::uint8_t* flags) {
    for (Int r = 0; r < n; ++r) flags[r] = sample_hash(x[r] + 0.0) <= bound;
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
