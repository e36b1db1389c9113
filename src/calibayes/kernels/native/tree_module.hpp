// Python interface of the kernels of trees, and of the bins that they split.
#pragma once

#include "cut_points.hpp"
#include "checks.hpp"
#include "leaf_codes.hpp"
#include "row_keys.hpp"
#include "tree_growth.hpp"

namespace calibayes {
namespace trees {

namespace nb = nanobind;
using namespace checks;

using Cells = nb::ndarray<nb::ro, nb::ndim<1>, nb::device::cpu>;

using Words = In<std::uint64_t, 2>;
using Rows = In<std::int32_t, 1>;
using Signs = In<std::int8_t, 1>;
using Flags = In<bool, 1>;

// The bytes of booleans, which may have any value.
inline const std::uint8_t* bytes_of(const Flags& flags) { return reinterpret_cast<const std::uint8_t*>(flags.data()); }

constexpr Int MOST_THREADS = 1024;

// Checks that numbers of items are from 0 to `most` - 1.
template <class Array>
void demand_below(const Array& items, Int most, const char* message) {
    const Int n = static_cast<Int>(items.shape(0));
    for (Int r = 0; r < n; ++r) demand(items.data()[r] >= 0 && items.data()[r] < most, message);
}

inline void demand_rows(const Rows& rows, Int n) {
    demand_aligned(rows, "rows");
    demand_below(rows, n, "a row is outside of the table");
}

// Columns, after a check that their words exist and that they have at most 256 codes.
inline ByteColumns columns_of(const Words& words, const In<Int, 1>& first) {
    const Int d = static_cast<Int>(first.shape(0)) - 1;
    demand(d >= 1 && (d + WORD - 1) / WORD == static_cast<Int>(words.shape(0)), "expected eight columns in a word");
    for (const auto count : levels_of(first, d)) demand(count >= 1 && count <= BINS, "a column must have 1 to 256 codes");
    demand_aligned(words, "words");
    return {words.data(), static_cast<Int>(words.shape(1)), d, first.data()};
}

inline SplitOptions options_of(const Rows& columns, const Signs& direction, double prior, double least, Int d, Int k) {
    demand_aligned(columns, "columns");
    demand_below(columns, d, "there is no such column");
    demand_shape(direction, "directions of columns (d,)", {d});
    const bool any = std::any_of(direction.data(), direction.data() + d, [](std::int8_t sign) { return sign != 0; });
    demand(prior >= 0.0 && least > 0.0, "the prior must not be negative, and the least variance positive");
    demand(!any || k == 1, "columns can have a direction if there are two classes");
    return {columns.data(), static_cast<Int>(columns.shape(0)), direction.data(), prior, least};
}

inline void node_sums(Words words, Rows rows, In<Int, 2> packed, In<Int, 1> first, Out<Int, 3> out) {
    const ByteColumns columns = columns_of(words, first);
    const Int k = classes_of(packed, 1);
    demand_rows(rows, columns.n);
    demand_shape(packed, "packed numbers (n, k)", {columns.n, k});
    demand_shape(out, "the result (2, cells, k)", {2, columns.first[columns.d], k});
    bool beyond = false;
    {
        nb::gil_scoped_release free;
        Team alone(1);
        beyond = NodeSums(columns, packed.data(), k, alone).add(rows.data(), static_cast<Int>(rows.shape(0)), out.data());
    }
    demand(!beyond, "a code is beyond the codes of its column");
}

inline nb::tuple best_split(In<Int, 3> sums, In<Int, 1> first, Rows columns, Signs direction, double prior, double least,
                            double low, double high) {
    const Int d = static_cast<Int>(direction.shape(0)), k = classes_of(sums, 2);
    demand(d >= 1, "expected at least one column");
    levels_of(first, d);
    demand_shape(sums, "sums (2, cells, k)", {2, first.data()[d], k});
    const SplitOptions options = options_of(columns, direction, prior, least, d, k);
    Split found;
    {
        nb::gil_scoped_release free;
        found = SplitSearch(first.data(), d, k, options).best(sums.data(), {low, high});
    }
    return nb::make_tuple(found.gain, found.column, found.most, found.missing_left);
}

inline Int divide(Words words, Rows rows, Int column, Int most, bool missing_left, Out<std::int32_t, 1> left,
                  Out<std::int32_t, 1> right) {
    const Int n = static_cast<Int>(words.shape(1)), m = static_cast<Int>(rows.shape(0));
    demand(column >= 0 && column / WORD < static_cast<Int>(words.shape(0)), "there is no such column");
    demand(most >= 1 && most < BINS, "expected a code from 1 to 255");
    demand_aligned(words, "words");
    demand_rows(rows, n);
    demand_shape(left, "rows on the left (m,)", {m});
    demand_shape(right, "rows on the right (m,)", {m});
    nb::gil_scoped_release free;
    return calibayes::divide(words.data() + column / WORD * n, rows.data(), m, static_cast<int>(column % WORD),
                             static_cast<std::uint8_t>(most), missing_left, left.data(), right.data());
}

inline Int grow_tree(Words words, Flags held_out, In<Int, 2> packed, In<Int, 1> first, Rows order, Signs direction,
                     double prior, double least, Int most_leaves, Team& team, Out<std::int32_t, 1> column,
                     Out<std::uint8_t, 1> most, Out<bool, 1> missing_left, Out<std::int32_t, 2> children,
                     Out<double, 2> bounds) {
    const ByteColumns columns = columns_of(words, first);
    demand(most_leaves >= 1 && most_leaves < MOST_SIZE, "expected at least one leaf, and fewer than 2^31");
    const Int k = classes_of(packed, 1), size = 2 * most_leaves - 1;
    demand(columns.n < MOST_SIZE, "expected fewer than 2^31 rows");
    demand_shape(held_out, "rows that are held out (n,)", {columns.n});
    demand_shape(packed, "packed numbers (n, k)", {columns.n, k});
    demand_shape(column, "columns of nodes", {size});
    demand_shape(most, "codes of nodes", {size});
    demand_shape(missing_left, "sides of missing values", {size});
    demand_shape(children, "children of nodes", {size, 2});
    demand_shape(bounds, "bounds of leaves", {most_leaves, 2});
    const SplitOptions options = options_of(order, direction, prior, least, columns.d, k);
    const TreeArrays arrays{column.data(), most.data(), missing_left.data(), children.data(), bounds.data()};
    Int nodes = 0;
    {
        nb::gil_scoped_release free;
        TreeGrowth growth(columns, packed.data(), k, options, arrays, team);
        nodes = growth.grow(bytes_of(held_out), most_leaves);
    }
    demand(nodes >= 0, "a code is beyond the codes of its column");
    return nodes;
}

// Checks that the nodes of every tree lead to later nodes of the tree, and to leaves that fit into a code.
inline void demand_trees(const Trees& trees, Int nodes, Int d) {
    demand(trees.first[0] == 0 && trees.first[trees.count] == nodes, "trees must have all nodes");
    for (Int t = 0; t < trees.count; ++t) {
        demand(trees.first[t + 1] > trees.first[t] && trees.first[t + 1] <= nodes, "a tree must have a node");
        const Int size = trees.first[t + 1] - trees.first[t];
        for (Int i = 0; i < size; ++i) {
            const Int node = trees.first[t] + i, j = trees.column[node];
            demand(j >= -1 && j < d, "there is no such column");
            demand(j < 0 || trees.most[node] >= 1, "expected a code from 1 to 255");
            for (int side = 0; side < 2; ++side) {
                const Int child = trees.children[2 * node + side];
                demand(j < 0 ? child >= 0 && child < 128 : child > i && child < size, "a node leads to no later node");
            }
        }
    }
}

inline void leaf_codes(Words words, In<Int, 1> first_cell, In<std::int32_t, 1> column, In<std::uint8_t, 1> most,
                       In<bool, 1> missing_left, In<std::int32_t, 2> children, In<Int, 1> first, Team& team,
                       Out<std::int8_t, 2> out) {
    const ByteColumns columns = columns_of(words, first_cell);
    const Int nodes = static_cast<Int>(column.shape(0)), count = static_cast<Int>(first.shape(0)) - 1;
    demand(count >= 0, "expected the first node of each tree, and the number of nodes");
    demand_shape(first, "first nodes of trees", {count + 1});
    demand_shape(column, "columns of nodes", {nodes});
    demand_shape(most, "codes of nodes", {nodes});
    demand_shape(missing_left, "sides of missing values", {nodes});
    demand_shape(children, "children of nodes", {nodes, 2});
    demand_shape(out, "leaves of rows (n, trees)", {columns.n, count});
    const Trees trees{column.data(), most.data(), bytes_of(missing_left), children.data(), first.data(), count};
    demand_trees(trees, nodes, columns.d);
    nb::gil_scoped_release free;
    const LeafCodes leaves(columns, trees, columns.n >= ROWS / 2);
    team.each_part(columns.n, STRETCH, [&](Int begin, Int end, Int) { leaves.write(begin, end, out.data()); });
}

using Scores = In<double, 2>;
using Labels = In<std::int32_t, 1>;
using Leaves = In<std::int8_t, 1>;
using Weight = In<double, 1>;

// Rows, after a check of their labels.
inline LabeledScores labeled_of(const Scores& scores, const Labels& labels, const Weight& weight, Int fewest = 2) {
    const Int n = static_cast<Int>(scores.shape(0)), k = classes_of(scores, 1);
    demand_aligned(scores, "log scores (n, k)");
    demand_shape(labels, "labels (n,)", {n});
    const Int weights = static_cast<Int>(weight.shape(0));
    demand(weights == n || weights == 1, "expected a weight for each row, or one for all");
    demand_aligned(weight, "weight (n,)");
    demand(k >= fewest, "expected two classes or more");
    demand_below(labels, k, "a label is no class code");
    return {scores.data(), labels.data(), weight.data(), n, k, weights == n};
}

// Rows from `begin` on, before `end`.
inline LabeledScores part_of(const LabeledScores& rows, Int begin, Int end) {
    return {rows.scores + begin * rows.k, rows.labels + begin, rows.weight + begin * rows.step, end - begin, rows.k, rows.step};
}

// Memory of one thread each.
class Scratch {
public:
    Scratch(const Team& team, Int size) : size_(size), memory_(static_cast<std::size_t>(team.size() * size)) {}
    double* of(Int member) { return memory_.data() + member * size_; }

private:
    Int size_;
    std::vector<double> memory_;
};

constexpr Int FEWEST_SCORES = 1024;  // rows of a part

inline void add_factors(Scores factors, Leaves codes, Team& team, Out<double, 2> scores) {
    const Int n = static_cast<Int>(codes.shape(0)), k = classes_of(factors, 1);
    demand_aligned(factors, "log factors (leaves, k)");
    demand_aligned(codes, "leaves of rows (n,)");
    demand_shape(scores, "log scores (n, k)", {n, k});
    demand_below(codes, static_cast<Int>(factors.shape(0)), "a row has no leaf");
    nb::gil_scoped_release free;
    team.each_part(n, FEWEST_SCORES, [&](Int begin, Int end, Int) {
        chosen_exact().add_factors(factors.data(), codes.data() + begin, end - begin, k, scores.data() + begin * k);
    });
}

inline void packed_residuals(Scores scores, Labels labels, Weight weight, double scale, In<std::uint32_t, 1> fractions, Team& team,
                             Out<Int, 2> packed) {
    const LabeledScores rows = labeled_of(scores, labels, weight);
    const Int packed_classes = rows.k == 2 ? 1 : rows.k;
    demand_shape(fractions, "fractions (n,)", {rows.n});
    demand_shape(packed, "the result (n, k), or (n, 1) for two classes", {rows.n, packed_classes});
    nb::gil_scoped_release free;
    Scratch scratch(team, 2 * ROWS * rows.k);
    team.each_part(rows.n, FEWEST_SCORES, [&](Int begin, Int end, Int member) {
        chosen_exact().packed_residuals(part_of(rows, begin, end), scale, fractions.data() + begin, packed_classes,
                                        packed.data() + begin * packed_classes, scratch.of(member));
    });
}

inline void leaf_sums(Scores scores, Leaves codes, Labels labels, Weight weight, Flags held_out, double scale, Team& team,
                      Out<Int, 3> out) {
    const LabeledScores rows = labeled_of(scores, labels, weight);
    const Int leaves = static_cast<Int>(out.shape(1)), size = 3 * leaves * rows.k;
    demand_shape(codes, "leaves of rows (n,)", {rows.n});
    demand_shape(held_out, "rows that are held out (n,)", {rows.n});
    demand_shape(out, "sums (3, leaves, k)", {3, leaves, rows.k});
    demand_below(codes, leaves, "a row has no leaf");
    nb::gil_scoped_release free;
    Scratch scratch(team, 2 * ROWS * rows.k);
    std::vector<Int> sums(static_cast<std::size_t>(team.size() * size));  // of each thread
    team.each_part(rows.n, FEWEST_SCORES, [&](Int begin, Int end, Int member) {
        chosen_exact().leaf_sums(part_of(rows, begin, end), codes.data() + begin, bytes_of(held_out) + begin, leaves, scale,
                                 sums.data() + member * size, scratch.of(member));
    });
    for (Int member = 0; member < team.size(); ++member)
        for (Int cell = 0; cell < size; ++cell) out.data()[cell] = added(out.data()[cell], sums[member * size + cell]);
}

inline Int whole_loss(Scores scores, Labels labels, Weight weight, Flags held_out, double scale, double most, Team& team) {
    const LabeledScores rows = labeled_of(scores, labels, weight, 1);
    demand_shape(held_out, "rows that are held out (n,)", {rows.n});
    nb::gil_scoped_release free;
    Scratch scratch(team, 2 * ROWS * rows.k);
    std::vector<Int> losses(static_cast<std::size_t>(team.size()));
    team.each_part(rows.n, FEWEST_SCORES, [&](Int begin, Int end, Int member) {
        const LabeledScores part = part_of(rows, begin, end);
        const Int loss = chosen_exact().whole_loss(part, bytes_of(held_out) + begin, scale, most, scratch.of(member));
        losses[member] = added(losses[member], loss);
    });
    Int total = 0;
    for (const Int loss : losses) total = added(total, loss);
    return total;
}

constexpr Int FEWEST_HASHES = 4096;  // rows of a part, whose hashes fit into the L1 cache

// Columns of which nothing but the words is read.
inline ByteColumns words_of(const Words& words, Int d) {
    demand(d >= 1 && (d + WORD - 1) / WORD == static_cast<Int>(words.shape(0)), "expected eight columns in a word");
    demand_aligned(words, "words");
    return {words.data(), static_cast<Int>(words.shape(1)), d, nullptr};
}

inline void row_hashes(Words words, In<std::uint64_t, 2> tables, Team& team, Out<std::uint64_t, 1> hashes) {
    const ByteColumns columns = words_of(words, static_cast<Int>(tables.shape(0)));
    demand_shape(tables, "words of codes (d, 256)", {columns.d, BINS});
    demand_shape(hashes, "hashes (n,)", {columns.n});
    nb::gil_scoped_release free;
    team.each((columns.n + FEWEST_HASHES - 1) / FEWEST_HASHES, [&](Int part, Int) {
        const Int begin = part * FEWEST_HASHES;
        add_hashes(columns, tables.data(), begin, std::min(begin + FEWEST_HASHES, columns.n), hashes.data());
    });
}

inline void column_keys(Words words, In<std::uint64_t, 1> code_words, In<std::uint64_t, 1> hashes, Team& team,
                        Out<std::uint64_t, 1> keys) {
    const ByteColumns columns = words_of(words, static_cast<Int>(keys.shape(0)));
    demand_shape(code_words, "words of codes (256,)", {BINS});
    demand_shape(hashes, "hashes (n,)", {columns.n});
    demand_aligned(keys, "keys (d,)");
    nb::gil_scoped_release free;
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(team.size() * columns.d));  // of each thread
    team.each((columns.n + FEWEST_HASHES - 1) / FEWEST_HASHES, [&](Int part, Int member) {
        const Int begin = part * FEWEST_HASHES, end = std::min(begin + FEWEST_HASHES, columns.n);
        add_keys(columns, code_words.data(), hashes.data(), begin, end, sums.data() + member * columns.d);
    });
    for (Int member = 0; member < team.size(); ++member)
        for (Int j = 0; j < columns.d; ++j) keys.data()[j] += sums[member * columns.d + j];
}

inline void bin_codes(Table x, In<double, 1> edges, In<Int, 1> first, Out<std::int16_t, 2> out) {
    const Codes rows = numbers_of(x);
    const Int count = static_cast<Int>(edges.shape(0));
    demand_aligned(edges, "edges");
    levels_of(first, rows.d);
    demand(first.data()[rows.d] == count, "expected the first edge of each column, and the number of edges");
    for (Int j = 0; j < rows.d; ++j)
        demand(first.data()[j + 1] - first.data()[j] < (1 << 15), "expected fewer than 2^15 edges of a column");
    demand_shape(out, "codes (n, d)", {rows.n, rows.d});
    nb::gil_scoped_release free;
    if (rows.type == FLOAT32)
        calibayes::bin_codes(numbers_as<float>(rows), edges.data(), first.data(), out.data());
    else
        calibayes::bin_codes(numbers_as<double>(rows), edges.data(), first.data(), out.data());
}

template <class C>
bool codes_of_column(const Cells& x, const GriddedEdges& edges, double limit, C* out, Int out_stride) {
    const auto by = [&](auto* data) {
        return column_codes(data, x.stride(0), static_cast<Int>(x.shape(0)), edges, limit, out, out_stride);
    };
    switch (type_of(x.dtype())) {
        case INT8: return by(static_cast<const std::int8_t*>(x.data()));
        case UINT8: return by(static_cast<const std::uint8_t*>(x.data()));
        case INT16: return by(static_cast<const std::int16_t*>(x.data()));
        case UINT16: return by(static_cast<const std::uint16_t*>(x.data()));
        case INT32: return by(static_cast<const std::int32_t*>(x.data()));
        case UINT32: return by(static_cast<const std::uint32_t*>(x.data()));
        case INT64: return by(static_cast<const std::int64_t*>(x.data()));
        case UINT64: return by(static_cast<const std::uint64_t*>(x.data()));
        case FLOAT32: return by(static_cast<const float*>(x.data()));
        default: return by(static_cast<const double*>(x.data()));
    }
}

// Writes the codes of a column (n,); returns whether a number is beyond the limit.
inline bool bin_column(Cells x, In<double, 1> edges, double limit,
                       nb::ndarray<nb::ndim<1>, nb::device::cpu> out) {
    const Int n = static_cast<Int>(x.shape(0)), count = static_cast<Int>(edges.shape(0));
    const Type type = type_of(out.dtype());
    demand(type == INT8 || type == INT16, "codes must be int8 or int16");
    demand(count < (type == INT8 ? 1 << 7 : 1 << 15), "more edges than there are codes");
    demand_aligned(x, "numbers (n,)");
    demand_aligned(edges, "edges");
    demand_shape(out, "codes (n,)", {n});
    type_of(x.dtype());
    nb::gil_scoped_release free;
    const GriddedEdges gridded(edges.data(), count, n);
    if (type == INT8) return codes_of_column(x, gridded, limit, static_cast<std::int8_t*>(out.data()), out.stride(0));
    return codes_of_column(x, gridded, limit, static_cast<std::int16_t*>(out.data()), out.stride(0));
}

inline void define(nb::module_& m) {
    m.def("bin_column", apart<bin_column>, nb::arg("x").noconvert(), nb::arg("edges").noconvert(), nb::arg("limit"),
          nb::arg("out").noconvert());
    m.def("bin_codes", apart<bin_codes>, nb::arg("x").noconvert(), nb::arg("edges").noconvert(), nb::arg("first").noconvert(),
          nb::arg("out").noconvert());
    nb::class_<Team>(m, "Team").def("__init__", [](Team* team, Int size) {
        demand(size >= 1 && size <= MOST_THREADS, "expected 1 to 1024 threads");
        new (team) Team(size);
    });
    m.def("row_hashes", apart<row_hashes>, nb::arg("words").noconvert(), nb::arg("tables").noconvert(), nb::arg("team"),
          nb::arg("hashes").noconvert());
    m.def("column_keys", apart<column_keys>, nb::arg("words").noconvert(), nb::arg("code_words").noconvert(),
          nb::arg("hashes").noconvert(), nb::arg("team"), nb::arg("keys").noconvert());
    m.def("add_factors", apart<add_factors>, nb::arg("factors").noconvert(), nb::arg("codes").noconvert(), nb::arg("team"),
          nb::arg("scores").noconvert());
    m.def("packed_residuals", apart<packed_residuals>, nb::arg("scores").noconvert(), nb::arg("labels").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("scale"), nb::arg("fractions").noconvert(), nb::arg("team"),
          nb::arg("packed").noconvert());
    m.def("leaf_sums", apart<leaf_sums>, nb::arg("scores").noconvert(), nb::arg("codes").noconvert(),
          nb::arg("labels").noconvert(), nb::arg("weight").noconvert(), nb::arg("held_out").noconvert(), nb::arg("scale"),
          nb::arg("team"), nb::arg("out").noconvert());
    m.def("whole_loss", apart<whole_loss>, nb::arg("scores").noconvert(), nb::arg("labels").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("held_out").noconvert(), nb::arg("scale"), nb::arg("most"), nb::arg("team"));
    m.def("node_sums", apart<node_sums>, nb::arg("words").noconvert(), nb::arg("rows").noconvert(), nb::arg("packed").noconvert(),
          nb::arg("first").noconvert(), nb::arg("out").noconvert());
    m.def("best_split", apart<best_split>, nb::arg("sums").noconvert(), nb::arg("first").noconvert(),
          nb::arg("columns").noconvert(), nb::arg("direction").noconvert(), nb::arg("prior"), nb::arg("least"),
          nb::arg("low"), nb::arg("high"));
    m.def("divide", apart<divide>, nb::arg("words").noconvert(), nb::arg("rows").noconvert(), nb::arg("column"), nb::arg("most"),
          nb::arg("missing_left"), nb::arg("left").noconvert(), nb::arg("right").noconvert());
    m.def("grow_tree", apart<grow_tree>, nb::arg("words").noconvert(), nb::arg("held_out").noconvert(), nb::arg("packed").noconvert(),
          nb::arg("first").noconvert(), nb::arg("order").noconvert(), nb::arg("direction").noconvert(),
          nb::arg("prior"), nb::arg("least"), nb::arg("most_leaves"), nb::arg("team"), nb::arg("column").noconvert(),
          nb::arg("most").noconvert(), nb::arg("missing_left").noconvert(), nb::arg("children").noconvert(),
          nb::arg("bounds").noconvert());
    m.def("leaf_codes", apart<leaf_codes>, nb::arg("words").noconvert(), nb::arg("first_cell").noconvert(),
          nb::arg("column").noconvert(), nb::arg("most").noconvert(), nb::arg("missing_left").noconvert(),
          nb::arg("children").noconvert(), nb::arg("first").noconvert(), nb::arg("team"), nb::arg("out").noconvert());
}

}  // namespace trees
}  // namespace calibayes
