// Growth of one tree: the leaf of the largest gain is split until there are enough leaves or nothing is gained.
#pragma once

#include <limits>

#include "tree_splits.hpp"

namespace calibayes {

constexpr int WORD = 8;  // columns in a word
constexpr double INFINITE = std::numeric_limits<double>::infinity();

// Codes of n rows and d columns, eight columns to a word; column j has cells first[j] to first[j + 1].
struct ByteColumns {
    const std::uint64_t* words;
    Int n, d;
    const Int* first;
};

// The arrays of a tree, each with room for all nodes (bounds: all leaves).
struct TreeArrays {
    std::int32_t* column;
    std::uint8_t* most;
    bool* missing_left;
    std::int32_t* children;
    std::int32_t* codes;
    double* bounds;
};

// Sums of packed numbers over some rows, by cell and class. `add` returns whether a code is beyond those of its column.
class NodeSums {
public:
    NodeSums(const ByteColumns& columns, const Int* packed, Int k)
        : columns_(columns), packed_(packed), k_(k), word_(static_cast<std::size_t>(WORD * BINS * k)) {}

    bool add(const std::int32_t* rows, Int m, Int* out) {
        own_.resize(static_cast<std::size_t>(m * k_));
        for (Int r = 0; r < m; ++r)
            for (Int c = 0; c < k_; ++c) own_[r * k_ + c] = packed_[rows[r] * k_ + c];
        bool beyond = false;
        const auto sum = chosen().node_sums[k_ < AT_ONCE ? k_ : 0];
        for (Int from = 0; from < columns_.d; from += WORD) {
            const int count = static_cast<int>(std::min<Int>(WORD, columns_.d - from));
            std::fill(word_.begin(), word_.end(), Int(0));
            sum(columns_.words + from / WORD * columns_.n, rows, m, own_.data(), k_, count, word_.data());
            for (int j = 0; j < count; ++j) beyond |= copy(from + j, word_.data() + j * BINS * k_, out);
        }
        return beyond;
    }

private:
    bool copy(Int j, const Int* column, Int* out) const {
        const Int cells = (columns_.first[j + 1] - columns_.first[j]) * k_;
        std::copy(column, column + cells, out + columns_.first[j] * k_);
        return std::any_of(column + cells, column + BINS * k_, [](Int sum) { return sum != 0; });
    }

    ByteColumns columns_;
    const Int* packed_;
    Int k_;
    std::vector<Int> own_, word_;
};

class TreeGrowth {
public:
    TreeGrowth(const ByteColumns& columns, const Int* packed, Int k, const SplitOptions& options, TreeArrays tree)
        : columns_(columns), k_(k), options_(options), tree_(tree), sums_(columns, packed, k),
          search_(columns.first, k, options) {}

    // Returns the number of nodes, or -1 if a code is beyond those of its column.
    Int grow(const std::int32_t* rows, Int m, Int most_leaves) {
        order_.assign(rows, rows + m);
        other_.resize(static_cast<std::size_t>(m));
        std::vector<Int> root(cells());
        if (sums_.add(rows, m, root.data())) return -1;
        add(0, m, std::move(root), {-INFINITE, INFINITE});
        while (static_cast<Int>(leaves_.size()) < most_leaves && split_best()) {}
        write_leaves();
        return nodes_;
    }

private:
    struct Leaf {
        Int node, begin, end;  // of its rows
        std::vector<Int> sums;
        Bounds bounds;
        Split split;
    };

    std::size_t cells() const { return static_cast<std::size_t>(columns_.first[columns_.d] * k_); }

    void add(Int begin, Int end, std::vector<Int> sums, Bounds bounds) {
        const Split split = search_.best(sums.data(), bounds);
        tree_.column[nodes_] = -1;
        tree_.most[nodes_] = 0;
        tree_.missing_left[nodes_] = false;
        leaves_.push_back({nodes_++, begin, end, std::move(sums), bounds, split});
    }

    bool split_best() {
        const auto best = std::max_element(leaves_.begin(), leaves_.end(), [](const Leaf& a, const Leaf& b) {
            return a.split.gain < b.split.gain || (a.split.gain == b.split.gain && a.node > b.node);
        });
        if (best->split.gain <= 0.0) return false;
        Leaf leaf = std::move(*best);
        leaves_.erase(best);
        const Int middle = leaf.begin + divide_rows(leaf);
        const bool left_smaller = middle - leaf.begin < leaf.end - middle;
        const Int from = left_smaller ? leaf.begin : middle, to = left_smaller ? middle : leaf.end;
        std::vector<Int> sums(cells());
        sums_.add(order_.data() + from, to - from, sums.data());
        for (std::size_t cell = 0; cell < sums.size(); ++cell) leaf.sums[cell] = reduced(leaf.sums[cell], sums[cell]);
        if (!left_smaller) std::swap(sums, leaf.sums);  // now `sums` are those of the left child
        write_split(leaf);
        const auto bounds = child_bounds(leaf, sums.data(), leaf.sums.data());
        add(leaf.begin, middle, std::move(sums), bounds.first);
        add(middle, leaf.end, std::move(leaf.sums), bounds.second);
        return true;
    }

