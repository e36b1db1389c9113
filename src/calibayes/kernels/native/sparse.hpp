// CSR rows: products with a table, and weighted sums of columns. Tables are (d, k), so that the entries of a column are
// contiguous. A column number outside the table is skipped.
#pragma once

#include "vector_row.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

// Sums of K classes from `from` on, in registers.
template <int K, class C>
CALIBAYES_INLINE Int some_sums(const Sparse<C>& x, Int r, const double* table, Int d, Int k, Int from, double* own) {
    auto sum = Pack<K>::all(0.0);
    for (Int i = x.start[r]; i < x.start[r + 1]; ++i) {
        const Int j = x.column[i];
        if (j < 0 || j >= d) continue;
        sum = sum + Pack<K>::all(x.data[i]) * Pack<K>::load(table + j * k + from);
    }
    sum.store(own + from);
    return from + K;
}

template <class C>
void sparse_sums(const Sparse<C>& x, const double* table, Int d, Int k, double* out) {
    for (Int r = 0; r < x.n; ++r) {
        double* own = out + r * k;
        Int c = 0;
        while (c + 16 <= k) c = some_sums<16>(x, r, table, d, k, c, own);
        if (c + 8 <= k) c = some_sums<8>(x, r, table, d, k, c, own);
        if (c + 4 <= k) c = some_sums<4>(x, r, table, d, k, c, own);
        if (c + 2 <= k) c = some_sums<2>(x, r, table, d, k, c, own);
        for (; c < k; ++c) {
            own[c] = 0.0;
            for (Int i = x.start[r]; i < x.start[r + 1]; ++i) {
                const Int j = x.column[i];
                own[c] += j < 0 || j >= d ? 0.0 : x.data[i] * table[j * k + c];
            }
        }
    }
}

template <class C>
void sparse_totals(const Sparse<C>& x, const double* CALIBAYES_ALONE weights, Int d, Int k,
                   double* CALIBAYES_ALONE table) {
    for (Int r = 0; r < x.n; ++r) {
        const double* CALIBAYES_ALONE own = weights + r * k;
        Int many = 0, last = 0;
        for (Int c = 0; c < k; ++c)
            if (own[c] != 0.0) ++many, last = c;
        if (!many) continue;
        for (Int i = x.start[r]; i < x.start[r + 1]; ++i) {
            const Int j = x.column[i];
            if (j < 0 || j >= d) continue;
            const double value = x.data[i];
            double* CALIBAYES_ALONE row = table + j * k;
            if (many == 1)
                row[last] += value * own[last];
            else
                for (Int c = 0; c < k; ++c) row[c] += value * own[c];
        }
    }
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
