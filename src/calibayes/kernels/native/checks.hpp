// Checks of the arrays that come from Python. A failed check raises ValueError and says what is expected.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels.hpp"

namespace calibayes {
namespace checks {

namespace nb = nanobind;

template <class T, int N>
using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using Out = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

constexpr Int MOST_SIZE = Int(1) << 31;   // sizes below it can be multiplied with each other and with a few constants
constexpr Int MOST_CELLS = Int(1) << 26;  // of all columns, counting one more per column

inline void demand(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

template <class Sizes>
std::string shape_text(const Sizes& sizes) {
    std::string text;
    for (const Int size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return "(" + text + (sizes.size() == 1 ? ",)" : ")");
}

// Arrays without items may lie anywhere: they are never read.
template <class Array>
void demand_aligned(const Array& array, const char* name) {
    if (array.size() && reinterpret_cast<std::uintptr_t>(array.data()) % array.itemsize())
        throw std::invalid_argument(std::string(name) + " must be aligned in memory: pass a copy");
}

template <class Array>
void demand_shape(const Array& array, const char* name, std::initializer_list<Int> shape) {
    std::size_t axis = 0;
    bool same = true;
    for (const Int size : shape) same = static_cast<Int>(array.shape(axis++)) == size && same;
    if (!same) {
        std::vector<Int> given;
        for (axis = 0; axis < array.ndim(); ++axis) given.push_back(static_cast<Int>(array.shape(axis)));
        throw std::invalid_argument(std::string(name) + " must have shape " + shape_text(shape) + ", got " +
                                    shape_text(given));
    }
    demand_aligned(array, name);
}

// Number of classes, k, which is the size of an array along an axis.
template <class Array>
Int classes_of(const Array& array, std::size_t axis) {
    const Int k = static_cast<Int>(array.shape(axis));
    demand(k > 0 && k < MOST_SIZE, "expected at least one class, and fewer than 2^31");
    return k;
}

inline Type type_of(nb::dlpack::dtype given) {
    const auto code = static_cast<nb::dlpack::dtype_code>(given.code);
    const bool plain = given.lanes == 1, whole = code == nb::dlpack::dtype_code::Int,
               positive = code == nb::dlpack::dtype_code::UInt, number = code == nb::dlpack::dtype_code::Float;
    if (plain && (whole || positive)) {
        if (given.bits == 8) return positive ? UINT8 : INT8;
        if (given.bits == 16) return positive ? UINT16 : INT16;
        if (given.bits == 32) return positive ? UINT32 : INT32;
        if (given.bits == 64) return positive ? UINT64 : INT64;
    }
    if (plain && number && given.bits == 32) return FLOAT32;
    if (plain && number && given.bits == 64) return FLOAT64;
    throw std::invalid_argument("codes must be integers, or flags as float32 or float64");
}

// Rows of any number of columns; their cells are contiguous.
inline Codes codes_of(const Table& codes) {
    demand(codes.shape(0) == 0 || codes.shape(1) < 2 || codes.stride(1) == 1,
           "the cells of a row must be contiguous in memory");
    demand(static_cast<Int>(codes.shape(1)) < MOST_SIZE, "expected fewer than 2^31 columns");
    demand_aligned(codes, "rows (n, d)");
    return {codes.data(), codes.stride(0), static_cast<Int>(codes.shape(0)), static_cast<Int>(codes.shape(1)),
            type_of(codes.dtype())};
}

inline Codes some_columns(const Table& table) {
    const Codes rows = codes_of(table);
    demand(rows.d > 0, "expected at least one column");
    return rows;
}

// Rows of at least one column of float32 or float64.
inline Codes numbers_of(const Table& x) {
    const Codes rows = some_columns(x);
    demand(rows.type == FLOAT32 || rows.type == FLOAT64, "numbers must be float32 or float64");
    return rows;
}

template <class X>
Numbers<X> numbers_as(const Codes& rows) {
    return {static_cast<const X*>(rows.data), rows.stride, rows.n, rows.d};
}

// Number of levels of each column from the first cells of all, which must ascend from 0.
inline std::vector<std::uint32_t> levels_of(const In<Int, 1>& first, Int d) {
    demand_shape(first, "first cells (d + 1,)", {d + 1});
    const Int* cell = first.data();
    demand(cell[0] == 0, "first cells must begin with 0");
    std::vector<std::uint32_t> levels(static_cast<std::size_t>(d));
    for (Int j = 0; j < d; ++j) {
        demand(cell[j + 1] >= cell[j], "first cells must ascend");
        demand(cell[j + 1] < MOST_CELLS, "expected fewer than 2^26 cells");
        levels[j] = static_cast<std::uint32_t>(cell[j + 1] - cell[j]);
    }
    // A group of columns has at most 3.2 times as many cells as its columns have digits, see `Grouping`. Positions in a
    // table packed for WIDEST classes must fit into 32 bits.
    static_assert(MOST_CELLS * 4 * WIDEST <= Int(1) << 32);
    demand(cell[d] + d < MOST_CELLS, "expected fewer than 2^26 cells and columns");
    return levels;
}

// Checks that every column has at least two points and two cells more than points.
inline void demand_grids(const In<Int, 1>& points, const In<Int, 1>& first, Int d) {
    demand_shape(points, "numbers of points (d,)", {d});
    demand_shape(first, "first cells (d + 1,)", {d + 1});
    const Int* cell = first.data();
    demand(cell[0] == 0, "first cells must begin with 0");
    for (Int j = 0; j < d; ++j) {
        demand(cell[j + 1] >= cell[j] && cell[j + 1] < MOST_SIZE, "first cells must ascend, below 2^31");
        demand(points.data()[j] >= 2 && cell[j + 1] - cell[j] - 2 == points.data()[j],
               "a grid must have two or more points, and two cells after them");
    }
}

// The memory of an argument: from its first item to the end of its last one, whatever the strides; empty if it has none.
struct Extent {
    std::intptr_t begin = 0, end = 0;
    bool is_written = false;
};

template <class Argument>
Extent extent_of(const Argument&) {
    return {};
}
template <class... Config>
Extent extent_of(const nb::ndarray<Config...>& array) {
    if (!array.size()) return {};
    std::intptr_t begin = reinterpret_cast<std::intptr_t>(array.data()), end = begin + static_cast<Int>(array.itemsize());
    for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
        const Int last = static_cast<Int>(array.shape(axis) - 1) * array.stride(axis) * static_cast<Int>(array.itemsize());
        (last < 0 ? begin : end) += last;
    }
    return {begin, end, !nb::ndarray<Config...>::ReadOnly};
}
template <class Array>
Extent extent_of(const std::optional<Array>& array) {
    return array ? extent_of(*array) : Extent{};
}

inline void demand_apart(std::initializer_list<Extent> arguments) {
    for (const Extent& written : arguments)
        for (const Extent& other : arguments)
            demand(!written.is_written || &written == &other || written.end <= other.begin || other.end <= written.begin,
                   "an array that is written must not share memory with another argument: pass a copy");
}

// A function whose arrays are checked first: results that are written over positions would make them invalid after their
// own checks.
template <auto Function>
struct Apart;
template <class Result, class... Arguments, Result (*Function)(Arguments...)>
struct Apart<Function> {
    static Result call(Arguments... arguments) {
        demand_apart({extent_of(arguments)...});
        return Function(std::forward<Arguments>(arguments)...);
    }
};
template <auto Function>
constexpr auto apart = &Apart<Function>::call;

// CSR rows, after a check that the entries of every row exist.
template <class C>
Sparse<C> sparse_of(const In<double, 1>& data, const In<C, 1>& column, const In<Int, 1>& start) {
    const Int n = static_cast<Int>(start.shape(0)) - 1, stored = static_cast<Int>(data.shape(0));
    demand(n >= 0, "expected n + 1 positions at which rows begin and end");
    demand_shape(column, "columns of cells", {stored});
    demand_aligned(data, "values of cells");
    demand_aligned(start, "positions at which rows begin and end");
    demand(start.data()[0] >= 0 && start.data()[n] <= stored, "rows must begin and end among the cells");
    for (Int r = 0; r < n; ++r) demand(start.data()[r] <= start.data()[r + 1], "rows must begin and end in order");
    return {data.data(), column.data(), start.data(), n};
}

}  // namespace checks
}  // namespace calibayes
