// Columns of levels: where the entries of a row lie in a packed table, sums of such entries, and sums of weights there.
#pragma once

#include "pack.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

constexpr std::uint32_t NO_LEVEL = 0xffffffffu;

// A code as a number without sign: what is no level becomes the largest one.
template <class T>
CALIBAYES_INLINE std::uint32_t unsigned_code(T code) {
    if (sizeof(T) < 8) return static_cast<std::uint32_t>(static_cast<std::int32_t>(code));
    return code < T(0) || code > T(0x7fffffff) ? NO_LEVEL : static_cast<std::uint32_t>(code);
}
template <>
CALIBAYES_INLINE std::uint32_t unsigned_code(float flag) {
    return flag != flag ? NO_LEVEL : flag != 0.0f;
}
template <>
CALIBAYES_INLINE std::uint32_t unsigned_code(double flag) {
    return flag != flag ? NO_LEVEL : flag != 0.0;
}

// The type in which codes of a type are compared without sign.
template <class T> struct Plain { using type = std::uint32_t; };
template <> struct Plain<std::int8_t> { using type = std::uint8_t; };
template <> struct Plain<std::uint8_t> { using type = std::uint8_t; };
template <> struct Plain<std::int16_t> { using type = std::uint16_t; };
template <> struct Plain<std::uint16_t> { using type = std::uint16_t; };

template <class T>
void top_of(const Codes& codes, std::uint64_t* top) {
    using U = typename Plain<T>::type;
    constexpr Int WIDE = 512;
    U most[WIDE];
    for (Int from = 0; from < codes.d; from += WIDE) {
        const Int wide = codes.d - from < WIDE ? codes.d - from : WIDE;
        for (Int j = 0; j < wide; ++j) most[j] = 0;
        for (Int r = 0; r < codes.n; ++r) {
            const T* row = static_cast<const T*>(codes.data) + r * codes.stride + from;
            for (Int j = 0; j < wide; ++j) {
                const U code = static_cast<U>(unsigned_code(row[j]));
                most[j] = code > most[j] ? code : most[j];
            }
        }
        for (Int j = 0; j < wide; ++j) top[from + j] = most[j];
    }
}

// A row narrowed, and its codes counted among the largest.
template <class N, class T>
CALIBAYES_INLINE void narrow_row(const T* CALIBAYES_ALONE row, const std::uint32_t* CALIBAYES_ALONE levels, Int d,
                                 N* CALIBAYES_ALONE to, std::uint32_t* CALIBAYES_ALONE top) {
    for (Int j = 0; j < d; ++j) {
        const std::uint32_t code = unsigned_code(row[j]);
        to[j] = code < levels[j] ? static_cast<N>(code) : N(-1);
        top[j] = code > top[j] ? code : top[j];
    }
}

template <class N, class T>
void narrow(const Codes& codes, const std::uint32_t* levels, void* to, std::uint64_t* top) {
    constexpr Int WIDE = 512;
    std::uint32_t most[WIDE];
    for (Int from = 0; from < codes.d; from += WIDE) {
        const Int wide = codes.d - from < WIDE ? codes.d - from : WIDE;
        for (Int j = 0; j < wide; ++j) most[j] = 0;
        for (Int r = 0; r < codes.n; ++r)
            narrow_row(static_cast<const T*>(codes.data) + r * codes.stride + from, levels + from, wide,
                       static_cast<N*>(to) + r * codes.d + from, most);
        for (Int j = 0; j < wide; ++j) top[from + j] = most[j];
    }
}
template <class T> void narrow8(const Codes& c, const std::uint32_t* l, void* to, std::uint64_t* top) { narrow<std::int8_t, T>(c, l, to, top); }
template <class T> void narrow16(const Codes& c, const std::uint32_t* l, void* to, std::uint64_t* top) { narrow<std::int16_t, T>(c, l, to, top); }
template <class T> void narrow32(const Codes& c, const std::uint32_t* l, void* to, std::uint64_t* top) { narrow<std::int32_t, T>(c, l, to, top); }

template <class T>
CALIBAYES_INLINE std::uint32_t digit(T entry, std::uint32_t last) {
    const std::uint32_t code = unsigned_code(entry);
    return code < last ? code : last;
}

template <class T>
bool places_of(const Codes& codes, const Int* rows, Int n, const Groups& groups, Int from, Int to,
               std::uint32_t* places) {
    std::uint32_t beyond = 0;
    for (Int r = 0; r < n; ++r) {
        std::uint32_t* CALIBAYES_ALONE place = places + r * LINE;
        const std::uint32_t* CALIBAYES_ALONE first = groups.first + from;
        for (Int p = 0; p < to - from; ++p) place[p] = first[p];
        for (Int m = 0; m < groups.members; ++m) {
            const Int j = m * groups.groups + from, many = codes.d - j < to - from ? codes.d - j : to - from;
            const T* CALIBAYES_ALONE row = static_cast<const T*>(codes.data) + rows[r] * codes.stride + j;
            const std::uint32_t *CALIBAYES_ALONE last = groups.last + j, *CALIBAYES_ALONE step = groups.step + j;
            for (Int p = 0; p < many; ++p) {
                const std::uint32_t kept = digit(row[p], last[p]);
                beyond |= unsigned_code(row[p]) ^ kept;
                place[p] += kept * step[p];
            }
        }
    }
    return beyond != 0;
}

template <int K>
void gather(const std::uint32_t* places, Int n, Int tile, const double* table, double* sums) {
    Int r = 0;
    for (; r + 4 <= n; r += 4) {
        const std::uint32_t *p = places + r * LINE, *q = p + LINE, *s = q + LINE, *u = s + LINE;
        double* to = sums + r * K;
        auto a = Pack<K>::load(to), b = Pack<K>::load(to + K), c = Pack<K>::load(to + 2 * K),
             e = Pack<K>::load(to + 3 * K);
        for (Int t = 0; t < tile; ++t) {
            a = a + Pack<K>::load(table + p[t]);
            b = b + Pack<K>::load(table + q[t]);
            c = c + Pack<K>::load(table + s[t]);
            e = e + Pack<K>::load(table + u[t]);
        }
        a.store(to), b.store(to + K), c.store(to + 2 * K), e.store(to + 3 * K);
    }
    for (; r < n; ++r) {
        auto a = Pack<K>::load(sums + r * K);
        for (Int t = 0; t < tile; ++t) a = a + Pack<K>::load(table + places[r * LINE + t]);
        a.store(sums + r * K);
    }
}

template <int K>
void scatter(const std::uint32_t* places, Int n, Int tile, const double* weights, double* table) {
    for (Int r = 0; r < n; ++r) {
        const auto own = Pack<K>::load(weights + r * K);
        for (Int t = 0; t < tile; ++t) {
            double* cell = table + places[r * LINE + t];
            (Pack<K>::load(cell) + own).store(cell);
        }
    }
}

inline void scatter_one(const std::uint32_t* places, Int n, Int tile, const Int* own, const double* weight,
                        double* table) {
    for (Int r = 0; r < n; ++r) {
        double* mine = table + own[r];
        for (Int t = 0; t < tile; ++t) mine[places[r * LINE + t]] += weight[r];
    }
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