    // Orders the rows of a leaf by child; returns the number of those on the left.
    Int divide_rows(const Leaf& leaf) {
        const Int m = leaf.end - leaf.begin, j = leaf.split.column;
        std::int32_t* rows = order_.data() + leaf.begin;
        const Int lefts = divide(columns_.words + j / WORD * columns_.n, rows, m, static_cast<int>(j % WORD),
                                 static_cast<std::uint8_t>(leaf.split.most), leaf.split.missing_left, rows, other_.data());
        std::copy(other_.data(), other_.data() + m - lefts, rows + lefts);
        return lefts;
    }

    std::pair<Bounds, Bounds> child_bounds(const Leaf& leaf, const Int* left, const Int* right) const {
        const std::int8_t direction = options_.direction[leaf.split.column];
        if (!direction) return {leaf.bounds, leaf.bounds};
        const double middle = (clipped_change(leaf, left) + clipped_change(leaf, right)) / 2.0;
        const Bounds lower{leaf.bounds.low, middle}, upper{middle, leaf.bounds.high};
        return direction > 0 ? std::make_pair(lower, upper) : std::make_pair(upper, lower);
    }

    // The sums over the cells of one column are those of the node.
    double clipped_change(const Leaf& leaf, const Int* sums) const {
        Int total = 0;
        for (Int cell = 0; cell < columns_.first[1]; ++cell) total = added(total, sums[cell]);
        return leaf.bounds.clip(log_odds_change(total, options_.prior));
    }

    void write_split(const Leaf& leaf) {
        tree_.column[leaf.node] = static_cast<std::int32_t>(leaf.split.column);
        tree_.most[leaf.node] = static_cast<std::uint8_t>(leaf.split.most);
        tree_.missing_left[leaf.node] = leaf.split.missing_left;
        for (int side = 0; side < 2; ++side) tree_.children[2 * leaf.node + side] = static_cast<std::int32_t>(nodes_ + side);
    }

    // Numbers the leaves in the order of their nodes.
    void write_leaves() {
        std::sort(leaves_.begin(), leaves_.end(), [](const Leaf& a, const Leaf& b) { return a.node < b.node; });
        std::int32_t number = 0;
        for (const Leaf& leaf : leaves_) {
            for (int side = 0; side < 2; ++side) tree_.children[2 * leaf.node + side] = number;
            for (Int r = leaf.begin; r < leaf.end; ++r) tree_.codes[order_[r]] = number;
            tree_.bounds[2 * number] = leaf.bounds.low;
            tree_.bounds[2 * number + 1] = leaf.bounds.high;
            ++number;
        }
    }

    ByteColumns columns_;
    Int k_;
    SplitOptions options_;
    TreeArrays tree_;
    NodeSums sums_;
    SplitSearch search_;
    std::vector<std::int32_t> order_, other_;
    std::vector<Leaf> leaves_;
    Int nodes_ = 0;
};

// Trees one after another: node i of tree t is node first[t] + i; columns and children as in TreeArrays.
struct Trees {
    const std::int32_t* column;
    const std::uint8_t* most;
    const std::uint8_t* missing_left;  // bytes of booleans, which may have any value
    const std::int32_t* children;
    const Int* first;
    Int count;
};

// The leaf of each row in each tree, (n, trees). A stretch of rows goes through all trees while its codes are in the cache.
inline void leaf_codes(const ByteColumns& columns, const Trees& trees, std::int8_t* out) {
    for (Int begin = 0; begin < columns.n; begin += STRETCH) {
        const Int end = std::min(begin + STRETCH, columns.n);
        for (Int t = 0; t < trees.count; ++t) {
            const Int root = trees.first[t];
            for (Int r = begin; r < end; ++r) {
                Int node = root;
                for (Int j = trees.column[node]; j >= 0; j = trees.column[node]) {
                    const std::uint64_t word = columns.words[j / WORD * columns.n + r];
                    const std::uint8_t code = static_cast<std::uint8_t>(word >> (8 * (j % WORD)));
                    const bool left = goes_left(code, trees.most[node], trees.missing_left[node] != 0);
                    node = root + trees.children[2 * node + !left];
                }
                out[r * trees.count + t] = static_cast<std::int8_t>(trees.children[2 * node]);
            }
        }
    }
}

}  // namespace calibayes
