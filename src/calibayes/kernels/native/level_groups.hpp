// Grouping of columns of levels, and tables over the groups.
//
// Two columns of five levels have 25 pairs of levels: as a group they take one look-up instead of two, in a table that
// still fits into the L1 cache.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "kernels.hpp"

namespace calibayes {

constexpr Int MOST_CELLS = 40;  // most cells of a group
constexpr Int SINGLE = 32;      // up to so many columns are not grouped: entries of single columns are computed much faster
constexpr Int WORTH = 8;        // rows per cell of a group from which its table pays off

// Owns the arrays that `Groups` points to.
template <class N>
struct Held {
    Int groups, members;
    std::vector<N> last, digits, repeated;
    std::vector<std::uint32_t> first;

    Int line() const { return groups <= FEW ? groups : LINE; }
    operator Groups<N>() const {
        return {groups, members, last.data(), digits.data(), first.data(), line(), repeated.empty() ? nullptr : repeated.data()};
    }
};

class Grouping {
  public:
    const bool gaps;  // whether columns with codes that are no level have a digit for them

    // For codes that are all levels; `levels` of each column.
    Grouping(const std::vector<std::uint32_t>& levels, Int n)
        : Grouping(levels, std::vector<std::uint64_t>(levels.size()), n, false) {}

    // For codes that may be no level; `top` is the largest code that occurs in each column.
    Grouping(const std::vector<std::uint32_t>& levels, const std::vector<std::uint64_t>& top, Int n)
        : Grouping(levels, top, n, true) {}

    Grouping(const std::vector<std::uint32_t>& levels, const std::vector<std::uint64_t>& top, Int n, bool gaps)
        : gaps(gaps), d(static_cast<Int>(levels.size())), levels(levels) {
        std::uint32_t most = 1;
        std::vector<std::uint32_t> own(levels.size());
        for (std::size_t j = 0; j < levels.size(); ++j) {
            own[j] = levels[j] + (top[j] >= levels[j] || !levels[j]);  // one more digit if a code is no level
            most = std::max(most, own[j]);
        }
        members = 1;
        Int cells = most;
        while (d > SINGLE && cells * most <= MOST_CELLS && cells * most * WORTH <= n && members < d && most > 1) {
            cells *= most;
            ++members;
        }
        groups = (d + members - 1) / members;
        radix.assign(static_cast<std::size_t>(members * groups), 1);
        std::copy(own.begin(), own.end(), radix.begin());
        first.resize(static_cast<std::size_t>(groups) + 1);
        for (Int p = 0; p < groups; ++p) {
            std::uint64_t size = 1;
            for (Int m = 0; m < members; ++m) size *= radix[m * groups + p];
            first[p + 1] = static_cast<std::uint32_t>(first[p] + size);
            largest = std::max(largest, size);
        }
    }

    Int cells() const { return first.back(); }
    Int many() const { return groups; }

    // Whether the entries of all groups fit into bytes, with negative codes (as unsigned bytes) above them.
    bool in_bytes() const { return largest <= 128; }

    // The groups for a packed table with `pad` numbers per cell.
    template <class N>
    Held<N> with(Int pad) const {
        Held<N> held{groups, members, {}, std::vector<N>(radix.begin(), radix.end()), {}, {}};
        for (const std::uint32_t digits : radix) held.last.push_back(static_cast<N>(digits - 1));
        for (Int r = 0; r < REPEATED && members == 1 && groups <= FEW; ++r)
            held.repeated.insert(held.repeated.end(), held.last.begin(), held.last.end());
        for (const std::uint32_t cell : first) held.first.push_back(cell * static_cast<std::uint32_t>(pad));
        return held;
    }

    // Converts a table over the cells of columns, `pad` numbers each, to one over the cells of groups.
    void pack(const double* own, const Int* start, Int pad, double* packed) const {
        for (Int p = 0; p < groups; ++p) {
            double* to = packed + first[p] * pad;
            Int size = 1;
            std::fill(to, to + pad, 0.0);
            for (Int j = p; j < d; j += groups) size = widen(to, size, j, own + start[j] * pad, pad);
        }
    }

    // The reverse for sums: adds the cells of groups to the cells of their columns.
    void unpack(const double* packed, const Int* start, Int pad, double* own) const {
        for (Int p = 0; p < groups; ++p) {
            Int below = first[p + 1] - first[p];
            for (Int j = p, above = 1; j < d; j += groups) {
                below /= radix[j];
                const double* from = packed + first[p] * pad;
                for (Int a = 0; a < above; ++a)
                    for (Int code = 0; code < static_cast<Int>(radix[j]); ++code)
                        for (Int b = 0; b < below; ++b, from += pad) {
                            if (code >= static_cast<Int>(levels[j])) continue;
                            double* to = own + (start[j] + code) * pad;
                            for (Int c = 0; c < pad; ++c) to[c] += from[c];
                        }
                above *= radix[j];
            }
        }
    }

  private:
    Int d, groups, members;
    std::uint64_t largest = 1;  // largest number of cells of a group
    std::vector<std::uint32_t> levels, radix, first;

    // Extends the first `size` cells of a group by the levels of column j; returns the new number of cells.
    Int widen(double* to, Int size, Int j, const double* own, Int pad) const {
        const Int digits = radix[j];
        for (Int cell = size - 1; cell >= 0; --cell)
            for (Int code = digits - 1; code >= 0; --code) {
                double *place = to + (cell * digits + code) * pad, *before = to + cell * pad;
                const bool known = code < static_cast<Int>(levels[j]);
                for (Int c = 0; c < pad; ++c) place[c] = before[c] + (known ? own[code * pad + c] : 0.0);
            }
        return size * digits;
    }
};

}  // namespace calibayes
