// The best split of a node, the rows of its children, and the leaves of rows. Gains are computed with the operations of the
// NumPy version in its order, so that both find the same split.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels.hpp"

namespace calibayes {

struct Split {
    double gain = 0.0;
    Int column = -1, most = 0;
    bool missing_left = false;
};

// Bounds of the change of the log odds of the second class.
struct Bounds {
    double low, high;
    double clip(double change) const { return std::min(std::max(change, low), high); }
};

// Which splits are possible: the columns that may be split, of which the first is taken if gains are equal, and directions
// of all d columns.
struct SplitOptions {
    const std::int32_t* columns;
    Int count;
    const std::int8_t* direction;
    double prior, least;
};

// A packed number is residual * 2^32 + variance, with 0 <= variance < 2^32.
inline double variance_of(Int packed) { return static_cast<double>(packed & 0xffffffffll); }
inline double residual_of(Int packed) { return static_cast<double>((packed - (packed & 0xffffffffll)) / 4294967296ll); }

// A full step of the log odds of the second of two classes, of which it alone is packed.
inline double log_odds_change(Int packed, double prior) { return 2.0 * (residual_of(packed) / (variance_of(packed) + prior)); }

class SplitSearch {
public:
    SplitSearch(const Int* first, Int k, const SplitOptions& options)
        : first_(first), k_(k), options_(options), total_(static_cast<std::size_t>(k)),
          left_(static_cast<std::size_t>(k)), right_(static_cast<std::size_t>(k)) {}

    Split best(const Int* sums, Bounds bounds) { return best(sums, bounds, 0, options_.count); }

    // The best split of the columns from `begin` on, before `end`, in their order.
    Split best(const Int* sums, Bounds bounds, Int begin, Int end) {
        sums_ = sums;
        bounds_ = bounds;
        best_ = Split();
        for (Int i = begin; i < end; ++i) {
            const Int j = options_.columns[i];
            if (first_[j + 1] - first_[j] >= 2) try_column(j);
        }
        return best_;
    }

private:
    const Int* cell(Int j, Int code) const { return sums_ + (first_[j] + code) * k_; }

    void try_column(Int j) {
        const Int codes = first_[j + 1] - first_[j];
        std::fill(total_.begin(), total_.end(), Int(0));
        for (Int v = 0; v < codes; ++v)
            for (Int c = 0; c < k_; ++c) total_[c] = added(total_[c], cell(j, v)[c]);
        double size = 0.0, whole = 0.0;
        bool gaps = false;
        for (Int c = 0; c < k_; ++c) {
            size += variance_of(total_[c]);
            whole += quality(total_[c]);
            gaps |= cell(j, 0)[c] != 0;
        }
        for (int side = 0; side < (gaps ? 2 : 1); ++side) try_side(j, codes, side == 1, gaps, size, whole);
    }

    double quality(Int packed) const {
        const double deviation = residual_of(packed);
        return deviation * deviation / (variance_of(packed) + options_.prior);
    }

    // Adds a cell to the left side; false if it is empty, so that this side was tried before.
    bool add_to_left(const Int* numbers) {
        bool any = false;
        for (Int c = 0; c < k_; ++c) {
            left_[c] = added(left_[c], numbers[c]);
            any |= numbers[c] != 0;
        }
        return any;
    }

    void try_side(Int j, Int codes, bool missing_left, bool gaps, double size, double whole) {
        for (Int c = 0; c < k_; ++c) left_[c] = missing_left ? cell(j, 0)[c] : 0;
        for (Int v = 1; v < codes; ++v) {
            if (!add_to_left(cell(j, v)) && v > 1) continue;
            double on_left = 0.0, of_left = 0.0, of_right = 0.0;
            for (Int c = 0; c < k_; ++c) on_left += variance_of(left_[c]);
            if (on_left < options_.least) continue;
            if (size - on_left < options_.least) break;
            for (Int c = 0; c < k_; ++c) {
                right_[c] = reduced(total_[c], left_[c]);
                of_left += quality(left_[c]);
                of_right += quality(right_[c]);
            }
            const double gain = of_left + of_right - whole;
            if (gain > best_.gain && (!options_.direction[j] || is_ordered(options_.direction[j])))
                best_ = {gain, j, v, gaps ? missing_left : on_left >= size - on_left};
        }
    }

    bool is_ordered(std::int8_t direction) const {
        const double of_left = bounds_.clip(log_odds_change(left_[0], options_.prior));
        const double of_right = bounds_.clip(log_odds_change(right_[0], options_.prior));
        return direction > 0 ? of_left <= of_right : of_right <= of_left;
    }

    const Int *sums_ = nullptr, *first_;
    Int k_;
    SplitOptions options_;
    Bounds bounds_{0.0, 0.0};
    std::vector<Int> total_, left_, right_;
    Split best_;
};

// Codes from 1 to `most`, and 0 if missing values go left. Without a branch: if they go right, 0 becomes 255.
inline bool goes_left(std::uint8_t code, std::uint8_t most, bool missing_left) {
    const std::uint8_t lowest = !missing_left;
    return static_cast<std::uint8_t>(code - lowest) <= static_cast<std::uint8_t>(most - lowest);
}

// Writes the rows of both children, in order; returns the number of those on the left.
inline Int divide(const std::uint64_t* words, const std::int32_t* rows, Int m, int byte, std::uint8_t most, bool missing_left,
                  std::int32_t* left, std::int32_t* right) {
    Int lefts = 0, rights = 0;
    for (Int r = 0; r < m; ++r) {
        const std::int32_t row = rows[r];
        const std::uint8_t code = static_cast<std::uint8_t>(words[row] >> (8 * byte));
        const bool on_left = goes_left(code, most, missing_left);
        left[lefts] = row;
        right[rights] = row;
        lefts += on_left;
        rights += !on_left;
    }
    return lefts;
}

}  // namespace calibayes
