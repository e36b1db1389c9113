// Sums of packed residuals by column and bin over the rows of a node.
//
// Codes are bytes, eight columns to a word: column 8 t + s is byte s of word t. Sums of whole numbers do not depend on their
// order. A pass over the rows adds up as few columns as fit into the L1 cache.
#pragma once

#include "vector_row.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

// Adds the numbers (m, K) of some rows to the sums of COLUMNS columns of a word, (COLUMNS, BINS, K). K = 0 is any k.
template <int COLUMNS, int K>
CALIBAYES_INLINE void add_columns(const std::uint64_t* words, const std::int32_t* rows, Int m, const Int* packed, Int any,
                                  int shift, Int* CALIBAYES_ALONE sums) {
    const Int k = K ? K : any;
    for (Int r = 0; r < m; ++r) {
        std::uint64_t codes = words[rows[r]] >> shift;
        const Int* own = packed + r * k;
        for (int j = 0; j < COLUMNS; ++j, codes >>= 8) {
            Int* cell = sums + (j * BINS + static_cast<Int>(codes & 255)) * k;
            for (Int c = 0; c < k; ++c) cell[c] = added(cell[c], own[c]);
        }
    }
}

template <int K>
void node_sums(const std::uint64_t* words, const std::int32_t* rows, Int m, const Int* packed, Int k, int columns, Int* sums) {
    int j = 0;
    if (K && K <= 2)
        for (; j + 4 <= columns; j += 4) add_columns<4, K>(words, rows, m, packed, k, 8 * j, sums + j * BINS * k);
    for (; j + 2 <= columns; j += 2) add_columns<2, K>(words, rows, m, packed, k, 8 * j, sums + j * BINS * k);
    for (; j < columns; ++j) add_columns<1, K>(words, rows, m, packed, k, 8 * j, sums + j * BINS * k);
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
