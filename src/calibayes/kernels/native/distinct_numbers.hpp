// Distinct numbers of a column, and rows counted by cells of the ordered bits of numbers.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels.hpp"

namespace calibayes {

// Bits of a number as an integer that ascends with the number; both zeros are the same.
inline std::uint64_t ordered_bits(double x) {
    x += 0.0;
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const std::uint64_t negative = static_cast<std::uint64_t>(-static_cast<std::int64_t>(bits >> 63));
    return bits ^ (negative | (std::uint64_t(1) << 63));
}

// Numbers in the order in which they occur first, by open addressing; the table is at most half full.
class DistinctNumbers {
  public:
    // With room for `expected` numbers before the table must grow.
    explicit DistinctNumbers(Int most, Int expected = 256) : most(most) {
        int size = 9;
        while (size < 20 && (Int(1) << size) < 2 * expected) ++size;
        resize(size);
    }

    // The position of a number among the distinct ones, -1 if it would be one too many.
    std::int32_t position(double x) {
        x += 0.0;
        std::uint64_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        std::size_t slot = slot_of(bits);
        while (positions[slot] >= 0) {
            if (keys[slot] == bits) return positions[slot];
            slot = (slot + 1) & (keys.size() - 1);
        }
        if (static_cast<Int>(values.size()) == most) return -1;
        keys[slot] = bits;
        positions[slot] = static_cast<std::int32_t>(values.size());
        values.push_back(x);
        if (2 * values.size() > keys.size()) resize(log_size + 1);
        return static_cast<std::int32_t>(values.size()) - 1;
    }

    std::vector<double> values;

  private:
    std::size_t slot_of(std::uint64_t bits) const {
        return static_cast<std::size_t>(((bits ^ (bits >> 32)) * 0x9E3779B97F4A7C15u) >> (64 - log_size));
    }

    void resize(int larger) {
        log_size = larger;
        keys.assign(std::size_t(1) << log_size, 0);
        positions.assign(std::size_t(1) << log_size, -1);
        for (std::size_t i = 0; i < values.size(); ++i) {
            std::uint64_t bits;
            std::memcpy(&bits, &values[i], sizeof bits);
            std::size_t slot = slot_of(bits);
            while (positions[slot] >= 0) slot = (slot + 1) & (keys.size() - 1);
            keys[slot] = bits;
            positions[slot] = static_cast<std::int32_t>(i);
        }
    }

    Int most;
    int log_size = 0;
    std::vector<std::uint64_t> keys;
    std::vector<std::int32_t> positions;
};

// Whether numbers (n,) have more than `most` distinct ones for sure: so many have different hashes. It gives up where few
// of the first rows differ.
inline bool has_more_distinct(const double* x, Int n, Int most) {
    constexpr int LOG_BITS = 20;
    constexpr Int FIRST_ROWS = 8192;
    if (n <= most || 4 * most > (Int(1) << LOG_BITS)) return false;
    std::vector<std::uint64_t> marks((std::size_t(1) << LOG_BITS) / 64, 0);
    Int different = 0;
    for (Int r = 0; r < n; ++r) {
        const std::uint64_t hash = (ordered_bits(x[r]) * 0x9E3779B97F4A7C15u) >> (64 - LOG_BITS);
        std::uint64_t& mark = marks[hash / 64];
        different += 1 - static_cast<Int>((mark >> (hash % 64)) & 1);
        mark |= std::uint64_t(1) << (hash % 64);
        if (different > most) return true;
        if (r == FIRST_ROWS && different < FIRST_ROWS / 2) return false;
    }
    return false;
}

// The position of each number (n,) among the distinct ones; false if there are more than these can be.
inline bool distinct_positions(const double* x, Int n, DistinctNumbers& distinct, Int* out) {
    for (Int r = 0; r < n; ++r)
        if ((out[r] = distinct.position(x[r])) < 0) return false;
    return true;
}

// Distinct numbers of x (n,) whose hashes begin with `zeros` zeros, which are made more until at most `most` are left; NaN
// is no number.
inline std::vector<double> distinct_sample(const double* x, Int n, Int most, Int& zeros) {
    const auto largest = [&] { return zeros < 64 ? ~std::uint64_t(0) >> zeros : std::uint64_t(0); };
    std::uint64_t bound = largest();
    const Int expected = std::min(most + 1, n);
    DistinctNumbers distinct(most + 1, expected);
    const auto add = [&](double value) {
        if (sample_hash(value) > bound || value != value) return;
        distinct.position(value);
        while (static_cast<Int>(distinct.values.size()) > most) {
            ++zeros;
            bound = largest();
            DistinctNumbers fewer(most + 1, expected);
            for (const double one : distinct.values)
                if (sample_hash(one) <= bound) fewer.position(one);
            distinct = std::move(fewer);
        }
    };
    std::uint8_t flags[STRETCH] = {};
    for (Int begin = 0; begin < n; begin += STRETCH) {
        const Int size = std::min(STRETCH, n - begin);
        chosen().sample_flags(x + begin, size, bound, flags);
        for (Int first = 0; first < size; first += 8) {
            std::uint64_t eight;  // most are all zero
            std::memcpy(&eight, flags + first, sizeof eight);
            for (Int r = first; eight && r < std::min(first + 8, size); ++r)
                if (flags[r]) add(x[begin + r] + 0.0);
        }
    }
    return distinct.values;
}

// Nodes that divide ordered bits: entry (bits - base) >> shift of a node, counted from `first`, is a cell, or another node.
struct CellTree {
    const std::uint64_t* base;
    const Int *shift, *first;
    const std::int32_t* child;

    Int cell(std::uint64_t bits) const {
        Int node = 0, entry;
        do {
            const std::uint64_t size = static_cast<std::uint64_t>(first[node + 1] - first[node]);
            entry = first[node] + static_cast<Int>(std::min((bits - base[node]) >> shift[node], size - 1));
            node = child[entry];
        } while (node >= 0);
        return entry;
    }
};

// Number of rows, smallest and largest number, and total weight of a cell.
struct CellTally {
    double rows, low, high, weight;
};

// Adds numbers (n,) and their weights to the tallies of their cells, which are zero at first, and writes the cells that have
// rows; returns their number. Missing numbers (NaN) count nowhere.
inline Int tally_cells(const double* x, const double* weight, Int n, const CellTree& tree, CellTally* tallies,
                       Int* entries) {
    Int cells = 0;
    for (Int r = 0; r < n; ++r) {
        const double value = x[r] + 0.0;
        if (value != value) continue;
        const Int entry = tree.cell(ordered_bits(value));
        CellTally& tally = tallies[entry];
        if (tally.rows == 0.0) {
            entries[cells++] = entry;
            tally.low = tally.high = value;
        }
        tally.rows += 1.0;
        if (value < tally.low) tally.low = value;
        if (value > tally.high) tally.high = value;
        tally.weight += weight[r];
    }
    return cells;
}

// Adds the weights of rows (n,) to (cells, columns), in the column of their label; the last column is for negative labels.
inline void weigh_cells(const double* x, Int n, const CellTree& tree, const Int* labels, const double* weight,
                        Int columns, double* weights) {
    for (Int r = 0; r < n; ++r) {
        if (x[r] != x[r]) continue;
        const Int column = labels[r] < 0 ? columns - 1 : labels[r];
        weights[tree.cell(ordered_bits(x[r])) * columns + column] += weight[r];
    }
}

}  // namespace calibayes
