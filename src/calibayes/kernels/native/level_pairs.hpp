// Pairs of columns of levels: contingency tables by class, and the dependence in them. The table of pair p has cells
// first[p] to first[p + 1]: level a of its left column and level b of its right one share cell first[p] + a * levels + b.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "checks.hpp"

namespace calibayes {
namespace pairs {

namespace nb = nanobind;
using namespace checks;

constexpr Int BESIDE_EACH_OTHER = 2;   // tables that rows are counted in by turns, so that additions need not wait
constexpr Int MOST_IN_ROOM = 4096;     // cells of a table that is counted with a further level for missing values
constexpr Int TABULATED = 4096;        // whole numbers whose x log x is in a table

struct PairTables {
    const Int *levels, *left, *right, *first;
    Int d, count;
};

// Pairs of columns (2, p), after a check that their tables lie side by side.
inline PairTables tables_of(const In<Int, 1>& levels, const In<Int, 2>& pairs, const In<Int, 1>& first) {
    const Int d = static_cast<Int>(levels.shape(0)), count = static_cast<Int>(pairs.shape(1));
    demand_aligned(levels, "numbers of levels (d,)");
    demand_shape(pairs, "pairs of columns (2, p)", {2, count});
    demand_shape(first, "first cells of pairs (p + 1,)", {count + 1});
    for (Int j = 0; j < d; ++j) demand(levels.data()[j] >= 0 && levels.data()[j] < MOST_SIZE, "a column must have 0 to 2^31 levels");
    const PairTables tables{levels.data(), pairs.data(), pairs.data() + count, first.data(), d, count};
    demand(tables.first[0] == 0, "first cells of pairs must begin with 0");
    for (Int p = 0; p < count; ++p) {
        const Int a = tables.left[p], b = tables.right[p];
        demand(a >= 0 && a < d && b >= 0 && b < d, "pairs must be two columns");
        const bool fits = tables.first[p] >= 0 && tables.first[p + 1] >= tables.first[p] &&
                          tables.first[p + 1] - tables.first[p] == tables.levels[a] * tables.levels[b];
        demand(fits, "a pair must have as many cells as pairs of levels");
    }
    return tables;
}

// The codes of some rows, column by column, and their weights; a code that is no level is the number of levels.
struct ClassRows {
    std::vector<std::uint32_t> codes;
    std::vector<double> weight;

    Int size() const { return static_cast<Int>(weight.size()); }

    void take(const std::int32_t* all, Int n, const double* weights, const PairTables& tables) {
        std::vector<Int> rows;
        weight.clear();
        for (Int r = 0; r < n; ++r)
            if (weights[r] != 0.0) rows.push_back(r), weight.push_back(weights[r]);
        codes.resize(static_cast<std::size_t>(tables.d * size()));
        for (Int j = 0; j < tables.d; ++j) {
            const auto levels = static_cast<std::uint32_t>(tables.levels[j]);
            for (Int i = 0; i < size(); ++i)
                codes[j * size() + i] = std::min(static_cast<std::uint32_t>(all[j * n + rows[i]]), levels);
        }
    }
};

inline void count_pair(const ClassRows& rows, const PairTables& tables, Int p, std::vector<double>& room, double* out) {
    const Int m = rows.size(), high = tables.levels[tables.left[p]], wide = tables.levels[tables.right[p]];
    const std::uint32_t *a = rows.codes.data() + tables.left[p] * m, *b = rows.codes.data() + tables.right[p] * m;
    const double* weight = rows.weight.data();
    const Int line = wide + 1, cells = (high + 1) * line;
    if (cells > MOST_IN_ROOM) {
        std::fill(out, out + high * wide, 0.0);
        for (Int i = 0; i < m; ++i)
            if (a[i] < high && b[i] < wide) out[a[i] * wide + b[i]] += weight[i];
        return;
    }
    std::fill(room.begin(), room.begin() + BESIDE_EACH_OTHER * cells, 0.0);
    double *one = room.data(), *other = one + cells;
    Int i = 0;
    for (; i + 2 <= m; i += 2) {
        one[a[i] * line + b[i]] += weight[i];
        other[a[i + 1] * line + b[i + 1]] += weight[i + 1];
    }
    if (i < m) one[a[i] * line + b[i]] += weight[i];
    for (Int x = 0; x < high; ++x)
        for (Int y = 0; y < wide; ++y) out[x * wide + y] = one[x * line + y] + other[x * line + y];
}

// Sums of weights (k, n) by class and cell of each pair, for codes (d, n).
inline void weighted_pairs(In<std::int32_t, 2> codes, In<double, 2> weights, In<Int, 1> levels, In<Int, 2> pairs,
                           In<Int, 1> first, Out<double, 2> out) {
    const auto tables = tables_of(levels, pairs, first);
    const Int n = static_cast<Int>(codes.shape(1)), k = classes_of(weights, 0), cells = tables.first[tables.count];
    demand_shape(codes, "codes (d, n)", {tables.d, n});
    demand_shape(weights, "weights (k, n)", {k, n});
    demand_shape(out, "the result (k, cells)", {k, cells});
    nb::gil_scoped_release free;
    ClassRows rows;
    std::vector<double> room(static_cast<std::size_t>(BESIDE_EACH_OTHER * MOST_IN_ROOM));
    for (Int c = 0; c < k; ++c) {
        rows.take(codes.data(), n, weights.data() + c * n, tables);
        for (Int p = 0; p < tables.count; ++p) count_pair(rows, tables, p, room, out.data() + c * cells + tables.first[p]);
    }
}

// x log x, 0 for x = 0.
class Entropy {
  public:
    Entropy() : table_(TABULATED) {
        for (Int x = 1; x < TABULATED; ++x) table_[x] = static_cast<double>(x) * std::log(static_cast<double>(x));
    }

