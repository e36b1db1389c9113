// Sparse rows: sums of a table's rows, and sums of weights at a table's rows. Tables are (d, k): what belongs to a column
// lies side by side. A column beyond the table is skipped.
#pragma once

#include "pack.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

template <class C>
void sparse_sums(const Sparse<C>& x, const double* CALIBAYES_ALONE table, Int d, Int k, double* CALIBAYES_ALONE out) {
    for (Int r = 0; r < x.n; ++r) {
        double* CALIBAYES_ALONE own = out + r * k;
        for (Int c = 0; c < k; ++c) own[c] = 0.0;
        for (Int i = x.start[r]; i < x.start[r + 1]; ++i) {
            const Int j = x.column[i];
            if (j < 0 || j >= d) continue;
            const double value = x.data[i], *CALIBAYES_ALONE row = table + j * k;
            for (Int c = 0; c < k; ++c) own[c] += value * row[c];
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
