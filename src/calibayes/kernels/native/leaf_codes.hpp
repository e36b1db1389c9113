// The leaves of rows in the trees of a forest: by masks of leaves for many rows, by a walk from the root for few.
#pragma once

#include "tree_growth.hpp"

namespace calibayes {

// Trees one after another: node i of tree t is node first[t] + i; columns and children as in TreeArrays.
struct Trees {
    const std::int32_t* column;
    const std::uint8_t* most;
    const std::uint8_t* missing_left;  // bytes of booleans, which may have any value
    const std::int32_t* children;
    const Int* first;
    Int count;
};

// The leaves of rows in all trees, (n, trees).
class LeafCodes {
public:
    LeafCodes(const ByteColumns& columns, const Trees& trees, bool many_rows) : columns_(columns), trees_(trees) {
        if (!many_rows) return;
        splits_.reserve(static_cast<std::size_t>(trees.first[trees.count]));
        leaves_.resize(static_cast<std::size_t>(trees.first[trees.count]));
        for (Int t = 0; t < trees.count; ++t) masks_.push_back(masked(t));
    }

    // Writes the leaves of rows from `from` on, before `to`. A stretch of rows goes through all trees while its codes are in
    // the cache.
    void write(Int from, Int to, std::int8_t* out) const {
        const Int rows = masks_.empty() ? STRETCH : ROWS;
        std::vector<std::uint8_t> codes(static_cast<std::size_t>(masks_.empty() ? 0 : columns_.d * ROWS));
        for (Int begin = from; begin < to; begin += rows) {
            const Int end = std::min(begin + rows, to);
            if (!masks_.empty()) unpack(begin, end, codes.data());
            for (Int t = 0; t < trees_.count; ++t) {
                std::int8_t* own = out + begin * trees_.count + t;
                if (masks_.empty() || !masks_[t].first)
                    walk(t, begin, end, own);
                else if (masks_[t].splits >= 32)
                    chosen().masked_leaves64(masks_[t], codes.data(), end - begin, own, trees_.count);
                else
                    chosen().masked_leaves32(masks_[t], codes.data(), end - begin, own, trees_.count);
            }
        }
    }

private:
    static constexpr Int MOST = 2 * 64 - 1;  // nodes of a tree with a bit for each leaf

    // Whether every node but the root has one parent: positions below are then within bounds.
    bool is_tree(Int root, Int nodes) const {
        bool has_parent[MOST] = {};
        Int children = 0;
        for (Int node = root; node < root + nodes; ++node)
            for (int side = 0; trees_.column[node] >= 0 && side < 2; ++side, ++children) {
                bool& seen = has_parent[trees_.children[2 * node + side]];
                if (seen) return false;
                seen = true;
            }
        return children == nodes - 1;
    }

    // The masks of a tree. Children come after their parents, so that a loop backwards counts the leaves below each node, and
    // one forwards finds the first of them, from left to right.
    MaskedTree masked(Int t) {
        const Int root = trees_.first[t], nodes = trees_.first[t + 1] - root, begin = static_cast<Int>(splits_.size());
        if (nodes > MOST || !is_tree(root, nodes)) return {};
        Int below[MOST], place[MOST];
        const auto child = [&](Int node, int side) { return trees_.children[2 * (root + node) + side]; };
        const auto is_leaf = [&](Int node) { return trees_.column[root + node] < 0; };
        for (Int node = nodes - 1; node >= 0; --node)
            below[node] = is_leaf(node) ? 1 : below[child(node, 0)] + below[child(node, 1)];
        place[0] = 0;
        for (Int node = 0; node < nodes; ++node) {
            if (is_leaf(node)) {
                leaves_[root + place[node]] = static_cast<std::int8_t>(child(node, 0));
                continue;
            }
            const Int left = child(node, 0), count = below[left];
            place[left] = place[node];
            place[child(node, 1)] = place[node] + count;
            const std::uint8_t lowest = trees_.missing_left[root + node] == 0;
            const std::uint64_t taken = ((std::uint64_t(1) << count) - 1) << place[node];  // fewer than 64 leaves
            splits_.push_back({~taken, trees_.column[root + node], lowest, static_cast<std::uint8_t>(trees_.most[root + node] - lowest)});
        }
        return {splits_.data() + begin, static_cast<Int>(splits_.size()) - begin, leaves_.data() + root};
    }

    // Codes of rows as (d, ROWS).
    void unpack(Int begin, Int end, std::uint8_t* codes) const {
        for (Int j = 0; j < columns_.d; ++j) {
            const std::uint64_t* words = columns_.words + j / WORD * columns_.n + begin;
            std::uint8_t* own = codes + j * ROWS;
            for (Int r = 0; r < end - begin; ++r) own[r] = static_cast<std::uint8_t>(words[r] >> (8 * (j % WORD)));
        }
    }

    void walk(Int t, Int begin, Int end, std::int8_t* out) const {
        const Int root = trees_.first[t];
        for (Int r = begin; r < end; ++r, out += trees_.count) {
            Int node = root;
            for (Int j = trees_.column[node]; j >= 0; j = trees_.column[node]) {
                const std::uint64_t word = columns_.words[j / WORD * columns_.n + r];
                const std::uint8_t code = static_cast<std::uint8_t>(word >> (8 * (j % WORD)));
                const bool left = goes_left(code, trees_.most[node], trees_.missing_left[node] != 0);
                node = root + trees_.children[2 * node + !left];
            }
            *out = static_cast<std::int8_t>(trees_.children[2 * node]);
        }
    }

    ByteColumns columns_;
    Trees trees_;
    std::vector<MaskedSplit> splits_;
    std::vector<std::int8_t> leaves_;
    std::vector<MaskedTree> masks_;
};

}  // namespace calibayes
