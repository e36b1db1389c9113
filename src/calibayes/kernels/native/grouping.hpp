// How columns of levels are taken together, and their tables in that form.
//
// Five levels make 25 pairs of levels: two columns then cost one look-up instead of two, in a table that is still small
// enough for the nearest cache.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels.hpp"

namespace calibayes {

constexpr Int MOST_CELLS = 40;  // cells of a group beyond which its columns are better taken apart
constexpr Int WORTH = 8;        // rows for each cell of a group from which on its table is worth making

class Grouping {
  public:
    // `levels` of each column, and the largest code `top` that occurs in it.
    Grouping(const std::vector<std::uint32_t>& levels, const std::vector<std::uint64_t>& top, Int n)
        : d(static_cast<Int>(levels.size())), levels(levels) {
        std::uint32_t most = 1;
        std::vector<std::uint32_t> own(levels.size());
        for (std::size_t j = 0; j < levels.size(); ++j) {
            own[j] = levels[j] + (top[j] >= levels[j] || !levels[j]);  // one digit more where something is no level
            most = std::max(most, own[j]);
        }
        members = 1;
        Int cells = most;
        while (cells * most <= MOST_CELLS && cells * most * WORTH <= n && members < d && most > 1) {
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
        }
    }

    Int cells() const { return first.back(); }

    // For a packed table whose cells have `pad` numbers each.
    Groups with(Int pad) {
        last.resize(radix.size()), step.resize(radix.size()), begin.resize(first.size());
        for (Int p = 0; p < groups; ++p) {
            auto apart = static_cast<std::uint32_t>(pad);
            begin[p] = first[p] * apart;
            for (Int m = members - 1; m >= 0; --m) {
                last[m * groups + p] = radix[m * groups + p] - 1;
                step[m * groups + p] = apart;
                apart *= radix[m * groups + p];
            }
        }
        return {groups, members, last.data(), step.data(), begin.data()};
    }

    // Tables of the columns (classes apart by `apart`, cells of column j from start[j] on) as one table of the groups.
    void pack(const double* table, Int apart, const Int* start, Int k, Int pad, double* packed) const {
        for (Int p = 0; p < groups; ++p) {
            double* to = packed + first[p] * pad;
            Int size = 1;
            std::fill(to, to + pad, 0.0);
            for (Int m = 0; m < members; ++m) size = widen(to, size, m * groups + p, table, apart, start, k, pad);
        }
    }

    // The other way round: sums over a table of the groups for each level of each column, added to `table`.
    void unpack(const double* packed, Int pad, Int k, const Int* start, Int apart, double* table) const {
        for (Int p = 0; p < groups; ++p) {
            const Int size = first[p + 1] - first[p];
            Int below = size;
            for (Int m = 0; m < members && m * groups + p < d; ++m) {
                const Int j = m * groups + p;
                below /= radix[j];
                for (Int cell = 0; cell < size; ++cell) {
                    const Int code = cell / below % radix[j];
                    if (code >= static_cast<Int>(levels[j])) continue;
                    const double* from = packed + (first[p] + cell) * pad;
                    double* to = table + start[j] + code;
                    for (Int c = 0; c < k; ++c) to[c * apart] += from[c];
                }
            }
        }
    }

  private:
    Int d, groups, members;
    std::vector<std::uint32_t> levels, radix, first, last, step, begin;

    // The first `size` cells of a group, each with every level of one column more; the number of cells then.
    Int widen(double* to, Int size, Int j, const double* table, Int apart, const Int* start, Int k,
                Int pad) const {
        if (j >= d || radix[j] == 0) return size;
        const Int own = radix[j];
        for (Int cell = size - 1; cell >= 0; --cell)
            for (Int code = own - 1; code >= 0; --code) {
                double *place = to + (cell * own + code) * pad, *before = to + cell * pad;
                const bool known = code < static_cast<Int>(levels[j]);
                for (Int c = 0; c < k; ++c)
                    place[c] = before[c] + (known ? table[c * apart + start[j] + code] : 0.0);
                for (Int c = k; c < pad; ++c) place[c] = 0.0;
            }
        return size * own;
    }
};

}  // namespace calibayes
