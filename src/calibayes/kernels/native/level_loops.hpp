// Loops around the kernels over levels: blocks of rows whose sums fit into the L1 cache, at most 16 classes at a time.
#pragma once

#include <new>
#include <vector>

#include "level_groups.hpp"

namespace calibayes {

// Classes at a time: all classes divided as evenly as possible.
inline Int share_of(Int k) {
    const Int shares = (k + WIDEST - 1) / WIDEST;
    return (k + shares - 1) / shares;
}

inline std::vector<std::uint64_t> tops(const Codes& codes) {
    std::vector<std::uint64_t> top(static_cast<std::size_t>(codes.d));
    if (codes.n) chosen().top[codes.type](codes, top.data());
    return top;
}

inline const Grouped<std::uint8_t>& grouped(std::uint8_t) { return chosen().by_bytes; }
inline const Grouped<std::uint32_t>& grouped(std::uint32_t) { return chosen().by_words; }

// Calls `use(entries of a tile, first cells of its groups, number of groups in it)` for all groups of given rows; returns
// whether a code exceeded the digits of its column.
template <class N, class Use>
bool for_each_tile(const Codes& codes, const Int* rows, Int n, const Groups<N>& groups, N* entries, const Use& use) {
    bool beyond = false;
    for (Int from = 0; from < groups.groups; from += SPAN) {
        const Int to = std::min(from + SPAN, groups.groups);
        beyond |= grouped(N()).entries[codes.type](codes, rows, n, groups, from, to, entries);
        for (Int p = from; p < to; p += TILE) use(entries + p - from, groups.first + p, std::min(TILE, to - p));
    }
    return beyond;
}

// Allocator of memory aligned to cache lines: table rows as wide as a line never cross two.
template <class T>
struct OnLines {
    using value_type = T;
    static constexpr std::align_val_t LINE_BYTES{64};
    OnLines() = default;
    template <class U>
    OnLines(const OnLines<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), LINE_BYTES)); }
    void deallocate(T* memory, std::size_t) { ::operator delete(memory, LINE_BYTES); }
    template <class U>
    bool operator==(const OnLines<U>&) const { return true; }
    template <class U>
    bool operator!=(const OnLines<U>&) const { return false; }
};
using Lines = std::vector<double, OnLines<double>>;

// Memory that each thread reuses between calls: page faults of new memory cost more than the computation.
struct Workspace {
    Lines packed, second, own, sums;
    std::vector<std::uint32_t> entries;
    std::vector<Int> rows;

    void make(Int cells, Int own_cells, Int pad) {
        packed.resize(std::max<std::size_t>(packed.size(), cells * pad));
        own.resize(std::max<std::size_t>(own.size(), own_cells * pad));
        sums.resize(std::max<std::size_t>(sums.size(), STRETCH * pad));
        entries.resize(STRETCH * LINE);
        rows.resize(STRETCH);
    }

    template <class N>
    N* entries_of() { return reinterpret_cast<N*>(entries.data()); }
};

inline Workspace& workspace() {
    static thread_local Workspace mine;
    return mine;
}

// `look_up` with a given grouping; false, with invalid results, if a code is no level and the grouping has no digit for it.
template <class N>
bool look_up_by(const Grouping& grouping, const Codes& codes, const double* table, Int k, const Int* start, Int cells,
                       double* out) {
    Workspace& work = workspace();
    work.make(grouping.cells(), cells, padded(share_of(k)));
    for (Int c = 0; c < k; c += share_of(k)) {
        const Int own = std::min(share_of(k), k - c), pad = padded(own);
        for (Int i = 0; i < pad; ++i)
            for (Int cell = 0; cell < cells; ++cell)
                work.own[cell * pad + i] = i < own ? table[(c + i) * cells + cell] : 0.0;
        grouping.pack(work.own.data(), start, pad, work.packed.data());
        const auto held = grouping.with<N>(pad);
        for (Int from = 0; from < codes.n; from += STRETCH) {
            const Int n = std::min(STRETCH, codes.n - from);
            for (Int r = 0; r < n; ++r) work.rows[r] = from + r;
            std::fill(work.sums.begin(), work.sums.begin() + n * pad, 0.0);
            const auto gather = [&](const N* entries, const std::uint32_t* first, Int tile) {
                grouped(N()).gather[width(pad)](entries, held.line(), first, n, tile, work.packed.data(), work.sums.data());
            };
            const bool beyond = for_each_tile<N>(codes, work.rows.data(), n, held, work.entries_of<N>(), gather);
            if (beyond && !grouping.gaps) return false;
            for (Int r = 0; r < n; ++r)
                for (Int i = 0; i < own; ++i) out[(from + r) * k + c + i] = work.sums[r * pad + i];
        }
    }
    return true;
}

// Sums over columns of the entries of a table (k, cells), written to (n, k).
inline void look_up(const Codes& codes, const std::vector<std::uint32_t>& levels, const double* table, Int k,
                    const Int* start, Int cells, double* out) {
    const auto by = [&](const Grouping& grouping) {
        return (grouping.in_bytes() ? look_up_by<std::uint8_t> : look_up_by<std::uint32_t>)(grouping, codes, table, k,
                                                                                            start, cells, out);
    };
    if (!by(Grouping(levels, codes.n))) by(Grouping(levels, tops(codes), codes.n));
}

