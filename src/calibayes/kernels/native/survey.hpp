// Sweeps over the numbers of a column: moments of those that are known, and which ones may be in a sample.
#pragma once

#include <cmath>

#include "pack.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

constexpr Int SUM_LANES = 8;

// Sums in lanes; those of a stretch of rows are added to the total, which keeps rounding errors small.
struct LaneSums {
    double lanes[SUM_LANES] = {}, total = 0.0;

    CALIBAYES_INLINE void finish() {
        for (double& lane : lanes) total += lane, lane = 0.0;
    }
};

// Calls add(row, lane) for rows (n,) in turn, and finish() after each stretch of them.
template <class Add, class Finish>
CALIBAYES_INLINE void sweep_in_lanes(Int n, Add add, Finish finish) {
    for (Int begin = 0; begin < n; begin += STRETCH) {
        const Int end = begin + STRETCH < n ? begin + STRETCH : n, even = end - (end - begin) % SUM_LANES;
        for (Int r = begin; r < even; r += SUM_LANES)
            for (Int lane = 0; lane < SUM_LANES; ++lane) add(r + lane, lane);
        for (Int r = even; r < end; ++r) add(r, r - even);
        finish();
    }
}

KnownMoments known_moments(const double* x, Int n) {
    KnownMoments all{0.0, HUGE_VAL, -HUGE_VAL, 0.0, 0.0, 0.0};
    LaneSums sums, counts, differences, squares;
    double low[SUM_LANES], high[SUM_LANES];
    for (Int lane = 0; lane < SUM_LANES; ++lane) low[lane] = all.low, high[lane] = all.high;
    const auto add_number = [&](Int r, Int lane) {
        const double value = x[r];
        sums.lanes[lane] += value == value ? value : 0.0;
        counts.lanes[lane] += value == value ? 1.0 : 0.0;
        low[lane] = value < low[lane] ? value : low[lane];
        high[lane] = value > high[lane] ? value : high[lane];
    };
    sweep_in_lanes(n, add_number, [&] { sums.finish(), counts.finish(); });
    if (counts.total == 0.0) return all;
    const double pivot = sums.total / counts.total;
    const auto add_difference = [&](Int r, Int lane) {
        const double difference = x[r] == x[r] ? x[r] - pivot : 0.0;
        differences.lanes[lane] += difference;
        squares.lanes[lane] += difference * difference;
    };
    sweep_in_lanes(n, add_difference, [&] { differences.finish(), squares.finish(); });
    for (Int lane = 0; lane < SUM_LANES; ++lane) {
        all.low = low[lane] < all.low ? low[lane] : all.low;
        all.high = high[lane] > all.high ? high[lane] : all.high;
    }
    const double offset = differences.total / counts.total;
    const double spread = squares.total - counts.total * offset * offset;
    all.count = counts.total, all.pivot = pivot, all.offset = offset, all.squares = spread < 0.0 ? 0.0 : spread;
    return all;
}

void sample_flags(const double* x, Int n, std::uint64_t bound, std::uint8_t* flags) {
    for (Int r = 0; r < n; ++r) flags[r] = sample_hash(x[r] + 0.0) <= bound;
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
