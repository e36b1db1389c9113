// Python interface of the kernels that summarize columns of numbers.
#pragma once

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include "checks.hpp"
#include "column_totals.hpp"

namespace calibayes {
namespace summaries {

namespace nb = nanobind;
using namespace checks;

using Bits = In<std::uint64_t, 1>;
using Children = In<std::int32_t, 1>;

// A tree of cells, after a check that every entry is a cell or a later node.
inline CellTree tree_of(const Bits& base, const In<Int, 1>& shift, const In<Int, 1>& first, const Children& child) {
    const Int nodes = static_cast<Int>(base.shape(0)), entries = static_cast<Int>(child.shape(0));
    demand(nodes > 0, "expected at least one node");
    demand_aligned(base, "bases of nodes (nodes,)");
    demand_shape(shift, "shifts of nodes (nodes,)", {nodes});
    demand_shape(first, "first entries (nodes + 1,)", {nodes + 1});
    demand_aligned(child, "children of entries");
    demand(first.data()[0] == 0 && first.data()[nodes] == entries, "first entries must be those of all children");
    for (Int node = 0; node < nodes; ++node) {
        demand(shift.data()[node] >= 0 && shift.data()[node] < 64, "a shift must be 0 to 63 bits");
        demand(first.data()[node] < first.data()[node + 1] && first.data()[node + 1] <= entries,
               "a node must have at least one entry");
        for (Int entry = first.data()[node]; entry < first.data()[node + 1]; ++entry) {
            const Int next = child.data()[entry];
            demand(next < nodes && (next < 0 || next > node), "the child of an entry must be a later node, or none");
        }
    }
    return {base.data(), shift.data(), first.data(), child.data()};
}

// The number of distinct numbers of x (n,), whose values and positions are written; -1 if they exceed the room for values.
inline Int distinct_positions(In<double, 1> x, Out<double, 1> values, Out<Int, 1> positions) {
    const Int n = static_cast<Int>(x.shape(0)), most = static_cast<Int>(values.shape(0));
    demand_aligned(x, "numbers (n,)");
    demand_aligned(values, "distinct numbers");
    demand(most < MOST_SIZE, "expected room for fewer than 2^31 distinct numbers");
    demand_shape(positions, "positions (n,)", {n});
    nb::gil_scoped_release free;
    if (has_more_distinct(x.data(), n, most)) return -1;
    DistinctNumbers distinct(most);
    if (!calibayes::distinct_positions(x.data(), n, distinct, positions.data())) return -1;
    std::copy(distinct.values.begin(), distinct.values.end(), values.data());
    return static_cast<Int>(distinct.values.size());
}

// The number of sampled distinct numbers, which are written, and of zeros with which their hashes begin.
inline std::pair<Int, Int> distinct_sample(In<double, 1> x, Int zeros, Out<double, 1> values) {
    const Int most = static_cast<Int>(values.shape(0));
    demand_aligned(x, "numbers (n,)");
    demand_aligned(values, "distinct numbers");
    demand(most > 0 && most < MOST_SIZE, "expected room for at least one and fewer than 2^31 distinct numbers");
    demand(zeros >= 0 && zeros < 64, "hashes must begin with 0 to 63 zeros");
    nb::gil_scoped_release free;
    const std::vector<double> found = calibayes::distinct_sample(x.data(), static_cast<Int>(x.shape(0)), most, zeros);
    std::copy(found.begin(), found.end(), values.data());
    return {static_cast<Int>(found.size()), zeros};
}

// The number of cells with rows, which are written to `entries` in any order; `out` must be zero.
inline Int tally_cells(In<double, 1> x, In<double, 1> weight, Bits base, In<Int, 1> shift, In<Int, 1> first,
                       Children child, Out<double, 2> out, Out<Int, 1> entries) {
    static_assert(sizeof(CellTally) == 4 * sizeof(double));
    const CellTree tree = tree_of(base, shift, first, child);
    const Int n = static_cast<Int>(x.shape(0));
    demand_aligned(x, "numbers (n,)");
    demand_shape(weight, "weights of rows (n,)", {n});
    demand_shape(out, "tallies of cells (entries, 4)", {static_cast<Int>(child.shape(0)), 4});
    demand_shape(entries, "cells with rows (entries,)", {static_cast<Int>(child.shape(0))});
    nb::gil_scoped_release free;
    return calibayes::tally_cells(x.data(), weight.data(), n, tree, reinterpret_cast<CellTally*>(out.data()),
                                  entries.data());
}

inline void weigh_cells(In<double, 1> x, Bits base, In<Int, 1> shift, In<Int, 1> first, Children child,
                        In<Int, 1> labels, In<double, 1> weight, Out<double, 2> weights) {
    const CellTree tree = tree_of(base, shift, first, child);
    const Int n = static_cast<Int>(x.shape(0)), columns = classes_of(weights, 1);
    demand_aligned(x, "numbers (n,)");
    demand_shape(labels, "labels (n,)", {n});
    demand_shape(weight, "weights of rows (n,)", {n});
    demand_shape(weights, "weights of cells (entries, columns)", {static_cast<Int>(child.shape(0)), columns});
    for (Int r = 0; r < n; ++r) demand(labels.data()[r] < columns, "a label is beyond the columns of weights");
    nb::gil_scoped_release free;
    calibayes::weigh_cells(x.data(), n, tree, labels.data(), weight.data(), columns, weights.data());
}

using Labels = In<std::int32_t, 1>;
using AnyCodes = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline LabeledRows labeled_rows(const Labels& labels, const In<double, 1>& weight, Int n, Int columns) {
    demand_shape(labels, "labels (n,)", {n});
    demand_shape(weight, "weights of rows (n,)", {n});
    return {labels.data(), weight.data(), columns};
}

// Adds rows and weights to the totals of codes from `first` on.
inline void add_code_totals(AnyCodes codes, Int first, Labels labels, In<double, 1> weight, Out<double, 2> totals) {
    const Int n = static_cast<Int>(codes.shape(0)), size = static_cast<Int>(totals.shape(0));
    const Int columns = classes_of(totals, 1) - 1;
    demand(columns > 0, "totals must have rows and at least one weight");
    demand_aligned(codes, "codes (n,)");
    demand_aligned(totals, "totals (size, 1 + columns)");
    const LabeledRows rows = labeled_rows(labels, weight, n, columns);
    const Type type = type_of(codes.dtype());
    demand(type < FLOAT32, "codes must be integers");
    const auto by = [&](auto* data) { return calibayes::add_code_totals(data, n, first, size, rows, totals.data()); };
    bool valid;
    {
        nb::gil_scoped_release free;
        switch (type) {
            case INT8: valid = by(static_cast<const std::int8_t*>(codes.data())); break;
            case UINT8: valid = by(static_cast<const std::uint8_t*>(codes.data())); break;
            case INT16: valid = by(static_cast<const std::int16_t*>(codes.data())); break;
            case UINT16: valid = by(static_cast<const std::uint16_t*>(codes.data())); break;
            case INT32: valid = by(static_cast<const std::int32_t*>(codes.data())); break;
            case UINT32: valid = by(static_cast<const std::uint32_t*>(codes.data())); break;
            case INT64: valid = by(static_cast<const std::int64_t*>(codes.data())); break;
            default: valid = by(static_cast<const std::uint64_t*>(codes.data()));
        }
    }
    demand(valid, "a code or a label is beyond the totals");
}

// The number of cells with rows, which are written to `entries` with their totals, in any order, and their order.
inline Int cell_totals(In<double, 1> x, Bits base, In<Int, 1> shift, In<Int, 1> first, Children child, Labels labels,
                       In<double, 1> weight, Out<Int, 1> entries, Out<Int, 1> order, Out<double, 2> totals) {
    const CellTree tree = tree_of(base, shift, first, child);
    const Int columns = classes_of(totals, 1) - 3, size = static_cast<Int>(child.shape(0));
    demand(columns > 0, "totals must have rows, smallest and largest number, and at least one weight");
    demand_aligned(x, "numbers (n,)");
    demand_shape(entries, "cells with rows (entries,)", {size});
    demand_shape(order, "order of cells (entries,)", {size});
    demand_shape(totals, "totals of cells (entries, 3 + columns)", {size, columns + 3});
    const Int n = static_cast<Int>(x.shape(0));
    const LabeledRows rows = labeled_rows(labels, weight, n, columns);
    Int count;
    {
        nb::gil_scoped_release free;
        CellSlots slots(tree, static_cast<Int>(base.shape(0)));
        count = calibayes::cell_totals(x.data(), n, slots, rows, entries.data(), order.data(), totals.data());
    }
    demand(count >= 0, "a label is beyond the columns of weights");
    return count;
}

// The number of cells that either part has, which are written with their totals.
inline Int united_cells(In<Int, 1> left, In<double, 2> left_totals, In<Int, 1> right, In<double, 2> right_totals,
                        Out<Int, 1> entries, Out<double, 2> totals) {
    const Int width = classes_of(totals, 1), room = static_cast<Int>(entries.shape(0));
    const TotaledCells ours{left.data(), left_totals.data(), static_cast<Int>(left.shape(0))};
    const TotaledCells theirs{right.data(), right_totals.data(), static_cast<Int>(right.shape(0))};
    demand(width > 3, "totals must have rows, smallest and largest number, and at least one weight");
    demand_aligned(left, "cells");
    demand_aligned(right, "cells");
    demand_shape(left_totals, "totals of cells (cells, 3 + columns)", {ours.count, width});
    demand_shape(right_totals, "totals of cells (cells, 3 + columns)", {theirs.count, width});
    demand(room >= ours.count + theirs.count, "expected room for the cells of both parts");
    demand_aligned(entries, "united cells");
    demand_shape(totals, "totals of united cells (cells, 3 + columns)", {room, width});
    nb::gil_scoped_release free;
    return calibayes::united_cells(ours, theirs, width, entries.data(), totals.data());
}

// Smallest and largest of the known numbers of x (n,), and sums of differences from a pivot and of their squares.
inline std::tuple<double, double, double, double> known_moments(In<double, 1> x, double pivot) {
    demand_aligned(x, "numbers (n,)");
    nb::gil_scoped_release free;
    const KnownMoments all = chosen().known_moments(x.data(), static_cast<Int>(x.shape(0)), pivot);
    return {all.low, all.high, all.sum, all.squares};
}

inline void define(nb::module_& m) {
    m.def("distinct_positions", apart<distinct_positions>, nb::arg("x").noconvert(), nb::arg("values").noconvert(),
          nb::arg("positions").noconvert());
    m.def("distinct_sample", apart<distinct_sample>, nb::arg("x").noconvert(), nb::arg("zeros"), nb::arg("values").noconvert());
    m.def("tally_cells", apart<tally_cells>, nb::arg("x").noconvert(), nb::arg("weight").noconvert(),
          nb::arg("base").noconvert(), nb::arg("shift").noconvert(), nb::arg("first").noconvert(),
          nb::arg("child").noconvert(), nb::arg("out").noconvert(), nb::arg("entries").noconvert());
    m.def("weigh_cells", apart<weigh_cells>, nb::arg("x").noconvert(), nb::arg("base").noconvert(),
          nb::arg("shift").noconvert(), nb::arg("first").noconvert(), nb::arg("child").noconvert(),
          nb::arg("labels").noconvert(), nb::arg("weight").noconvert(), nb::arg("weights").noconvert());
    m.def("add_code_totals", apart<add_code_totals>, nb::arg("codes").noconvert(), nb::arg("first"),
          nb::arg("labels").noconvert(), nb::arg("weight").noconvert(), nb::arg("totals").noconvert());
    m.def("cell_totals", apart<cell_totals>, nb::arg("x").noconvert(), nb::arg("base").noconvert(),
          nb::arg("shift").noconvert(), nb::arg("first").noconvert(), nb::arg("child").noconvert(),
          nb::arg("labels").noconvert(), nb::arg("weight").noconvert(), nb::arg("entries").noconvert(),
          nb::arg("order").noconvert(), nb::arg("totals").noconvert());
    m.def("united_cells", apart<united_cells>, nb::arg("left").noconvert(), nb::arg("left_totals").noconvert(),
          nb::arg("right").noconvert(), nb::arg("right_totals").noconvert(), nb::arg("entries").noconvert(),
          nb::arg("totals").noconvert());
    m.def("known_moments", apart<known_moments>, nb::arg("x").noconvert(), nb::arg("pivot"));
}

}  // namespace summaries
}  // namespace calibayes