// The rows with a nonzero weight, and whether each has it in one class only.
struct Weighted {
    std::vector<Int> rows, own;
    std::vector<double> weight;
    bool single = true, alike = true;  // one class per row; equal weights

    Weighted(const double* weights, Int n, Int k) {
        rows.reserve(n), own.reserve(n), weight.reserve(n);
        for (Int r = 0; r < n; ++r) {
            Int many = 0, last = 0;
            for (Int c = 0; c < k; ++c)
                if (weights[r * k + c] != 0.0) ++many, last = c;
            if (!many) continue;
            rows.push_back(r), own.push_back(last), weight.push_back(weights[r * k + last]);
            single = single && many == 1;
            alike = alike && weight.back() == weight.front();
        }
    }
};

constexpr std::uint32_t FEW_LEVELS = 16;  // most levels for which rows of equal weight are counted by `tally`

// `weighted_counts` of rows with one class each and equal weights, for codes of one byte and few levels.
inline void tallied(const Codes& codes, const std::vector<std::uint32_t>& levels, const Weighted& rows, Int k,
                    const Int* start, Int cells, double* out) {
    std::vector<std::vector<Int>> by_class(static_cast<std::size_t>(k));
    for (std::size_t r = 0; r < rows.rows.size(); ++r) by_class[rows.own[r]].push_back(rows.rows[r]);
    const std::uint32_t most = *std::max_element(levels.begin(), levels.end());
    std::vector<std::uint32_t> counts(static_cast<std::size_t>(TALLIED * codes.d));
    const double weight = rows.weight.empty() ? 0.0 : rows.weight.front();
    for (Int c = 0; c < k; ++c)
        for (std::uint32_t from = 0; from < most; from += TALLIED) {
            std::fill(counts.begin(), counts.end(), 0);
            const std::uint32_t to = std::min<std::uint32_t>(most, from + TALLIED);
            chosen().tally[to - from - 1](codes, by_class[c].data(), static_cast<Int>(by_class[c].size()),
                                          static_cast<std::uint8_t>(from), counts.data());
            for (Int j = 0; j < codes.d; ++j)
                for (std::uint32_t v = from; v < std::min(levels[j], to); ++v)
                    out[c * cells + start[j] + v] = weight * counts[(v - from) * codes.d + j];
        }
}

// `weighted_counts` with a given grouping; false, with invalid results, as above.
template <class N>
bool weighted_counts_by(const Grouping& grouping, const Codes& codes, const Weighted& rows, const double* weights,
                               Int k, const Int* start, Int cells, double* out) {
    const Int n = static_cast<Int>(rows.rows.size());
    // Rows with one class each are added to that class only, for all classes in one pass.
    // Positions in the packed table have 32 bits: more classes are processed a few at a time.
    const bool single = rows.single && grouping.cells() * padded(k) <= Int(0xffffffff);
    const Int share = single ? k : share_of(k);
    Workspace& work = workspace();
    work.make(grouping.cells(), cells, padded(share));
    for (Int c = 0; c < k; c += share) {
        const Int own = std::min(share, k - c), pad = padded(own);
        const auto held = grouping.with<N>(pad);
        std::fill(work.packed.begin(), work.packed.begin() + grouping.cells() * pad, 0.0);
        std::fill(work.own.begin(), work.own.begin() + cells * pad, 0.0);
        for (Int from = 0; from < n; from += STRETCH) {
            const Int many = std::min(STRETCH, n - from);
            for (Int r = 0; r < many && !single; ++r)
                for (Int i = 0; i < pad; ++i)
                    work.sums[r * pad + i] = i < own ? weights[rows.rows[from + r] * k + c + i] : 0.0;
            const auto scatter = [&](const N* entries, const std::uint32_t* first, Int tile) {
                if (single)
                    grouped(N()).scatter_one(entries, held.line(), first, many, tile, pad, rows.own.data() + from,
                                             rows.weight.data() + from, work.packed.data());
                else
                    grouped(N()).scatter[width(pad)](entries, held.line(), first, many, tile, work.sums.data(),
                                                        work.packed.data());
            };
            const bool beyond =
                for_each_tile<N>(codes, rows.rows.data() + from, many, held, work.entries_of<N>(), scatter);
            if (beyond && !grouping.gaps) return false;
        }
        grouping.unpack(work.packed.data(), start, pad, work.own.data());
        for (Int i = 0; i < own; ++i)
            for (Int cell = 0; cell < cells; ++cell) out[(c + i) * cells + cell] = work.own[cell * pad + i];
    }
    return true;
}

// Sums of the weights (n, k) per class and cell, written to (k, cells).
inline void weighted_counts(const Codes& codes, const std::vector<std::uint32_t>& levels, const double* weights,
                            Int k, const Int* start, Int cells, double* out) {
    const Weighted rows(weights, codes.n, k);
    const Int n = static_cast<Int>(rows.rows.size());
    const bool bytes = codes.type == INT8 || codes.type == UINT8;
    if (rows.single && rows.alike && bytes && *std::max_element(levels.begin(), levels.end()) <= FEW_LEVELS)
        return tallied(codes, levels, rows, k, start, cells, out);
    const auto by = [&](const Grouping& grouping) {
        return (grouping.in_bytes() ? weighted_counts_by<std::uint8_t> : weighted_counts_by<std::uint32_t>)(
            grouping, codes, rows, weights, k, start, cells, out);
    };
    if (!by(Grouping(levels, n))) by(Grouping(levels, tops(codes), n));
}

}  // namespace calibayes
