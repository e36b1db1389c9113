// Loops of a team of native threads, and a tree that one grows, for the thread sanitizer: `python -m tests.sanitize --threads`.
#include <cstdio>
#include <numeric>
#include <random>

#include "tree_growth.hpp"

using namespace calibayes;

// Every item is done once, whatever the number of items and threads, after pauses in which threads fall asleep, too.
int wrong_loops() {
    int wrong = 0;
    for (int round = 0; round < 120; ++round) {
        Team team(1 + round % 6);
        for (int loop = 0; loop < 200; ++loop) {
            const Int count = loop % 37;
            std::vector<Int> done(static_cast<std::size_t>(count)), members(static_cast<std::size_t>(team.size()));
            team.each(count, [&](Int item, Int member) { done[item] += item + 1, members[member] += 1; });
            for (Int item = 0; item < count; ++item) wrong += done[item] != item + 1;
            wrong += std::accumulate(members.begin(), members.end(), Int(0)) != count;
            if (loop % 100 == 50) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    return wrong;
}

int wrong_shared_teams() {
    Team team(4);
    std::atomic<Int> total{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 3; ++caller)
        callers.emplace_back([&] {
            for (int loop = 0; loop < 500; ++loop) team.each(20, [&](Int, Int) { ++total; });
        });
    for (auto& caller : callers) caller.join();
    return total != 3 * 500 * 20;
}

int wrong_trees() {
    constexpr Int N = 60000, D = 11, LEAVES = 13;
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> words(2 * N);
    for (auto& word : words) word = random() & 0x1f1f1f1f1f1f1f1full;
    std::vector<Int> packed(N), first(D + 1);
    for (auto& number : packed) number = static_cast<Int>(random() % 2001 - 1000) * 4294967296ll + static_cast<Int>(random() % 500);
    for (Int j = 0; j <= D; ++j) first[j] = 32 * j;
    std::vector<std::int32_t> order(D);
    std::vector<std::uint8_t> held_out(N);
    for (Int row = 0; row < N; row += 7) held_out[row] = 1;
    std::iota(order.begin(), order.end(), 0);
    const std::vector<std::int8_t> direction(D);
    std::vector<std::int32_t> expected;
    for (const Int size : {1, 2, 5}) {
        Team team(size);
        std::vector<std::int32_t> column(2 * LEAVES), children(4 * LEAVES);
        std::vector<std::uint8_t> most(2 * LEAVES);
        bool missing_left[2 * LEAVES];
        std::vector<double> bounds(2 * LEAVES);
        const TreeArrays arrays{column.data(), most.data(), missing_left, children.data(), bounds.data()};
        const SplitOptions options{order.data(), D, direction.data(), 1000.0, 1000.0};
        TreeGrowth(ByteColumns{words.data(), N, D, first.data()}, packed.data(), 1, options, arrays, team)
            .grow(held_out.data(), LEAVES);
        column.insert(column.end(), children.begin(), children.end());
        column.insert(column.end(), most.begin(), most.end());
        if (expected.empty()) expected = column;
        if (column != expected) return 1;
    }
    return 0;
}

int main() {
    const int wrong = wrong_loops() + wrong_shared_teams() + wrong_trees();
    std::printf("%d wrong\n", wrong);
    return wrong != 0;
}
