// A row of K numbers in registers: as many wide vectors as fit, then narrower ones.
#pragma once

#include "kernels.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

#if defined(__AVX512F__)
constexpr int LANES = 8;
#elif defined(__AVX2__)
constexpr int LANES = 4;
#else
constexpr int LANES = 2;
#endif

#if defined(__GNUC__) && !defined(CALIBAYES_PLAIN)
#define CALIBAYES_INLINE inline __attribute__((always_inline))
#define CALIBAYES_ALONE __restrict__
template <int N>
struct Vector {
    typedef double type __attribute__((vector_size(N * 8)));
    typedef double loose __attribute__((vector_size(N * 8), aligned(8), may_alias));
    static CALIBAYES_INLINE type load(const double* from) { return *reinterpret_cast<const loose*>(from); }
    static CALIBAYES_INLINE void store(double* to, type value) { *reinterpret_cast<loose*>(to) = value; }
    static CALIBAYES_INLINE type all(double value) { return value - type{}; }
};
#else
#define CALIBAYES_INLINE inline
#define CALIBAYES_ALONE
template <int N>
struct Vector {
    struct type {
        double of[N];
        type operator+(const type& other) const { type r; for (int i = 0; i < N; ++i) r.of[i] = of[i] + other.of[i]; return r; }
        type operator-(const type& other) const { type r; for (int i = 0; i < N; ++i) r.of[i] = of[i] - other.of[i]; return r; }
        type operator*(const type& other) const { type r; for (int i = 0; i < N; ++i) r.of[i] = of[i] * other.of[i]; return r; }
    };
    static type load(const double* from) { type r; for (int i = 0; i < N; ++i) r.of[i] = from[i]; return r; }
    static void store(double* to, const type& value) { for (int i = 0; i < N; ++i) to[i] = value.of[i]; }
    static type all(double value) { type r; for (int i = 0; i < N; ++i) r.of[i] = value; return r; }
};
#endif

constexpr int head_of(int n) { return n >= LANES ? LANES : n >= 8 ? 8 : n >= 4 ? 4 : 2; }

template <int N>
struct Pack {
    static constexpr int HEAD = head_of(N);
    using V = Vector<HEAD>;
    typename V::type head;
    Pack<N - HEAD> tail;

    static CALIBAYES_INLINE Pack load(const double* from) { return {V::load(from), Pack<N - HEAD>::load(from + HEAD)}; }
    static CALIBAYES_INLINE Pack all(double value) { return {V::all(value), Pack<N - HEAD>::all(value)}; }
    CALIBAYES_INLINE void store(double* to) const { V::store(to, head); tail.store(to + HEAD); }
    CALIBAYES_INLINE Pack operator+(const Pack& b) const { return {head + b.head, tail + b.tail}; }
    CALIBAYES_INLINE Pack operator-(const Pack& b) const { return {head - b.head, tail - b.tail}; }
    CALIBAYES_INLINE Pack operator*(const Pack& b) const { return {head * b.head, tail * b.tail}; }
};

template <>
struct Pack<0> {
    static CALIBAYES_INLINE Pack load(const double*) { return {}; }
    static CALIBAYES_INLINE Pack all(double) { return {}; }
    CALIBAYES_INLINE void store(double*) const {}
    CALIBAYES_INLINE Pack operator+(const Pack&) const { return {}; }
    CALIBAYES_INLINE Pack operator-(const Pack&) const { return {}; }
    CALIBAYES_INLINE Pack operator*(const Pack&) const { return {}; }
};

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
