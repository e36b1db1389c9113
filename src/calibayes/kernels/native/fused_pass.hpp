// Fused pass over rows of levels: densities, posterior, scores, class weights and their sums while a block of rows is in
// the cache.
#pragma once

#include "level_loops.hpp"

namespace calibayes {

// Arguments of the fused pass: rows, table, labels and weights.
struct FusedInput {
    const Codes& codes;
    const double* table;      // (k, cells)
    const double* log_prior;  // (k,)
    Int k;
    const Int* start;
    Int cells;
    const Int* labels;
    const double *weight, *held_out;
    double generative, decided;
};

inline void add(Scores& to, const Scores& from) {
    to.weight += from.weight, to.error += from.error, to.soft_error += from.soft_error, to.log_loss += from.log_loss;
}

// Moves the rows with a nonzero weight, and their entries, to the front; returns their number.
template <class N>
Int moved_up(const double* weights, Int n, Int k, Int pad, Int groups, Int line, double* padded_weights, N* entries) {
    Int many = 0;
    for (Int r = 0; r < n; ++r) {
        bool some = false;
        for (Int c = 0; c < k; ++c) some |= weights[r * k + c] != 0.0;
        if (!some) continue;
        for (Int c = 0; c < pad; ++c) padded_weights[many * pad + c] = c < k ? weights[r * k + c] : 0.0;
        if (many != r) std::copy(entries + r * line, entries + r * line + groups, entries + many * line);
        ++many;
    }
    return many;
}

// The pass with a given grouping of at most SPAN groups; false, with invalid results, if a code is no level and the
// grouping has no digit for it.
template <class N>
bool fused_pass_by(const Grouping& grouping, const FusedInput& at, double* counts, double* classes, Assessment& found) {
    const Kernels& kernels = chosen();
    const Int k = at.k, pad = padded(k);
    const auto held = grouping.with<N>(pad);
    const Int line = held.line();
    Workspace& work = workspace();
    work.make(grouping.cells(), at.cells, pad);
    Lines& summed = work.second;
    summed.resize(std::max<std::size_t>(summed.size(), grouping.cells() * pad));
    std::fill(summed.begin(), summed.begin() + grouping.cells() * pad, 0.0);
    for (Int i = 0; i < pad; ++i)
        for (Int cell = 0; cell < at.cells; ++cell)
            work.own[cell * pad + i] = i < k ? at.table[i * at.cells + cell] : 0.0;
    grouping.pack(work.own.data(), at.start, pad, work.packed.data());
    std::vector<double> joint(STRETCH * k), weights(STRETCH * k), scratch(2 * ROWS * k);
    N* entries = work.entries_of<N>();
    found = {};
    std::fill(classes, classes + k, 0.0);
    for (Int from = 0; from < at.codes.n; from += STRETCH) {
        const Int n = std::min(STRETCH, at.codes.n - from);
        for (Int r = 0; r < n; ++r) work.rows[r] = from + r;
        std::fill(work.sums.begin(), work.sums.begin() + n * pad, 0.0);
        const bool beyond = for_each_tile<N>(
            at.codes, work.rows.data(), n, held, entries, [&](const N* own, const std::uint32_t* first, Int tile) {
                grouped(N()).gather[width(pad)](own, line, first, n, tile, work.packed.data(), work.sums.data());
            });
        if (beyond && !grouping.gaps) return false;
        for (Int r = 0; r < n; ++r)
            for (Int c = 0; c < k; ++c) joint[r * k + c] = at.log_prior[c] + work.sums[r * pad + c];
        const Assessment part =
            kernels.assess(joint.data(), n, k, at.labels + from, at.weight + from, at.held_out + from, at.generative,
                           at.decided, weights.data(), scratch.data());
        found.objective += part.objective, add(found.train, part.train), add(found.held_out, part.held_out);
        const Int many = moved_up(weights.data(), n, k, pad, held.groups, line, work.sums.data(), entries);
        for (Int r = 0; r < many; ++r)
            for (Int c = 0; c < k; ++c) classes[c] += work.sums[r * pad + c];
        for (Int p = 0; p < held.groups; p += TILE)
            grouped(N()).scatter[width(pad)](entries + p, line, held.first.data() + p, many,
                                             std::min(TILE, held.groups - p), work.sums.data(), summed.data());
    }
    std::fill(work.own.begin(), work.own.begin() + at.cells * pad, 0.0);
    grouping.unpack(summed.data(), at.start, pad, work.own.data());
    for (Int c = 0; c < k; ++c)
        for (Int cell = 0; cell < at.cells; ++cell) counts[c * at.cells + cell] = work.own[cell * pad + c];
    return true;
}

// Sums of the class weights per cell (k, cells) and per class (k,), and the scores; false if there are too many classes
// or groups of columns for a fused pass.
inline bool fused_pass(const std::vector<std::uint32_t>& levels, const FusedInput& at, double* counts, double* classes,
                 Assessment& found) {
    if (at.k > WIDEST) return false;
    const auto by = [&](const Grouping& grouping) {
        return (grouping.in_bytes() ? fused_pass_by<std::uint8_t> : fused_pass_by<std::uint32_t>)(grouping, at, counts, classes,
                                                                                      found);
    };
    const Grouping plain(levels, at.codes.n);
    if (plain.many() > SPAN) return false;
    if (by(plain)) return true;
    const Grouping gaps(levels, tops(at.codes), at.codes.n);
    return gaps.many() <= SPAN && by(gaps);
}

}  // namespace calibayes
