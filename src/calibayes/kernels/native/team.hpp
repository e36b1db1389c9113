// A team of threads that share the items of loops, for loops of microseconds.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels.hpp"

namespace calibayes {

class Team {
public:
    explicit Team(Int size) {
        try {
            for (Int member = 1; member < size; ++member) threads_.emplace_back([this, member] { serve(member); });
        } catch (...) {  // no more threads: those that there are do the work
        }
    }

    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    ~Team() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            over_ = true;
            ++round_;
        }
        wake_.notify_all();
        for (auto& thread : threads_) thread.join();
    }

    Int size() const { return static_cast<Int>(threads_.size()) + 1; }

    // Memory that was left by `give`, or none.
    std::vector<Int> take() {
        const std::lock_guard<std::mutex> lock(spare_mutex_);
        std::vector<Int> memory;
        if (!spare_.empty()) {
            memory.swap(spare_.back());
            spare_.pop_back();
        }
        return memory;
    }

    // Leaves memory to whoever takes it next, such as the next tree.
    void give(std::vector<Int> memory) {
        const std::lock_guard<std::mutex> lock(spare_mutex_);
        spare_.push_back(std::move(memory));
    }

    // Calls work(item, member) once for each item from 0 to count - 1; `member` is the number of the thread. Threads that are not
    // running now are not waited for: the others take their items. The work must not throw.
    template <class Work>
    void each(Int count, const Work& work) {
        // A team that is in use, which can only be by another thread, leaves the loop to its caller.
        if (threads_.empty() || count < 2 || used_.exchange(true)) {
            for (Int item = 0; item < count; ++item) work(item, Int(0));
            return;
        }
        work_ = &work;
        call_ = [](const void* given, Int item, Int member) { (*static_cast<const Work*>(given))(item, member); };
        count_ = count;
        next_ = 0;
        done_ = 0;
        open_ = true;
        ++round_;
        if (asleep_ > 0) {
            const std::lock_guard<std::mutex> lock(mutex_);
            wake_.notify_all();
        }
        run(0);
        for (int turn = 0; done_ < count; ++turn) pause(turn);
        open_ = false;
        for (int turn = 0; inside_ > 0; ++turn) pause(turn);  // a thread that enters from now on finds it closed
        used_ = false;
    }

    // Calls work(begin, end, member) for parts of n rows, of at least `fewest` rows if there are several.
    template <class Work>
    void each_part(Int n, Int fewest, const Work& work) {
        const Int parts = size() == 1 ? 1 : std::max<Int>(1, std::min(n / fewest, 4 * size()));
        each(parts, [&](Int part, Int member) { work(n * part / parts, n * (part + 1) / parts, member); });
    }

private:
    static constexpr int PATIENCE = 4000;  // turns of waiting, some microseconds, before a thread sleeps

    static void pause(int turn) {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
        __builtin_ia32_pause();
#endif
        if (turn % 512 == 511) std::this_thread::yield();
    }

    void run(Int member) {
        for (Int item = next_++; item < count_; item = next_++) {
            call_(work_, item, member);
            ++done_;
        }
    }

    void serve(Int member) {
        std::uint64_t seen = 0;
        while (true) {
            for (int turn = 0; round_ == seen && turn < PATIENCE; ++turn) pause(turn);
            if (round_ == seen) {
                std::unique_lock<std::mutex> lock(mutex_);
                ++asleep_;
                wake_.wait(lock, [&] { return round_ != seen; });
                --asleep_;
            }
            seen = round_;
            if (over_) return;
            ++inside_;
            if (open_) run(member);
            --inside_;
        }
    }

    std::vector<std::thread> threads_;
    std::mutex mutex_, spare_mutex_;
    std::vector<std::vector<Int>> spare_;
    std::condition_variable wake_;
    std::atomic<std::uint64_t> round_{0};
    std::atomic<Int> next_{0}, done_{0}, inside_{0}, asleep_{0};
    std::atomic<bool> open_{false}, over_{false}, used_{false};
    const void* work_ = nullptr;
    void (*call_)(const void*, Int, Int) = nullptr;
    Int count_ = 0;
};

}  // namespace calibayes
