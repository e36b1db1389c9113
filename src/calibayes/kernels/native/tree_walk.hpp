// Leaves of many rows in a tree without branches: each split that sends a row to the right takes the leaves on its left out of
// the row's mask, and the first leaf that is left is the row's (Lucchese et al. 2015, "QuickScorer").
#pragma once

#include "vector_row.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

CALIBAYES_INLINE int lowest_bit(std::uint64_t mask) {
#if defined(__GNUC__)
    return __builtin_ctzll(mask);
#else
    int place = 0;
    for (; !(mask & 1); mask >>= 1) ++place;
    return place;
#endif
}

// `codes` are bytes (d, ROWS); writes the leaves of the first rows, `stride` apart. M has a bit for each leaf, Signed its size.
template <class M, class Signed>
void masked_leaves(const MaskedTree& tree, const std::uint8_t* codes, Int many, std::int8_t* out, Int stride) {
    M mask[ROWS];
    for (Int r = 0; r < ROWS; ++r) mask[r] = static_cast<M>(~M(0));
    for (Int i = 0; i < tree.splits; ++i) {
        const MaskedSplit& split = tree.first[i];
        const std::uint8_t* CALIBAYES_ALONE own = codes + split.column * ROWS;
        const std::uint8_t lowest = split.lowest, range = split.range;
        const M kept = static_cast<M>(split.kept);
        std::int8_t left[ROWS];  // all bits or none; in an array of its own, so that both loops are vectorized
        for (Int r = 0; r < ROWS; ++r) left[r] = static_cast<std::uint8_t>(own[r] - lowest) <= range ? -1 : 0;
        for (Int r = 0; r < ROWS; ++r) mask[r] &= static_cast<M>(static_cast<Signed>(left[r])) | kept;
    }
    for (Int r = 0; r < many; ++r) out[r * stride] = tree.leaves[lowest_bit(mask[r])];
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
