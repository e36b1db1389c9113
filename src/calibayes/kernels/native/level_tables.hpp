// Columns of levels: cells of each row in a packed table, sums of table entries, and sums of weights per cell.
#pragma once

#include "vector_row.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

constexpr std::uint32_t NO_LEVEL = 0xffffffffu;

// A code as an unsigned number; a value that is no level becomes the largest number.
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

// The unsigned type in which codes of type T are compared.
template <class T> struct Plain { using type = std::uint32_t; };
template <> struct Plain<std::int8_t> { using type = std::uint8_t; };
template <> struct Plain<std::uint8_t> { using type = std::uint8_t; };
template <> struct Plain<std::int16_t> { using type = std::uint16_t; };
template <> struct Plain<std::uint16_t> { using type = std::uint16_t; };

// The larger of each code and the number before it.
template <class T, class U>
CALIBAYES_INLINE void raise(const T* CALIBAYES_ALONE row, Int many, U* CALIBAYES_ALONE most) {
    for (Int j = 0; j < many; ++j) {
        const U code = static_cast<U>(unsigned_code(row[j]));
        most[j] = code > most[j] ? code : most[j];
    }
}

template <class T>
void top_of(const Codes& codes, std::uint64_t* top) {
    using U = typename Plain<T>::type;
    constexpr Int WIDE = 512;
    U most[WIDE];
    if (codes.d > 0 && codes.stride == codes.d && 2 * codes.d <= WIDE) {  // several rows at a time, so that short rows are vectorized
        const T* data = static_cast<const T*>(codes.data);
        const Int wide = WIDE / codes.d * codes.d, all = codes.n * codes.d;
        for (Int j = 0; j < wide; ++j) most[j] = 0;
        for (Int from = 0; from < all; from += wide) raise(data + from, all - from < wide ? all - from : wide, most);
        for (Int j = 0; j < codes.d; ++j) top[j] = most[j];
        for (Int j = codes.d; j < wide; ++j) top[j % codes.d] = most[j] > top[j % codes.d] ? most[j] : top[j % codes.d];
        return;
    }
    for (Int from = 0; from < codes.d; from += WIDE) {
        const Int wide = codes.d - from < WIDE ? codes.d - from : WIDE;
        for (Int j = 0; j < wide; ++j) most[j] = 0;
        for (Int r = 0; r < codes.n; ++r) {
            const T* row = static_cast<const T*>(codes.data) + r * codes.stride + from;
            raise(row, wide, most);
        }
        for (Int j = 0; j < wide; ++j) top[from + j] = most[j];
    }
}

// Converts a row to a narrower type and updates the largest code of each column.
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

// The type in which codes and digits are compared: one byte if both are bytes.
template <class T, class N> struct Compared { using type = std::uint32_t; };
template <class T> struct Compared<T, std::uint8_t> : Plain<T> {};

// Appends the digit of one more column to the entries of groups; returns nonzero if a code exceeded the last digit.
template <class T, class N, class U = typename Compared<T, N>::type>
CALIBAYES_INLINE U add_digits(const T* CALIBAYES_ALONE row, const N* CALIBAYES_ALONE last,
                              const N* CALIBAYES_ALONE digits, Int many, N* CALIBAYES_ALONE entries) {
    U beyond = 0;
    for (Int p = 0; p < many; ++p) {
        const U code = static_cast<U>(unsigned_code(row[p])), most = last[p], kept = code < most ? code : most;
        beyond |= code ^ kept;
        entries[p] = static_cast<N>(entries[p] * digits[p] + kept);
    }
    return beyond;
}

// The entries of groups of one column each; returns nonzero if a code exceeded the last digit.
template <class T, class N, class U = typename Compared<T, N>::type>
CALIBAYES_INLINE U limit_digits(const T* CALIBAYES_ALONE codes, const N* CALIBAYES_ALONE last, Int many,
                                N* CALIBAYES_ALONE entries) {
    U beyond = 0;
    for (Int p = 0; p < many; ++p) {
        const U code = static_cast<U>(unsigned_code(codes[p])), most = last[p], kept = code < most ? code : most;
        beyond |= code ^ kept;
        entries[p] = static_cast<N>(kept);
    }
    return beyond;
}