    double operator()(double x) const {
        if (x >= 0.0 && x < static_cast<double>(TABULATED)) {
            const auto whole = static_cast<std::size_t>(x);
            if (static_cast<double>(whole) == x) return table_[whole];
        }
        return x * std::log(x);
    }

  private:
    std::vector<double> table_;
};

// The gain in log likelihood of a joint over an independent model, the weight and the degrees of freedom of each pair,
// (k, p) each, of tables (k, cells). Negative counts are taken for 0.
inline void pair_information(In<double, 2> counts, In<Int, 1> levels, In<Int, 2> pairs, In<Int, 1> first, Out<double, 2> gain,
                             Out<double, 2> weight, Out<double, 2> freedom) {
    const auto tables = tables_of(levels, pairs, first);
    const Int k = static_cast<Int>(counts.shape(0)), cells = tables.first[tables.count], many = tables.count;
    demand_shape(counts, "tables of all pairs (k, cells)", {k, cells});
    demand_shape(gain, "gains (k, p)", {k, many});
    demand_shape(weight, "weights (k, p)", {k, many});
    demand_shape(freedom, "degrees of freedom (k, p)", {k, many});
    nb::gil_scoped_release free;
    const Entropy entropy;
    std::vector<double> column;
    for (Int c = 0; c < k; ++c)
        for (Int p = 0; p < many; ++p) {
            const Int high = tables.levels[tables.left[p]], wide = tables.levels[tables.right[p]];
            const double* table = counts.data() + c * cells + tables.first[p];
            column.assign(static_cast<std::size_t>(wide), 0.0);
            double joint = 0.0, alone = 0.0, total = 0.0;
            Int rows = 0, columns = 0;
            for (Int a = 0; a < high; ++a) {
                double row = 0.0;
                for (Int b = 0; b < wide; ++b) {
                    const double count = std::max(table[a * wide + b], 0.0);
                    joint += entropy(count), row += count, column[b] += count;
                }
                alone += entropy(row), total += row, rows += row > 0.0;
            }
            for (const double count : column) alone += entropy(count), columns += count > 0.0;
            gain.data()[c * many + p] = std::max(joint - (alone - entropy(total)), 0.0);
            weight.data()[c * many + p] = total;
            freedom.data()[c * many + p] = static_cast<double>(std::max<Int>(rows - 1, 0) * std::max<Int>(columns - 1, 0));
        }
}

inline void define(nb::module_& m) {
    m.def("weighted_pairs", apart<weighted_pairs>, nb::arg("codes").noconvert(), nb::arg("weights").noconvert(),
          nb::arg("levels").noconvert(), nb::arg("pairs").noconvert(), nb::arg("first").noconvert(), nb::arg("out").noconvert());
    m.def("pair_information", apart<pair_information>, nb::arg("counts").noconvert(), nb::arg("levels").noconvert(),
          nb::arg("pairs").noconvert(), nb::arg("first").noconvert(), nb::arg("gain").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("freedom").noconvert());
}

}  // namespace pairs
}  // namespace calibayes
