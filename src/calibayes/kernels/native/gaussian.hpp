// Columns of numbers: squared distances from the class means, power sums, minimum and maximum of independent ones, for which
// each row is read once; rows that are centered for products of matrices.
#pragma once

#include "vector_row.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

template <class X>
CALIBAYES_INLINE bool has_gap(const X* row, Int d) {
    int gaps = 0;
    for (Int j = 0; j < d; ++j) gaps |= row[j] != row[j];
    return gaps != 0;
}

template <int K>
CALIBAYES_INLINE Pack<K> square_of(double x, const double* mean, const double* root) {
    const auto away = (Pack<K>::all(x) - Pack<K>::load(mean)) * Pack<K>::load(root);
    return away * away;
}

// One row; if it has missing values, over its known columns only, with their terms.
template <int K, class X>
CALIBAYES_INLINE void distance(const X* row, Int d, bool gaps, const double* mean, const double* root,
                               const double* term, double* sums) {
    auto total = Pack<K>::all(0.0);
    for (Int j = 0; j < d; ++j) {
        if (row[j] != row[j]) continue;
        total = total + square_of<K>(row[j], mean + j * K, root + j * K);
        if (gaps) total = total + Pack<K>::load(term + j * K);
    }
    total.store(sums);
}

template <int K, class X>
void distances(const Numbers<X>& x, const double* mean, const double* root, const double* term, double* sums,
               std::uint8_t* gaps) {
    Int r = 0;
    for (Int i = 0; i < x.n; ++i) gaps[i] = has_gap(x.data + i * x.stride, x.d);
    for (; r + 4 <= x.n; r += 4) {
        if (gaps[r] | gaps[r + 1] | gaps[r + 2] | gaps[r + 3]) {
            for (Int i = r; i < r + 4; ++i)
                distance<K>(x.data + i * x.stride, x.d, gaps[i], mean, root, term, sums + i * K);
            continue;
        }
        const X *p = x.data + r * x.stride, *q = p + x.stride, *s = q + x.stride, *u = s + x.stride;
        auto a = Pack<K>::all(0.0), b = a, c = a, e = a;
        for (Int j = 0; j < x.d; ++j) {
            const auto m = Pack<K>::load(mean + j * K), w = Pack<K>::load(root + j * K);
            const auto pa = (Pack<K>::all(p[j]) - m) * w, pb = (Pack<K>::all(q[j]) - m) * w,
                       pc = (Pack<K>::all(s[j]) - m) * w, pe = (Pack<K>::all(u[j]) - m) * w;
            a = a + pa * pa, b = b + pb * pb, c = c + pc * pc, e = e + pe * pe;
        }
        a.store(sums + r * K), b.store(sums + (r + 1) * K), c.store(sums + (r + 2) * K), e.store(sums + (r + 3) * K);
    }
    for (; r < x.n; ++r) distance<K>(x.data + r * x.stride, x.d, gaps[r], mean, root, term, sums + r * K);
}
template <int K>
void distances32(const Numbers<float>& x, const double* m, const double* w, const double* t, double* s, std::uint8_t* g) {
    distances<K>(x, m, w, t, s, g);
}
template <int K>
void distances64(const Numbers<double>& x, const double* m, const double* w, const double* t, double* s, std::uint8_t* g) {
    distances<K>(x, m, w, t, s, g);
}

// ROWS rows at a time, so that the sums of a column are loaded and stored once for all of them.
template <int K, int ROWS, class X>
CALIBAYES_INLINE void powers_of(const X* row, Int stride, Int d, const double* center, const double* weights,
                                double* count, double* first, double* second) {
    Pack<K> w[ROWS];
    for (int r = 0; r < ROWS; ++r) w[r] = Pack<K>::load(weights + r * K);
    for (Int j = 0; j < d; ++j) {
        auto zero = Pack<K>::load(count + j * K), one = Pack<K>::load(first + j * K), two = Pack<K>::load(second + j * K);
        for (int r = 0; r < ROWS; ++r) {
            const double cell = row[r * stride + j];
            const double there = cell == cell, away = cell == cell ? cell - center[j] : 0.0;
            const auto share = w[r] * Pack<K>::all(away);
            zero = zero + w[r] * Pack<K>::all(there);
            one = one + share;
            two = two + share * Pack<K>::all(away);
        }
        zero.store(count + j * K), one.store(first + j * K), two.store(second + j * K);
    }
}

template <int K, class X>
void powers(const Numbers<X>& x, const double* center, const double* weights, double* count, double* first,
            double* second) {
    Int r = 0;
    for (; r + 4 <= x.n; r += 4)
        powers_of<K, 4>(x.data + r * x.stride, x.stride, x.d, center, weights + r * K, count, first, second);
    for (; r < x.n; ++r)
        powers_of<K, 1>(x.data + r * x.stride, x.stride, x.d, center, weights + r * K, count, first, second);
}
template <int K>
void powers32(const Numbers<float>& x, const double* c, const double* w, double* z, double* f, double* s) {
    powers<K>(x, c, w, z, f, s);
}
template <int K>
void powers64(const Numbers<double>& x, const double* c, const double* w, double* z, double* f, double* s) {
    powers<K>(x, c, w, z, f, s);
}

