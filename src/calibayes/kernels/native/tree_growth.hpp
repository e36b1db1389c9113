// Growth of one tree: the leaf of the largest gain is split until there are enough leaves or nothing is gained.
#pragma once

#include <limits>

#include "team.hpp"
#include "tree_splits.hpp"

namespace calibayes {

constexpr int WORD = 8;  // columns in a word
constexpr Int PACKED_ROWS = 1 << 20;  // rows whose packed numbers may be added up
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
    double* bounds;
};

// Sums of residuals and variances over some rows, by cell and class. `add` returns whether a code is beyond those of its column.
//
// Packed numbers are added up over stretches of rows, so few that their sums cannot overflow, and unpacked then. The threads of
// a team share the words, and the rows too if there are few words. Sums of whole numbers are the same for any division.
class NodeSums {
public:
    NodeSums(const ByteColumns& columns, const Int* packed, Int k, Team& team)
        : columns_(columns), packed_(packed), k_(k), word_cells_(WORD * BINS * k), cells_(columns.first[columns.d] * k), team_(team) {}

    bool add(const std::int32_t* rows, Int m, Int* out) {
        std::fill(out, out + 2 * cells_, Int(0));
        bool beyond = false;
        for (Int begin = 0; begin < m; begin += PACKED_ROWS)
            beyond |= add_stretch(rows + begin, std::min(PACKED_ROWS, m - begin), out);
        are_checked_ = !beyond;
        return beyond;
    }

private:
    static constexpr Int FEWEST = 4096;  // rows of a part

    bool add_stretch(const std::int32_t* rows, Int m, Int* out) {
        own_.resize(static_cast<std::size_t>(m * k_));
        team_.each_part(m, FEWEST, [&](Int begin, Int end, Int) {
            for (Int r = begin; r < end; ++r)
                for (Int c = 0; c < k_; ++c) own_[r * k_ + c] = packed_[rows[r] * k_ + c];
        });
        const Int words = (columns_.d + WORD - 1) / WORD, parts = parts_of(m, words);
        beyond_.assign(static_cast<std::size_t>(words), 0);
        if (parts == 1) {
            room_.resize(static_cast<std::size_t>(team_.size() * word_cells_));
            team_.each(words, [&](Int word, Int member) {
                Int* sums = room_.data() + member * word_cells_;
                add_word(word, rows, 0, m, sums);
                beyond_[word] = unpack_word(word, sums, out);
            });
        } else {
            room_.resize(static_cast<std::size_t>(words * parts * word_cells_));
            team_.each(words * parts, [&](Int task, Int) {
                const Int part = task % parts;
                add_word(task / parts, rows, m * part / parts, m * (part + 1) / parts, room_.data() + task * word_cells_);
            });
            team_.each(words, [&](Int word, Int) {
                Int* sums = room_.data() + word * parts * word_cells_;
                for (Int part = 1; part < parts; ++part)
                    for (int place = 0; place < columns_of(word); ++place)
                        for (Int cell = place * BINS * k_, end = cell + read_cells(word * WORD + place); cell < end; ++cell)
                            sums[cell] = added(sums[cell], sums[part * word_cells_ + cell]);
                beyond_[word] = unpack_word(word, sums, out);
            });
        }
        return std::any_of(beyond_.begin(), beyond_.end(), [](char beyond) { return beyond != 0; });
    }

    // Into how many parts rows are divided, if each is done for several words: some tasks for each thread.
    Int parts_of(Int m, Int words) const {
        return team_.size() == 1 ? 1 : std::max<Int>(1, std::min(m / FEWEST, (4 * team_.size() + words - 1) / words));
    }

    int columns_of(Int word) const { return static_cast<int>(std::min<Int>(WORD, columns_.d - word * WORD)); }

    void add_word(Int word, const std::int32_t* rows, Int begin, Int end, Int* sums) const {
        for (int place = 0; place < columns_of(word); ++place)
            std::fill(sums + place * BINS * k_, sums + place * BINS * k_ + read_cells(word * WORD + place), Int(0));
        const auto sum = chosen().node_sums[k_ < AT_ONCE ? k_ : 0];
        sum(columns_.words + word * columns_.n, rows + begin, end - begin, own_.data() + begin * k_, k_, columns_of(word), sums);
    }

