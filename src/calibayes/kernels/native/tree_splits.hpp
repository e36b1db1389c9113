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
inline Int variance_of(Int packed) { return packed & 0xffffffffll; }
inline Int residual_of(Int packed) { return (packed - variance_of(packed)) / 4294967296ll; }

// Sums over the rows of a node by cell and class: all residuals, and after them all variances.
struct Sums {
    const Int *residual, *variance;
    Sums(const Int* both, Int cells) : residual(both), variance(both + cells) {}
};

// A full step of the log odds of the second of two classes, of which it alone is summed.
inline double log_odds_change(Int residual, Int variance, double prior) {
    return 2.0 * (static_cast<double>(residual) / (static_cast<double>(variance) + prior));
}

class SplitSearch {
public:
    SplitSearch(const Int* first, Int d, Int k, const SplitOptions& options)
        : first_(first), cells_(first[d] * k), k_(k), options_(options) {
        for (auto* numbers : {&total_, &left_})
            for (auto* part : {&numbers->residual, &numbers->variance}) part->resize(static_cast<std::size_t>(k));
    }

    Split best(const Int* sums, Bounds bounds) { return best(sums, bounds, 0, options_.count); }

    // The best split of the columns from `begin` on, before `end`, in their order.
    Split best(const Int* sums, Bounds bounds, Int begin, Int end) {
        sums_ = Sums(sums, cells_);
        bounds_ = bounds;
        best_ = Split();
        for (Int i = begin; i < end; ++i) {
            const Int j = options_.columns[i];
            if (first_[j + 1] - first_[j] >= 2) try_column(j);
        }
        return best_;
    }

private:
    struct Numbers {
        std::vector<Int> residual, variance;  // of each class
    };

    // Adds a cell to numbers of classes; false if it is empty.
    bool add(Int j, Int code, Numbers& to) const {
        const Int cell = (first_[j] + code) * k_;
        bool any = false;
        for (Int c = 0; c < k_; ++c) {
            const Int residual = sums_.residual[cell + c], variance = sums_.variance[cell + c];
            to.residual[c] = added(to.residual[c], residual);
            to.variance[c] = added(to.variance[c], variance);
            any |= residual != 0 || variance != 0;
        }
        return any;
    }

    static void clear(Numbers& numbers) {
        std::fill(numbers.residual.begin(), numbers.residual.end(), Int(0));
        std::fill(numbers.variance.begin(), numbers.variance.end(), Int(0));
    }

    void try_column(Int j) {
        const Int codes = first_[j + 1] - first_[j];
        clear(total_);
        const bool gaps = add(j, 0, total_);
        for (Int v = 1; v < codes; ++v) add(j, v, total_);
        double size = 0.0, whole = 0.0;
        for (Int c = 0; c < k_; ++c) {
            size += static_cast<double>(total_.variance[c]);
            whole += quality(total_.residual[c], total_.variance[c]);
        }
        for (int side = 0; side < (gaps ? 2 : 1); ++side) try_side(j, codes, side == 1, gaps, size, whole);
    }

    double quality(Int residual, Int variance) const {
        const double deviation = static_cast<double>(residual);
        return deviation * deviation / (static_cast<double>(variance) + options_.prior);
    }

    void try_side(Int j, Int codes, bool missing_left, bool gaps, double size, double whole) {
        clear(left_);
        if (missing_left) add(j, 0, left_);
        for (Int v = 1; v < codes; ++v) {
            if (!add(j, v, left_) && v > 1) continue;  // an empty cell: this side was tried before
            double on_left = 0.0, of_left = 0.0, of_right = 0.0;
            for (Int c = 0; c < k_; ++c) on_left += static_cast<double>(left_.variance[c]);
            if (on_left < options_.least) continue;
            if (size - on_left < options_.least) break;
            for (Int c = 0; c < k_; ++c) {
                of_left += quality(left_.residual[c], left_.variance[c]);
                of_right += quality(reduced(total_.residual[c], left_.residual[c]), reduced(total_.variance[c], left_.variance[c]));
            }
            const double gain = of_left + of_right - whole;
            if (gain > best_.gain && (!options_.direction[j] || is_ordered(options_.direction[j])))
                best_ = {gain, j, v, gaps ? missing_left : on_left >= size - on_left};
        }
    }

    bool is_ordered(std::int8_t direction) const {
        const Int right_residual = reduced(total_.residual[0], left_.residual[0]);
        const Int right_variance = reduced(total_.variance[0], left_.variance[0]);
        const double of_left = bounds_.clip(log_odds_change(left_.residual[0], left_.variance[0], options_.prior));
        const double of_right = bounds_.clip(log_odds_change(right_residual, right_variance, options_.prior));
        return direction > 0 ? of_left <= of_right : of_right <= of_left;
    }

    Sums sums_{nullptr, 0};
    const Int* first_;
    Int cells_, k_;
    SplitOptions options_;
    Bounds bounds_{0.0, 0.0};
    Numbers total_, left_;
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
