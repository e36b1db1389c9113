// Rows and weights by label of the cells of a column, in one sweep over its rows, and moments of its known numbers.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "ordered.hpp"

namespace calibayes {

// Labels and weights of rows; `columns` sums of weights for each cell, the last for negative labels.
struct LabeledRows {
    const std::int32_t* labels;
    const double* weight;
    Int columns;

    // The column of a row, `columns` or more if its label is none.
    Int column(Int r) const { return labels[r] < 0 ? columns - 1 : labels[r]; }
};

// Adds rows and weights to the totals (size, 1 + columns) of their codes, from `first` on; false if a code or label is none.
template <class C>
bool add_code_totals(const C* codes, Int n, Int first, Int size, const LabeledRows& rows, double* totals) {
    bool valid = true;
    for (Int r = 0; r < n; ++r) {
        const std::uint64_t place = static_cast<std::uint64_t>(codes[r]) - static_cast<std::uint64_t>(first);
        const Int column = rows.column(r);
        if (place >= static_cast<std::uint64_t>(size) || column >= rows.columns) {
            valid = false;
            continue;
        }
        double* total = totals + static_cast<Int>(place) * (1 + rows.columns);
        total[0] += 1.0;
        total[1 + column] += rows.weight[r];
    }
    return valid;
}

// The cells that numbers fall into, numbered in the order in which they occur first.
class CellSlots {
  public:
    CellSlots(const CellTree& tree, Int nodes) : next(tree.child, tree.child + tree.first[nodes]) {
        for (Int node = 0; node < nodes; ++node)
            places.push_back({tree.base[node], static_cast<std::uint64_t>(tree.first[node + 1] - tree.first[node] - 1),
                              tree.first[node], static_cast<int>(tree.shift[node])});
        for (std::int32_t& state : next) state = std::max(state, std::int32_t(-1));
    }

    // The number of a cell; `entries[number]` is written if it is new.
    Int slot(std::uint64_t bits, Int* entries) {
        std::int32_t node = 0;
        Int entry;
        do {
            const Place& place = places[node];
            entry = place.first + static_cast<Int>(std::min((bits - place.base) >> place.shift, place.last));
            node = next[entry];
        } while (node >= 0);
        if (node < -1) return -2 - node;
        next[entry] = static_cast<std::int32_t>(-2 - count);
        entries[count] = entry;
        return count++;
    }

    Int count = 0;

  private:
    struct Place {
        std::uint64_t base, last;
        Int first;
        int shift;
    };

    std::vector<std::int32_t> next;  // of each entry: a node, -1, or -2 less the number of its cell
    std::vector<Place> places;
};

// Writes the cells of numbers (n,) in the order in which they occur first, and their totals: rows, smallest and largest
// number, and weights, (cells, 3 + columns). Returns the number of cells, or -1 if a label is none. NaN is in no cell.
inline Int cell_totals(const double* x, Int n, CellSlots& slots, const LabeledRows& rows, Int* entries, double* totals) {
    for (Int r = 0; r < n; ++r) {
        const double value = x[r] + 0.0;
        if (value != value) continue;
        const Int before = slots.count, column = rows.column(r);
        if (column >= rows.columns) return -1;
        double* total = totals + slots.slot(ordered_bits(value), entries) * (3 + rows.columns);
        if (slots.count > before) {
            total[0] = 0.0, total[1] = total[2] = value;
            std::fill(total + 3, total + 3 + rows.columns, 0.0);
        }
        total[0] += 1.0;
        total[1] = std::min(total[1], value);  // without branches, which could not be predicted
        total[2] = std::max(total[2], value);
        total[3 + column] += rows.weight[r];
    }
    return slots.count;
}

// Cells, ascending, and their totals (cells, width) as `cell_totals` writes them.
struct TotaledCells {
    const Int* entries;
    const double* totals;
    Int count;
};

// Writes the cells that either part has, ascending, with the totals of both; returns their number.
inline Int united_cells(const TotaledCells& left, const TotaledCells& right, Int width, Int* entries, double* totals) {
    Int l = 0, r = 0, count = 0;
    for (; l < left.count || r < right.count; ++count) {
        const bool in_left = r == right.count || (l < left.count && left.entries[l] <= right.entries[r]);
        const bool in_right = l == left.count || (r < right.count && right.entries[r] <= left.entries[l]);
        const double *ours = left.totals + l * width, *theirs = right.totals + r * width;
        double* total = totals + count * width;
        entries[count] = in_left ? left.entries[l] : right.entries[r];
        std::copy_n(in_left ? ours : theirs, width, total);
        if (in_left && in_right) {
            for (Int i = 0; i < width; ++i) total[i] += theirs[i];
            total[1] = std::min(ours[1], theirs[1]), total[2] = std::max(ours[2], theirs[2]);
        }
        l += in_left, r += in_right;
    }
    return count;
}

constexpr Int LANES = 8;

// Calls add(row, lane) for rows (n,) in turn, and finish() after each stretch of them.
template <class Add, class Finish>
void sweep_in_lanes(Int n, Add add, Finish finish) {
    for (Int begin = 0; begin < n; begin += STRETCH) {
        const Int end = std::min(n, begin + STRETCH), even = end - (end - begin) % LANES;
        for (Int r = begin; r < even; r += LANES)
            for (Int lane = 0; lane < LANES; ++lane) add(r + lane, lane);
        for (Int r = even; r < end; ++r) add(r, r - even);
        finish();
    }
}

// Sums in lanes; those of a stretch are added to the total, which keeps rounding errors small.
struct LaneSums {
    double lanes[LANES] = {}, total = 0.0;

    void finish() {
        for (double& lane : lanes) total += lane, lane = 0.0;
    }
};

struct KnownMoments {
    double count = 0.0, low = std::numeric_limits<double>::infinity(), high = -low;
    double pivot = 0.0, offset = 0.0, squares = 0.0;
};

// Number, smallest and largest of the numbers (n,) that are not NaN, their mean, and sums of the differences from it.
inline KnownMoments known_moments(const double* x, Int n) {
    KnownMoments all;
    LaneSums sums, counts, differences, squares;
    double low[LANES], high[LANES];
    std::fill(low, low + LANES, all.low), std::fill(high, high + LANES, all.high);
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
    const double offset = differences.total / counts.total;
    return {counts.total, *std::min_element(low, low + LANES), *std::max_element(high, high + LANES), pivot, offset,
            std::max(squares.total - counts.total * offset * offset, 0.0)};
}

}  // namespace calibayes
