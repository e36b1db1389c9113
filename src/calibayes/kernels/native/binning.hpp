// Codes of the bins that numbers fall into.
#pragma once

#include <algorithm>

#include "kernels.hpp"

namespace calibayes {

// Numbers of ascending edges that are not above values, by halving: one step for all values at a time, without branches.
inline void edges_below(const double* edges, Int count, const double* values, Int m, std::int32_t* below) {
    std::fill(below, below + m, 0);
    while (count > 0) {
        const std::int32_t half = static_cast<std::int32_t>((count + 1) / 2);
        const double* middle = edges + half - 1;
        for (Int r = 0; r < m; ++r) below[r] += half & -static_cast<std::int32_t>(middle[below[r]] <= values[r]);
        count -= half;
    }
}

// The code of each number (n, d); the edges of column j are from first[j] to first[j + 1].
template <class X>
void bin_codes(const Numbers<X>& x, const double* edges, const Int* first, std::int16_t* out) {
    double values[ROWS];
    std::int32_t below[ROWS];
    for (Int begin = 0; begin < x.n; begin += ROWS) {
        const Int m = std::min(ROWS, x.n - begin);
        for (Int j = 0; j < x.d; ++j) {
            for (Int r = 0; r < m; ++r) values[r] = static_cast<double>(x.data[(begin + r) * x.stride + j]);
            edges_below(edges + first[j], first[j + 1] - first[j], values, m, below);
            for (Int r = 0; r < m; ++r)
                out[(begin + r) * x.d + j] = static_cast<std::int16_t>(values[r] != values[r] ? -1 : below[r]);
        }
    }
}

}  // namespace calibayes