// Kernels over the entries of groups of columns, as numbers of type N.
template <class N>
struct Rows {
    template <class T>
    static bool entries(const Codes& codes, const Int* rows, Int n, const Groups<N>& groups, Int from, Int to,
                        N* entries) {
        bool beyond = false;
        if (n && groups.repeated && codes.stride == codes.d && rows[n - 1] - rows[0] == n - 1) {
            const T* data = static_cast<const T*>(codes.data) + rows[0] * codes.d;
            const Int wide = REPEATED * codes.d, all = n * codes.d;
            for (Int at = 0; at < all; at += wide) {
                const Int many = all - at < wide ? all - at : wide;
                beyond |= limit_digits(data + at, groups.repeated, many, entries + at) != 0;
            }
            return beyond;
        }
        for (Int r = 0; r < n; ++r) {
            N* own = entries + r * groups.line;
            for (Int p = 0; p < to - from; ++p) own[p] = 0;
            for (Int m = 0; m < groups.members; ++m) {
                const Int j = m * groups.groups + from, many = codes.d - j < to - from ? codes.d - j : to - from;
                const T* row = static_cast<const T*>(codes.data) + rows[r] * codes.stride + j;
                beyond |= add_digits(row, groups.last + j, groups.digits + j, many, own) != 0;
            }
        }
        return beyond;
    }

    template <int K>
    static CALIBAYES_INLINE Int place(N entry, std::uint32_t first) {
        return first + static_cast<std::uint32_t>(entry) * K;
    }

    template <int K>
    static void gather(const N* entries, Int line, const std::uint32_t* first, Int n, Int tile, const double* table,
                       double* sums) {
        Int r = 0;
        for (; r + 4 <= n; r += 4) {
            const N *p = entries + r * line, *q = p + line, *s = q + line, *u = s + line;
            double* to = sums + r * K;
            auto a = Pack<K>::load(to), b = Pack<K>::load(to + K), c = Pack<K>::load(to + 2 * K),
                 e = Pack<K>::load(to + 3 * K);
            for (Int t = 0; t < tile; ++t) {
                a = a + Pack<K>::load(table + place<K>(p[t], first[t]));
                b = b + Pack<K>::load(table + place<K>(q[t], first[t]));
                c = c + Pack<K>::load(table + place<K>(s[t], first[t]));
                e = e + Pack<K>::load(table + place<K>(u[t], first[t]));
            }
            a.store(to), b.store(to + K), c.store(to + 2 * K), e.store(to + 3 * K);
        }
        for (; r < n; ++r) {
            auto a = Pack<K>::load(sums + r * K);
            for (Int t = 0; t < tile; ++t)
                a = a + Pack<K>::load(table + place<K>(entries[r * line + t], first[t]));
            a.store(sums + r * K);
        }
    }

    template <int K>
    static void scatter(const N* entries, Int line, const std::uint32_t* first, Int n, Int tile, const double* weights,
                        double* table) {
        for (Int r = 0; r < n; ++r) {
            const auto own = Pack<K>::load(weights + r * K);
            for (Int t = 0; t < tile; ++t) {
                double* cell = table + place<K>(entries[r * line + t], first[t]);
                (Pack<K>::load(cell) + own).store(cell);
            }
        }
    }

    static void scatter_one(const N* entries, Int line, const std::uint32_t* first, Int n, Int tile, Int pad, const Int* own,
                            const double* weight, double* table) {
        for (Int r = 0; r < n; ++r)
            for (Int t = 0; t < tile; ++t) table[first[t] + entries[r * line + t] * pad + own[r]] += weight[r];
    }
};

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
