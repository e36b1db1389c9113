// Hashes of rows of bytes, and keys of their columns: sums of words, the same in any order.
#pragma once

#include "tree_growth.hpp"

namespace calibayes {

inline std::uint64_t mixed(std::uint64_t word) {
    constexpr std::uint64_t MULTIPLIER = 0x9E3779B97F4A7C15ull;
    word *= MULTIPLIER;
    return (word ^ (word >> 29)) * MULTIPLIER;
}

// Adds to the hash of each row a word for each of its codes, tables (d, 256).
inline void add_hashes(const ByteColumns& columns, const std::uint64_t* tables, Int begin, Int end, std::uint64_t* hashes) {
    for (Int j = 0; j < columns.d; ++j) {
        const std::uint64_t *words = columns.words + j / WORD * columns.n, *table = tables + j * BINS;
        const int shift = 8 * static_cast<int>(j % WORD);
        for (Int r = begin; r < end; ++r) hashes[r] += table[words[r] >> shift & 255];
    }
}

// Adds to the key of each column a word for the code and the hash of each row.
inline void add_keys(const ByteColumns& columns, const std::uint64_t* code_words, const std::uint64_t* hashes, Int begin, Int end,
                     std::uint64_t* keys) {
    for (Int j = 0; j < columns.d; ++j) {
        const std::uint64_t* words = columns.words + j / WORD * columns.n;
        const int shift = 8 * static_cast<int>(j % WORD);
        std::uint64_t key = 0;
        for (Int r = begin; r < end; ++r) key += mixed(code_words[words[r] >> shift & 255] ^ hashes[r]);
        keys[j] += key;
    }
}

}  // namespace calibayes