template <class X>
void own_powers(const Numbers<X>& x, const double* CALIBAYES_ALONE center, const Int* own, const double* weight,
                double* count, double* first, double* second) {
    for (Int r = 0; r < x.n; ++r) {
        const X* CALIBAYES_ALONE row = x.data + r * x.stride;
        const double w = weight[r];
        double *CALIBAYES_ALONE zero = count + own[r] * x.d, *CALIBAYES_ALONE one = first + own[r] * x.d,
               *CALIBAYES_ALONE two = second + own[r] * x.d;
        for (Int j = 0; j < x.d; ++j) {
            const double cell = row[j], away = cell == cell ? cell - center[j] : 0.0, share = w * away;
            zero[j] += cell == cell ? w : 0.0;
            one[j] += share;
            two[j] += share * away;
        }
    }
}

// Rows minus a center, (n, d).
template <class X, class T>
void centered_rows(const Numbers<X>& x, const double* CALIBAYES_ALONE center, T* out) {
    for (Int r = 0; r < x.n; ++r) {
        const X* CALIBAYES_ALONE row = x.data + r * x.stride;
        T* CALIBAYES_ALONE to = out + r * x.d;
        for (Int j = 0; j < x.d; ++j) to[j] = static_cast<T>(row[j] - center[j]);
    }
}

// Given rows minus a center, times the square root of the absolute weight of each row, (n, d). Adds their weighted sums, without
// the square root, to `first` (d,).
template <class X>
void scaled_rows(const Numbers<X>& x, const Int* rows, const double* weight, const double* root,
                 const double* CALIBAYES_ALONE center, double* CALIBAYES_ALONE first, double* out) {
    for (Int r = 0; r < x.n; ++r) {
        const X* CALIBAYES_ALONE row = x.data + rows[r] * x.stride;
        double* CALIBAYES_ALONE to = out + r * x.d;
        for (Int j = 0; j < x.d; ++j) {
            const double away = row[j] - center[j];
            to[j] = away * root[r];
            first[j] += away * weight[r];
        }
    }
}

// Sums of squares of rows (n, d), written with a distance of `step`.
template <class T>
void squared_lengths(const T* rows, Int n, Int d, Int step, double* out) {
    constexpr int WIDE = 16;
    for (Int r = 0; r < n; ++r) {
        const T* row = rows + r * d;
        double lanes[WIDE] = {}, total = 0.0;
        Int j = 0;
        for (; j + WIDE <= d; j += WIDE)
            for (int l = 0; l < WIDE; ++l) lanes[l] += static_cast<double>(row[j + l]) * row[j + l];
        for (; j < d; ++j) total += static_cast<double>(row[j]) * row[j];
        for (int l = 0; l < WIDE; ++l) total += lanes[l];
        out[r * step] = total;
    }
}

// WIDE numbers at a time; each lane has its own minimum and maximum.
template <int WIDE, class X>
CALIBAYES_INLINE void widen_ends(const X* from, Int many, X* CALIBAYES_ALONE low, X* CALIBAYES_ALONE high,
                                 X* CALIBAYES_ALONE gap) {
    for (Int i = 0; i + WIDE <= many; i += WIDE)
        for (int l = 0; l < WIDE; ++l) {
            const X cell = from[i + l];
            low[l] = cell < low[l] ? cell : low[l];
            high[l] = cell > high[l] ? cell : high[l];
            gap[l] = cell == cell ? gap[l] : cell;
        }
}

template <class X>
void ends(const Numbers<X>& x, double* least, double* largest) {
    constexpr int WIDE = 32;
    X low[WIDE], high[WIDE], gap[WIDE];
    for (int l = 0; l < WIDE; ++l) low[l] = high[l] = x.data[0], gap[l] = 0;
    const bool whole = x.stride == x.d;
    const Int rows = whole ? 1 : x.n, wide = whole ? x.n * x.d : x.d;
    for (Int r = 0; r < rows; ++r) {
        const X* row = x.data + r * x.stride;
        widen_ends<WIDE>(row, wide, low, high, gap);
        widen_ends<1>(row + wide / WIDE * WIDE, wide % WIDE, low, high, gap);
    }
    for (int l = 1; l < WIDE; ++l) {
        low[0] = low[l] < low[0] ? low[l] : low[0];
        high[0] = high[l] > high[0] ? high[l] : high[0];
        gap[0] = gap[l] == gap[l] ? gap[0] : gap[l];
    }
    const bool known = gap[0] == gap[0];
    *least = known ? low[0] : gap[0], *largest = known ? high[0] : gap[0];
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
