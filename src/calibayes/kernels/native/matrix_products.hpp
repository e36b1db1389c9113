// Squared Mahalanobis distances and second moments of dependent columns: loops around the products of matrices of BLAS,
// whose functions are given. A tile of rows stays in the cache, and the memory is reused.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "level_loops.hpp"

namespace calibayes {

constexpr Int TILE_CELLS = Int(1) << 16;  // numbers of a tile of rows
constexpr Int FEWEST_TILE_ROWS = 128;

// BLAS functions xTRMM and DSYRK, all of whose arguments are addresses.
template <class T>
using TriangularProduct = void (*)(const char* side, const char* triangle, const char* transposed, const char* diagonal,
                                   const int* m, const int* n, const T* one, const T* factor, const int* factor_stride,
                                   T* rows, const int* row_stride);
using SquareProduct = void (*)(const char* triangle, const char* transposed, const int* n, const int* rows,
                               const double* factor, const double* from, const int* from_stride, const double* share,
                               double* to, const int* to_stride);

inline Int tile_rows(Int d) { return std::max(TILE_CELLS / d, FEWEST_TILE_ROWS); }

// Memory of a thread for a tile.
struct TileMemory {
    Lines cells, scale;
    std::vector<float> narrow;
    std::vector<Int> rows[2];

    void make(double*&memory, Int size) {
        cells.resize(std::max<std::size_t>(cells.size(), size));
        memory = cells.data();
    }
    void make(float*& memory, Int size) {
        narrow.resize(std::max<std::size_t>(narrow.size(), size));
        memory = narrow.data();
    }
};

inline TileMemory& tile_memory() {
    static thread_local TileMemory mine;
    return mine;
}

inline void center(const Numbers<float>& x, const double* center, float* out) { chosen().centered32_32(x, center, out); }
inline void center(const Numbers<float>& x, const double* center, double* out) { chosen().centered32_64(x, center, out); }
inline void center(const Numbers<double>& x, const double* center, double* out) { chosen().centered64_64(x, center, out); }
inline void squares(const float* rows, Int n, Int d, Int step, double* out) { chosen().squared_lengths32(rows, n, d, step, out); }
inline void squares(const double* rows, Int n, Int d, Int step, double* out) { chosen().squared_lengths64(rows, n, d, step, out); }
inline void scale(const Numbers<float>& x, const Int* rows, const double* factor, const double* center, double* out) {
    chosen().scaled_rows32(x, rows, factor, center, out);
}
inline void scale(const Numbers<double>& x, const Int* rows, const double* factor, const double* center, double* out) {
    chosen().scaled_rows64(x, rows, factor, center, out);
}

// Squared lengths of factor (x - mean), (n, k), with means (k, d) and lower triangular factors (k, d, d).
template <class X, class T>
void whitened_squares(const Numbers<X>& x, const double* mean, const T* factor, Int k, TriangularProduct<T> multiply,
                      double* out) {
    const T one = 1;
    const int d = static_cast<int>(x.d);
    T* memory;
    tile_memory().make(memory, std::min(tile_rows(x.d), x.n) * x.d);
    for (Int from = 0; from < x.n; from += tile_rows(x.d)) {
        const Numbers<X> tile{x.data + from * x.stride, x.stride, std::min(tile_rows(x.d), x.n - from), x.d};
        const int n = static_cast<int>(tile.n);
        for (Int c = 0; c < k; ++c) {
            center(tile, mean + c * x.d, memory);
            // BLAS arrays are in column order: rows are its columns, and a lower triangle is its upper one, transposed.
            multiply("L", "U", "T", "N", &d, &n, &one, factor + c * x.d * x.d, &d, memory, &d);
            squares(memory, tile.n, x.d, k, out + from * k + c);
        }
    }
}

// Adds `sign` times the outer products of rows, with the square roots of their weights, to the upper triangle (in column
// order) of a matrix (d, d).
template <class X>
void add_products(const Numbers<X>& x, const std::vector<Int>& rows, const double* center, const double* weights, Int k,
                  double sign, SquareProduct multiply, double* out) {
    const double share = 1.0;
    const int d = static_cast<int>(x.d);
    const Int most = tile_rows(x.d), count = static_cast<Int>(rows.size());
    TileMemory& memory = tile_memory();
    double* cells;
    memory.make(cells, std::min(most, count) * x.d);
    memory.scale.resize(std::max<std::size_t>(memory.scale.size(), most));
    for (Int from = 0; from < count; from += most) {
        const int n = static_cast<int>(std::min(most, count - from));
        for (Int r = 0; r < n; ++r) memory.scale[r] = std::sqrt(std::fabs(weights[rows[from + r] * k]));
        scale({x.data, x.stride, n, x.d}, rows.data() + from, memory.scale.data(), center, cells);
        multiply("U", "N", &d, &n, &sign, cells, &d, &share, out, &d);
    }
}

// Weighted sums of the outer products of x - center, added to (k, d, d), initially zero, for weights (n, k) of any sign. Rows
// of weight 0 are left out; NaN weights go with the negative ones.
template <class X>
void outer_sums(const Numbers<X>& x, const double* center, const double* weights, Int k, SquareProduct multiply,
                double* out) {
    for (Int c = 0; c < k; ++c) {
        auto& signs = tile_memory().rows;
        double* sums = out + c * x.d * x.d;
        for (auto& rows : signs) rows.clear();
        for (Int r = 0; r < x.n; ++r)
            if (!(weights[r * k + c] == 0.0)) signs[!(weights[r * k + c] > 0.0)].push_back(r);
        add_products(x, signs[0], center, weights + c, k, 1.0, multiply, sums);
        add_products(x, signs[1], center, weights + c, k, -1.0, multiply, sums);
        for (Int i = 0; i < x.d; ++i)
            for (Int j = 0; j < i; ++j) sums[j * x.d + i] = sums[i * x.d + j];
    }
}

}  // namespace calibayes
