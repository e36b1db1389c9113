// Codes of the bins that numbers fall into.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels.hpp"

namespace calibayes {

// Numbers of ascending edges that are not above values, by halving: one step for all values at a time, without branches.
inline void edges_below(const double* edges, Int count, const double* values, Int m, std::int32_t* below) {
    std::fill(below, below + m, 0);
    while (count > 0) {
        const std::int32_t half = static_cast<std::int32_t>((count + 1) / 2);
        const double* middle = edges + half - 1;
        for (Int r = 0; r < m; ++r) below[r] += half & -static_cast<std::int32_t>(middle[below[r]] <= values[r]);
        count -= half;
    }
}

// The code of each number (n, d); the edges of column j are from first[j] to first[j + 1].
template <class X>
void bin_codes(const Numbers<X>& x, const double* edges, const Int* first, std::int16_t* out) {
    double values[ROWS];
    std::int32_t below[ROWS];
    for (Int begin = 0; begin < x.n; begin += ROWS) {
        const Int m = std::min(ROWS, x.n - begin);
        for (Int j = 0; j < x.d; ++j) {
            for (Int r = 0; r < m; ++r) values[r] = static_cast<double>(x.data[(begin + r) * x.stride + j]);
            edges_below(edges + first[j], first[j + 1] - first[j], values, m, below);
            for (Int r = 0; r < m; ++r)
                out[(begin + r) * x.d + j] = static_cast<std::int16_t>(values[r] != values[r] ? -1 : below[r]);
        }
    }
}

// Ascending edges with an even grid of cells over them: few edges are in the cell of a number, so few are compared with it.
class GriddedEdges {
  public:
    static constexpr Int CELLS = 1024, MOST_STEPS = 3, FEWEST_ROWS = 2048;

    // For so many numbers; for few of them a grid is not worth its cost.
    GriddedEdges(const double* edges, Int count, Int numbers) : edges(edges, edges + count) {
        this->edges.push_back(std::numeric_limits<double>::quiet_NaN());  // not below any number
        if (count == 0 || numbers < FEWEST_ROWS) return;
        low = edges[0], scale = static_cast<double>(CELLS) / (edges[count - 1] - edges[0]);
        std::vector<Int> inside(CELLS);
        for (Int i = 0; i < count; ++i) ++inside[cell(edges[i])];
        steps = *std::max_element(inside.begin(), inside.end());
        before.resize(CELLS);
        for (Int c = 1; c < CELLS; ++c) before[c] = static_cast<std::int16_t>(before[c - 1] + inside[c - 1]);
    }

    bool has_grid() const { return !before.empty() && steps <= MOST_STEPS; }
    Int count() const { return static_cast<Int>(edges.size()) - 1; }
    const double* data() const { return edges.data(); }

    // Number of edges that are not above x, any number if x is NaN. The cell of a number ascends with it, whatever the
    // rounding: edges in lower cells are below x, those in higher cells above.
    std::int16_t below(double x) const {
        std::int16_t found = before[cell(x)];
        for (Int step = 0; step < steps; ++step) found += edges[found] <= x;
        return found;
    }

  private:
    std::vector<double> edges;
    std::vector<std::int16_t> before;  // edges in lower cells
    double low = 0.0, scale = 0.0;
    Int steps = 0;  // most edges in a cell

    Int cell(double x) const {
        constexpr double LAST = static_cast<double>(CELLS - 1);
        const double place = (x - low) * scale, positive = place > 0.0 ? place : 0.0;  // 0 for NaN
        return static_cast<Int>(positive < LAST ? positive : LAST);
    }
};

// The codes of the numbers of one column, -1 for NaN; `stride` numbers from one to the next. Returns whether a number is
// beyond `limit` in either direction.
template <class X, class C>
bool column_codes(const X* x, Int stride, Int n, const GriddedEdges& edges, double limit, C* out, Int out_stride) {
    bool beyond = false;
    if (edges.has_grid()) {
        for (Int r = 0; r < n; ++r) {
            const double value = static_cast<double>(x[r * stride]);
            beyond |= (value > limit) | (value < -limit);
            const C code = static_cast<C>(edges.below(value));
            out[r * out_stride] = value != value ? C(-1) : code;
        }
        return beyond;
    }
    double values[ROWS];
    std::int32_t below[ROWS];
    for (Int begin = 0; begin < n; begin += ROWS) {
        const Int m = std::min(ROWS, n - begin);
        for (Int r = 0; r < m; ++r) values[r] = static_cast<double>(x[(begin + r) * stride]);
        for (Int r = 0; r < m; ++r) beyond |= (values[r] > limit) | (values[r] < -limit);
        edges_below(edges.data(), edges.count(), values, m, below);
        for (Int r = 0; r < m; ++r)
            out[(begin + r) * out_stride] = values[r] != values[r] ? C(-1) : static_cast<C>(below[r]);
    }
    return beyond;
}

}  // namespace calibayes
