// Rows and weights by label of the cells of a column, in one sweep over its rows.
#pragma once

#include <algorithm>
#include <vector>

#include "distinct_numbers.hpp"

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

    // The number of the cell of ordered bits; calls start(number, entry) if it is new.
    template <class Start>
    Int slot(std::uint64_t bits, Start start) {
        std::int32_t node = 0;
        Int entry;
        do {
            const Place& place = places[node];
            entry = place.first + static_cast<Int>(std::min((bits - place.base) >> place.shift, place.last));
            node = next[entry];
        } while (node >= 0);
        if (node < -1) return -2 - node;
        next[entry] = static_cast<std::int32_t>(-2 - count);
        start(count, entry);
        return count++;
    }

    // Calls visit(number) for all cells in the order of their entries.
    template <class Visit>
    void each(Visit visit) const {
        for (const std::int32_t state : next)
            if (state < -1) visit(-2 - state);
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

// Writes the cells of numbers (n,) in the order in which they occur first, their totals (cells, 3 + columns), which are rows,
// smallest and largest number, and weights; and the order of the cells by their entries. Returns the number of cells, or -1
// if a label is none. NaN is in no cell.
inline Int cell_totals(const double* x, Int n, CellSlots& slots, const LabeledRows& rows, Int* entries, Int* order,
                       double* totals) {
    const Int width = 3 + rows.columns;
    for (Int r = 0; r < n; ++r) {
        const double value = x[r] + 0.0;
        if (value != value) continue;
        const Int column = rows.column(r);
        if (column >= rows.columns) return -1;
        const auto start = [&](Int slot, Int entry) {
            double* total = totals + slot * width;
            entries[slot] = entry;
            std::fill(total, total + width, 0.0);
            total[1] = total[2] = value;
        };
        double* total = totals + slots.slot(ordered_bits(value), start) * width;
        total[0] += 1.0;
        total[1] = std::min(total[1], value);  // without branches, which could not be predicted
        total[2] = std::max(total[2], value);
        total[3 + column] += rows.weight[r];
    }
    slots.each([&](Int slot) { *order++ = slot; });
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

}  // namespace calibayes