    // Number of sums of a column that are read: of its own codes, once none is known to be beyond them.
    Int read_cells(Int j) const { return (are_checked_ ? columns_.first[j + 1] - columns_.first[j] : BINS) * k_; }

    // Adds the sums of a word to those of its columns.
    bool unpack_word(Int word, const Int* sums, Int* out) const {
        bool beyond = false;
        for (int place = 0; place < columns_of(word); ++place) {
            const Int j = word * WORD + place, cells = (columns_.first[j + 1] - columns_.first[j]) * k_;
            const Int* column = sums + place * BINS * k_;
            Int *residual = out + columns_.first[j] * k_, *variance = residual + cells_;
            for (Int cell = 0; cell < cells; ++cell) {
                residual[cell] = added(residual[cell], residual_of(column[cell]));
                variance[cell] = added(variance[cell], variance_of(column[cell]));
            }
            beyond |= std::any_of(column + cells, column + read_cells(j), [](Int sum) { return sum != 0; });
        }
        return beyond;
    }

    ByteColumns columns_;
    const Int* packed_;
    Int k_, word_cells_, cells_;
    Team& team_;
    std::vector<Int> own_, room_;
    std::vector<char> beyond_;
    bool are_checked_ = false;  // later rows are among those of the first sums
};

class TreeGrowth {
public:
    TreeGrowth(const ByteColumns& columns, const Int* packed, Int k, const SplitOptions& options, TreeArrays tree, Team& team)
        : columns_(columns), k_(k), options_(options), tree_(tree), team_(team), sums_(columns, packed, k, team),
          searches_(static_cast<std::size_t>(team.size()), SplitSearch(columns.first, columns.d, k, options)) {}

