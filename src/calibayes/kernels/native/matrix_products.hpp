// Densities and moments of dependent columns: loops around the products and factorizations of matrices of BLAS and LAPACK, whose
// functions are given. A tile of rows stays in the cache, and the memory is reused.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "level_loops.hpp"
#include "team.hpp"

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

// LAPACK functions DPOTRF and DTRTRI.
using Factorization = void (*)(const char* triangle, const int* n, double* matrix, const int* stride, int* failed);
using TriangularInverse = void (*)(const char* triangle, const char* diagonal, const int* n, double* matrix,
                                   const int* stride, int* failed);

inline Int tile_rows(Int d) { return std::max(TILE_CELLS / d, FEWEST_TILE_ROWS); }

// Memory of a thread for a tile.
struct TileMemory {
    Lines cells, weight, root;
    std::vector<float> narrow;
    std::vector<Int> rows;

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
inline void scale(const Numbers<float>& x, const Int* rows, const double* weight, const double* root, const double* center,
                  double* first, double* out) {
    chosen().scaled_rows32(x, rows, weight, root, center, first, out);
}
inline void scale(const Numbers<double>& x, const Int* rows, const double* weight, const double* root, const double* center,
                  double* first, double* out) {
    chosen().scaled_rows64(x, rows, weight, root, center, first, out);
}

// offset - |factor (x - mean)|^2 / 2, (n, k), with offsets (k,), means (k, d) and lower triangular factors (k, d, d).
template <class X, class T>
void class_log_densities(const Numbers<X>& x, const double* mean, const T* factor, const double* offset, Int k,
                         TriangularProduct<T> multiply, double* out) {
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
            for (Int r = from; r < from + tile.n; ++r) out[r * k + c] = offset[c] - 0.5 * out[r * k + c];
        }
    }
}

// Sums of one class.
struct ClassSums {
    double *first, *second;
};

// Adds the products of the rows from `begin` to `end` whose weight is positive, or whose weight is not, to the sums; of the
// second moments, to their upper triangle (in column order). Rows of weight 0 are left out; NaN goes with the negative weights.
template <class X>
void add_products(const Numbers<X>& x, Int begin, Int end, const double* center, const double* weights, Int k, bool positive,
                  SquareProduct multiply, ClassSums sums) {
    const double share = 1.0, sign = positive ? 1.0 : -1.0;
    const int d = static_cast<int>(x.d);
    const Int most = tile_rows(x.d);
    TileMemory& memory = tile_memory();
    for (Int r = begin; r < end;) {
        int n = 0;
        for (; r < end && n < most; ++r) {
            const double weight = weights[r * k];
            if (weight == 0.0 || (weight > 0.0) != positive) continue;
            memory.rows[n] = r, memory.weight[n] = weight, memory.root[n] = std::sqrt(std::fabs(weight)), ++n;
        }
        if (!n) return;
        scale({x.data, x.stride, n, x.d}, memory.rows.data(), memory.weight.data(), memory.root.data(), center, sums.first,
              memory.cells.data());
        multiply("U", "N", &d, &n, &sign, memory.cells.data(), &d, &share, sums.second, &d);
    }
}

// Weighted sums of x - center, (k, d), and of its outer products, (k, d, d), for weights (n, k) of any sign. So many rows at a time that they stay in the cache, or more if most weights are 0.
template <class X>
void first_and_outer(const Numbers<X>& x, const double* center, const double* weights, Int k, SquareProduct multiply,
                     double* first, double* second) {
    const Int most = tile_rows(x.d), square = x.d * x.d;
    TileMemory& memory = tile_memory();
    double* cells;
    memory.make(cells, most * x.d);
    memory.rows.resize(std::max<std::size_t>(memory.rows.size(), most));
    for (Lines* numbers : {&memory.weight, &memory.root}) numbers->resize(std::max<std::size_t>(numbers->size(), most));
    std::fill(first, first + k * x.d, 0.0);
    std::fill(second, second + k * square, 0.0);
    Int nonzero = 0;
    for (Int i = 0; i < x.n * k; ++i) nonzero += !(weights[i] == 0.0);
    const Int span = static_cast<Int>(static_cast<double>(most) * (x.n * k) / std::max<Int>(nonzero, 1)) + 1;
    for (Int begin = 0; begin < x.n; begin += span)
        for (Int c = 0; c < k; ++c)
            for (const bool positive : {true, false})
                add_products(x, begin, std::min(begin + span, x.n), center, weights + c, k, positive, multiply,
                             {first + c * x.d, second + c * square});
    for (Int c = 0; c < k; ++c)
        for (Int i = 0; i < x.d; ++i)
            for (Int j = 0; j < i; ++j) second[c * square + j * x.d + i] = second[c * square + i * x.d + j];
}

// Replaces a covariance (d, d) by its inverse Cholesky factor, and writes the variance of each column given all others. If it is not
// positive definite: the column at which that shows, from 1 on, and the variances given the columns before, 0 from there on.
inline Int invert_factor(double* matrix, Int d, Factorization factorize, TriangularInverse invert, double* left,
                         double* pivots, double* sums) {
    const int n = static_cast<int>(d);
    int failed = 0, unused = 0;
    const bool finite = std::all_of(matrix, matrix + d * d, [](double cell) { return std::isfinite(cell); });
    factorize("U", &n, matrix, &n, &failed);
    const Int valid = failed > 0 ? failed - 1 : d;
    for (Int i = 0; i < valid; ++i) pivots[i] = matrix[i * d + i], left[i] = finite ? pivots[i] * pivots[i] : 0.0;
    std::fill(left + valid, left + d, 0.0);
    if (failed) {
        std::fill(matrix, matrix + d * d, 0.0);
        return failed;
    }
    invert("U", "N", &n, matrix, &n, &unused);
    // In units of its own pivot, the squares of a column overflow only where nothing is left.
    std::fill(sums, sums + d, 0.0);
    for (Int i = 0; i < d; ++i) {
        double* row = matrix + i * d;
        for (Int j = 0; j <= i; ++j) sums[j] += row[j] * pivots[j] * (row[j] * pivots[j]);
        std::fill(row + i + 1, row + d, 0.0);
    }
    if (finite)
        for (Int i = 0; i < d; ++i) left[i] /= sums[i];
    return 0;
}

}  // namespace calibayes
