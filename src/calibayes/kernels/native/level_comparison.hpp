// Counts of rows of equal weight over few levels: codes of many columns are compared with a level at once and matches
// added up.
#pragma once

#include "vector_row.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

#if defined(__GNUC__) && !defined(CALIBAYES_PLAIN)
constexpr Int BYTES = LANES * 8;
typedef signed char Bytes __attribute__((vector_size(LANES * 8)));
typedef signed char LooseBytes __attribute__((vector_size(LANES * 8), aligned(1), may_alias));

// As many columns as a vector has bytes. Counters are bytes, so there are at most 255 rows.
template <int LEVELS>
CALIBAYES_INLINE void tally_columns(const signed char* column, Int stride, const Int* rows, Int n, std::uint8_t from,
                                    std::uint32_t* counts, Int d) {
    Bytes hits[LEVELS] = {};
    for (Int r = 0; r < n; ++r) {
        const Bytes codes = *reinterpret_cast<const LooseBytes*>(column + rows[r] * stride);
        for (int v = 0; v < LEVELS; ++v) hits[v] -= codes == (Bytes{} + static_cast<signed char>(from + v));
    }
    for (int v = 0; v < LEVELS; ++v)
        for (Int t = 0; t < BYTES; ++t) counts[v * d + t] += static_cast<std::uint8_t>(hits[v][t]);
}
#else
constexpr Int BYTES = 1;
template <int LEVELS>
CALIBAYES_INLINE void tally_columns(const signed char* column, Int stride, const Int* rows, Int n, std::uint8_t from,
                                    std::uint32_t* counts, Int d) {
    for (Int r = 0; r < n; ++r) {
        const std::uint8_t code = static_cast<std::uint8_t>(column[rows[r] * stride]) - from;
        if (code < LEVELS) ++counts[code * d];
    }
}
#endif

template <int LEVELS>
void tally(const Codes& codes, const Int* rows, Int n, std::uint8_t from, std::uint32_t* counts) {
    const signed char* data = static_cast<const signed char*>(codes.data);
    const Int whole = codes.d / BYTES * BYTES;
    for (Int start = 0; start < n; start += 255) {
        const Int many = n - start < 255 ? n - start : 255;
        for (Int j = 0; j < whole; j += BYTES)
            tally_columns<LEVELS>(data + j, codes.stride, rows + start, many, from, counts + j, codes.d);
    }
    for (Int r = 0; r < n; ++r)
        for (Int j = whole; j < codes.d; ++j) {
            const std::uint8_t code = static_cast<std::uint8_t>(data[rows[r] * codes.stride + j]) - from;
            if (code < LEVELS) ++counts[code * codes.d + j];
        }
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
