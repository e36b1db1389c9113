// Drivers of the kernels over levels: rows in stretches whose sums stay in the nearest cache, classes sixteen at a time.
#pragma once

#include <vector>

#include "grouping.hpp"

namespace calibayes {

// Rounded up to even.
inline Int padded(Int k) { return (k + 1) / 2 * 2; }

// Classes at a time: as even shares of all as can be.
inline Int share_of(Int k) {
    const Int shares = (k + WIDEST - 1) / WIDEST;
    return (k + shares - 1) / shares;
}

inline std::vector<std::uint64_t> tops(const Codes& codes) {
    std::vector<std::uint64_t> top(static_cast<std::size_t>(codes.d));
    if (codes.n) chosen().top[codes.type](codes, top.data());
    return top;
}

// Calls `use(places of a tile, groups in it)` for all groups of some rows.
template <class Use>
void for_each_tile(const Codes& codes, const Int* rows, Int n, const Groups& groups,
                   std::vector<std::uint32_t>& places, const Use& use) {
    for (Int from = 0; from < groups.groups; from += SPAN) {
        const Int to = std::min(from + SPAN, groups.groups);
        chosen().places[codes.type](codes, rows, n, groups, from, to, places.data());
        for (Int p = from; p < to; p += TILE)
            use(places.data() + p - from, std::min(TILE, to - p));
    }
}

// Sum over columns of the entries of a table (k, cells), into (n, k).
inline void look_up(const Codes& codes, const std::vector<std::uint32_t>& levels, const double* table, Int k,
                    const Int* start, Int cells, double* out) {
    const Kernels& kernels = chosen();
    Grouping grouping(levels, tops(codes), codes.n);
    const Int most = padded(share_of(k));
    std::vector<double> packed(static_cast<std::size_t>(grouping.cells() * most)), sums(STRETCH * most);
    std::vector<std::uint32_t> places(STRETCH * LINE);
    std::vector<Int> rows(STRETCH);
    for (Int c = 0; c < k; c += share_of(k)) {
        const Int own = std::min(share_of(k), k - c), pad = padded(own);
        grouping.pack(table + c * cells, cells, start, own, pad, packed.data());
        const Groups groups = grouping.with(pad);
        for (Int from = 0; from < codes.n; from += STRETCH) {
            const Int n = std::min(STRETCH, codes.n - from);
            for (Int r = 0; r < n; ++r) rows[r] = from + r;
            std::fill(sums.begin(), sums.end(), 0.0);
            for_each_tile(codes, rows.data(), n, groups, places, [&](const std::uint32_t* at, Int tile) {
                kernels.gather[pad / 2 - 1](at, n, tile, packed.data(), sums.data());
            });
            for (Int r = 0; r < n; ++r)
                for (Int i = 0; i < own; ++i) out[(from + r) * k + c + i] = sums[r * pad + i];
        }
    }
}

// Rows that have weight, and whether each of them has it in one class only.
struct Weighted {
    std::vector<Int> rows, own;
    std::vector<double> weight;
    bool single = true;

    Weighted(const double* weights, Int n, Int k) {
        for (Int r = 0; r < n; ++r) {
            Int many = 0, last = 0;
            for (Int c = 0; c < k; ++c)
                if (weights[r * k + c] != 0.0) ++many, last = c;
            if (!many) continue;
            rows.push_back(r), own.push_back(last), weight.push_back(weights[r * k + last]);
            single = single && many == 1;
        }
    }
};

// Sum of the weights (n, k) for each class and cell, into (k, cells), which is all zero.
inline void weighted_counts(const Codes& codes, const std::vector<std::uint32_t>& levels, const double* weights,
                            Int k, const Int* start, Int cells, double* out) {
    const Kernels& kernels = chosen();
    const Weighted rows(weights, codes.n, k);
    const Int n = static_cast<Int>(rows.rows.size());
    Grouping grouping(levels, tops(codes), n);
    const Int most = rows.single ? k : padded(share_of(k)), share = rows.single ? k : share_of(k);
    std::vector<double> packed(static_cast<std::size_t>(grouping.cells() * most)), part(STRETCH * most);
    std::vector<std::uint32_t> places(STRETCH * LINE);
    for (Int c = 0; c < k; c += share) {
        const Int own = std::min(share, k - c), pad = rows.single ? k : padded(own);
        const Groups groups = grouping.with(pad);
        std::fill(packed.begin(), packed.end(), 0.0);
        for (Int from = 0; from < n; from += STRETCH) {
            const Int many = std::min(STRETCH, n - from);
            if (!rows.single)
                for (Int r = 0; r < many; ++r)
                    for (Int i = 0; i < pad; ++i)
                        part[r * pad + i] = i < own ? weights[rows.rows[from + r] * k + c + i] : 0.0;
            for_each_tile(codes, rows.rows.data() + from, many, groups, places, [&](const std::uint32_t* at, Int tile) {
                if (rows.single)
                    kernels.scatter_one(at, many, tile, rows.own.data() + from, rows.weight.data() + from,
                                        packed.data());
                else
                    kernels.scatter[pad / 2 - 1](at, many, tile, part.data(), packed.data());
            });
        }
        grouping.unpack(packed.data(), pad, own, start, cells, out + c * cells);
    }
}

}  // namespace calibayes
