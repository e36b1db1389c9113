// Loops around the kernels over numbers.
#pragma once

#include <cmath>
#include <limits>

#include "level_loops.hpp"

namespace calibayes {

inline void distances(const Kernels& kernels, Int width, const Numbers<float>& x, const double* m, const double* w,
                      const double* t, double* s, std::uint8_t* g) {
    kernels.distances32[width](x, m, w, t, s, g);
}
inline void distances(const Kernels& kernels, Int width, const Numbers<double>& x, const double* m, const double* w,
                      const double* t, double* s, std::uint8_t* g) {
    kernels.distances64[width](x, m, w, t, s, g);
}
inline void powers(const Kernels& kernels, Int width, const Numbers<float>& x, const double* c, const double* w,
                   double* z, double* f, double* s) {
    kernels.powers32[width](x, c, w, z, f, s);
}
inline void powers(const Kernels& kernels, Int width, const Numbers<double>& x, const double* c, const double* w,
                   double* z, double* f, double* s) {
    kernels.powers64[width](x, c, w, z, f, s);
}
inline void own_powers(const Kernels& kernels, const Numbers<float>& x, const double* c, const Int* own,
                       const double* w, double* z, double* f, double* s) {
    kernels.own_powers32(x, c, own, w, z, f, s);
}
inline void own_powers(const Kernels& kernels, const Numbers<double>& x, const double* c, const Int* own,
                       const double* w, double* z, double* f, double* s) {
    kernels.own_powers64(x, c, own, w, z, f, s);
}

// Log density of independent Gaussians with means and variances (k, d), written to (n, k). Missing values (NaN) are
// skipped.
template <class X>
void diagonal_gaussian(const Numbers<X>& x, const double* mean, const double* variance, Int k, double* out) {
    const double log_two_pi = std::log(8.0 * std::atan(1.0));
    const Kernels& kernels = chosen();
    const Int most = padded(share_of(k));
    std::vector<double> middle(x.d * most), root(x.d * most), term(x.d * most), constant(most), sums(ROWS * most);
    std::vector<std::uint8_t> gaps(ROWS);
    for (Int c = 0; c < k; c += share_of(k)) {
        const Int own = std::min(share_of(k), k - c), pad = padded(own);
        for (Int i = 0; i < pad; ++i) {
            constant[i] = 0.0;
            for (Int j = 0; j < x.d; ++j) {
                const Int from = (c + std::min(i, own - 1)) * x.d + j;
                middle[j * pad + i] = mean[from];
                root[j * pad + i] = 1.0 / std::sqrt(variance[from]);
                term[j * pad + i] = std::log(variance[from]) + log_two_pi;
                constant[i] += term[j * pad + i];
            }
        }
        for (Int from = 0; from < x.n; from += ROWS) {
            const Numbers<X> part{x.data + from * x.stride, x.stride, std::min(ROWS, x.n - from), x.d};
            distances(kernels, width(pad), part, middle.data(), root.data(), term.data(), sums.data(), gaps.data());
            for (Int r = 0; r < part.n; ++r)
                for (Int i = 0; i < own; ++i)
                    out[(from + r) * k + c + i] = -0.5 * (sums[r * pad + i] + (gaps[r] ? 0.0 : constant[i]));
        }
    }
}

// Log densities of positions on grids, (n, k), from those at the cells, (k, cells); column j has cells from start[j].
inline void binned_sums(const Numbers<double>& x, const Int* points, const Int* start, const double* table, Int k,
                        double* out) {
    const Int cells = start[x.d], most = padded(share_of(k));
    std::vector<double> density(cells * most), scale(x.d), sums(ROWS * most);
    for (Int c = 0; c < k; c += share_of(k)) {
        const Int own = std::min(share_of(k), k - c), pad = padded(own);
        for (Int j = 0; j < x.d; ++j) {
            double top = -std::numeric_limits<double>::infinity();
            for (Int i = 0; i < own; ++i)
                for (Int cell = start[j]; cell < start[j + 1]; ++cell) top = std::max(top, table[(c + i) * cells + cell]);
            scale[j] = std::isfinite(top) ? top : 0.0;
            for (Int cell = start[j]; cell < start[j + 1]; ++cell)
                for (Int i = 0; i < pad; ++i)
                    density[cell * pad + i] = std::exp(table[(c + std::min(i, own - 1)) * cells + cell] - scale[j]);
        }
        for (Int from = 0; from < x.n; from += ROWS) {
            const Numbers<double> part{x.data + from * x.stride, x.stride, std::min(ROWS, x.n - from), x.d};
            chosen().binned_sums[width(pad)](part, points, start, density.data(), scale.data(), sums.data());
            for (Int r = 0; r < part.n; ++r)
                for (Int i = 0; i < own; ++i) out[(from + r) * k + c + i] = sums[r * pad + i];
        }
    }
}

// Sums of weights per class and cell, added to (k, cells), initially zero.
inline void binned_counts(const Numbers<double>& x, const Int* points, const Int* start, const double* weights, Int k,
                          double* out) {
    const Int cells = start[x.d], most = padded(share_of(k));
    std::vector<double> table(cells * most), part(ROWS * most);
    for (Int c = 0; c < k; c += share_of(k)) {
        const Int own = std::min(share_of(k), k - c), pad = padded(own);
        std::fill(table.begin(), table.end(), 0.0);
        for (Int from = 0; from < x.n; from += ROWS) {
            const Numbers<double> rows{x.data + from * x.stride, x.stride, std::min(ROWS, x.n - from), x.d};
            for (Int r = 0; r < rows.n; ++r)
                for (Int i = 0; i < pad; ++i) part[r * pad + i] = i < own ? weights[(from + r) * k + c + i] : 0.0;
            chosen().binned_counts[width(pad)](rows, points, start, part.data(), table.data());
        }
        for (Int i = 0; i < own; ++i)
            for (Int cell = 0; cell < cells; ++cell) out[(c + i) * cells + cell] = table[cell * pad + i];
    }
}

// Weighted sums of the powers 0, 1, 2 of x - center, added to (k, d) each, initially zero.
template <class X>
void power_sums(const Numbers<X>& x, const double* center, const double* weights, Int k, double* count, double* first,
                double* second) {
    const Kernels& kernels = chosen();
    std::vector<Int> own(x.n);
    std::vector<double> weight(x.n);
    bool single = true;
    for (Int r = 0; r < x.n && single; ++r) {
        Int many = 0;
        for (Int c = 0; c < k; ++c)
            if (weights[r * k + c] != 0.0) ++many, own[r] = c, weight[r] = weights[r * k + c];
        single = many <= 1;
    }
    if (single) return own_powers(kernels, x, center, own.data(), weight.data(), count, first, second);
    const Int most = padded(share_of(k));
    std::vector<double> sums(3 * x.d * most), part(ROWS * most);
    for (Int c = 0; c < k; c += share_of(k)) {
        const Int mine = std::min(share_of(k), k - c), pad = padded(mine);
        std::fill(sums.begin(), sums.end(), 0.0);
        double *zero = sums.data(), *one = zero + x.d * pad, *two = one + x.d * pad;
        for (Int from = 0; from < x.n; from += ROWS) {
            const Numbers<X> rows{x.data + from * x.stride, x.stride, std::min(ROWS, x.n - from), x.d};
            for (Int r = 0; r < rows.n; ++r)
                for (Int i = 0; i < pad; ++i) part[r * pad + i] = i < mine ? weights[(from + r) * k + c + i] : 0.0;
            powers(kernels, width(pad), rows, center, part.data(), zero, one, two);
        }
        for (Int i = 0; i < mine; ++i)
            for (Int j = 0; j < x.d; ++j) {
                count[(c + i) * x.d + j] = zero[j * pad + i];
                first[(c + i) * x.d + j] = one[j * pad + i];
                second[(c + i) * x.d + j] = two[j * pad + i];
            }
    }
}

}  // namespace calibayes