    // Returns the number of nodes, or -1 if a code is beyond those of its column.
    Int grow(const std::uint8_t* held_out, Int most_leaves) {
        order_.reserve(static_cast<std::size_t>(columns_.n));
        for (Int row = 0; row < columns_.n; ++row)
            if (!held_out[row]) order_.push_back(static_cast<std::int32_t>(row));
        const Int m = static_cast<Int>(order_.size());
        other_.resize(order_.size());
        std::vector<Int> root = room();
        if (sums_.add(order_.data(), m, root.data())) return -1;
        add(0, m, std::move(root), {-INFINITE, INFINITE});
        find_splits(1);
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

    // Memory for the sums of a node, which an earlier tree may have left: new memory is slow.
    std::vector<Int> room() {
        std::vector<Int> memory = team_.take();
        memory.resize(size());
        return memory;
    }

    // Of the sums of a node.
    std::size_t size() const { return static_cast<std::size_t>(2 * columns_.first[columns_.d] * k_); }

    // A leaf whose best split is not yet known.
    void add(Int begin, Int end, std::vector<Int> sums, Bounds bounds) {
        tree_.column[nodes_] = -1;
        tree_.most[nodes_] = 0;
        tree_.missing_left[nodes_] = false;
        leaves_.push_back({nodes_++, begin, end, std::move(sums), bounds, Split()});
    }

    // The best splits of the last leaves; threads search among some of the columns each.
    void find_splits(Int count) {
        const Int parts = std::max<Int>(1, std::min(options_.count, team_.size()));
        found_.resize(static_cast<std::size_t>(count * parts));
        const std::size_t before = leaves_.size() - static_cast<std::size_t>(count);
        team_.each(count * parts, [&](Int task, Int member) {
            const Leaf& leaf = leaves_[before + static_cast<std::size_t>(task / parts)];
            const Int part = task % parts, begin = options_.count * part / parts, end = options_.count * (part + 1) / parts;
            found_[task] = searches_[member].best(leaf.sums.data(), leaf.bounds, begin, end);
        });
        for (Int task = 0; task < count * parts; ++task) {  // of equal gains the first, in the order of the columns
            Split& best = leaves_[before + static_cast<std::size_t>(task / parts)].split;
            if (found_[task].gain > best.gain) best = found_[task];
        }
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
        std::vector<Int> sums = room();
        sums_.add(order_.data() + from, to - from, sums.data());
        for (std::size_t cell = 0; cell < sums.size(); ++cell) leaf.sums[cell] = reduced(leaf.sums[cell], sums[cell]);
        if (!left_smaller) std::swap(sums, leaf.sums);  // now `sums` are those of the left child
        write_split(leaf);
        const auto bounds = child_bounds(leaf, sums.data(), leaf.sums.data());
        add(leaf.begin, middle, std::move(sums), bounds.first);
        add(middle, leaf.end, std::move(leaf.sums), bounds.second);
        find_splits(2);
        return true;
    }

    static constexpr Int MANY = 1 << 13;  // rows of a leaf from which on threads divide them

    // Orders the rows of a leaf by child; returns the number of those on the left.
    Int divide_rows(const Leaf& leaf) {
        const Int m = leaf.end - leaf.begin, j = leaf.split.column;
        const Int parts = m < MANY ? 1 : std::min(2 * team_.size(), m / (MANY / 8));
        std::int32_t* rows = order_.data() + leaf.begin;
        lefts_.assign(static_cast<std::size_t>(parts), 0);
        team_.each(parts, [&](Int part, Int) {
            const Int begin = m * part / parts, size = m * (part + 1) / parts - begin;
            lefts_[part] = divide(columns_.words + j / WORD * columns_.n, rows + begin, size, static_cast<int>(j % WORD),
                                  static_cast<std::uint8_t>(leaf.split.most), leaf.split.missing_left, rows + begin,
                                  other_.data() + begin);
        });
        Int lefts = 0;
        for (const Int count : lefts_) lefts += count;
        if (parts == 1) {
            std::copy(other_.data(), other_.data() + m - lefts, rows + lefts);
        } else {
            gather_parts(rows, m, parts, lefts);
        }
        return lefts;
    }

    // Brings the rows on the left of all parts, and after them those on the right, into the order of the parts.
    void gather_parts(std::int32_t* rows, Int m, Int parts, Int lefts) {
        gathered_.resize(order_.size());
        team_.each(parts, [&](Int part, Int) {
            const Int begin = m * part / parts, size = m * (part + 1) / parts - begin;
            Int to_left = 0;
            for (Int before = 0; before < part; ++before) to_left += lefts_[before];
            const Int to_right = lefts + begin - to_left, count = lefts_[part];
            std::copy(rows + begin, rows + begin + count, gathered_.data() + to_left);
            std::copy(other_.data() + begin, other_.data() + begin + size - count, gathered_.data() + to_right);
        });
        team_.each(parts, [&](Int part, Int) {
            std::copy(gathered_.data() + m * part / parts, gathered_.data() + m * (part + 1) / parts, rows + m * part / parts);
        });
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
        const Sums both(sums, columns_.first[columns_.d] * k_);
        Int residual = 0, variance = 0;
        for (Int cell = 0; cell < columns_.first[1]; ++cell) {
            residual = added(residual, both.residual[cell]);
            variance = added(variance, both.variance[cell]);
        }
        return leaf.bounds.clip(log_odds_change(residual, variance, options_.prior));
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
        for (std::size_t number = 0; number < leaves_.size(); ++number) {
            const Leaf& leaf = leaves_[number];
            for (int side = 0; side < 2; ++side) tree_.children[2 * leaf.node + side] = static_cast<std::int32_t>(number);
            tree_.bounds[2 * number] = leaf.bounds.low;
            tree_.bounds[2 * number + 1] = leaf.bounds.high;
        }
        for (Leaf& leaf : leaves_) team_.give(std::move(leaf.sums));
    }

    ByteColumns columns_;
    Int k_;
    SplitOptions options_;
    TreeArrays tree_;
    Team& team_;
    NodeSums sums_;
    std::vector<SplitSearch> searches_;  // one for each thread
    std::vector<Split> found_;
    std::vector<Int> lefts_;  // rows on the left of each part
    std::vector<std::int32_t> order_, other_, gathered_;
    std::vector<Leaf> leaves_;
    Int nodes_ = 0;
};

}  // namespace calibayes
