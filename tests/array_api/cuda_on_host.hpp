// Runs CUDA kernels on the host, for tests: the threads of a block are coroutines, which take turns at barriers.
#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)

struct Dim {
    unsigned x = 1, y = 1, z = 1;
};
static Dim threadIdx, blockIdx, blockDim, gridDim;
static std::vector<long long> shared_words;

// A barrier of threads: those that have arrived wait until all have.
struct Barrier {
    unsigned size = 0, arrived = 0, turn = 0;
};

struct Thread {
    ucontext_t context;  // at its beginning
    jmp_buf state;       // where it waits
    std::vector<char> stack;
    bool has_begun = false, is_over = false;
};

static jmp_buf scheduler;
static std::vector<Thread> threads;
static std::vector<Barrier> warps;
static std::vector<std::uint64_t> values;  // that the threads of a warp exchange
static Barrier block;
static std::function<void()> body;

static void wait_at(Barrier& barrier) {
    const unsigned turn = barrier.turn;
    if (++barrier.arrived == barrier.size) {
        barrier.arrived = 0;
        ++barrier.turn;
    }
    while (barrier.turn == turn)
        if (!_setjmp(threads[threadIdx.x].state)) _longjmp(scheduler, 1);
}

static void enter() {
    body();
    threads[threadIdx.x].is_over = true;
    _longjmp(scheduler, 1);
}

static void resume(Thread& thread) {
    if (_setjmp(scheduler)) return;
    if (thread.has_begun) _longjmp(thread.state, 1);
    thread.has_begun = true;
    setcontext(&thread.context);
}

// A thread that returns early must not keep others waiting: barriers count all threads, so that such a kernel hangs, and fails.
static bool run_block(unsigned size) {
    threads.resize(size);
    warps.assign((size + 31) / 32, Barrier());
    values.assign(size, 0);
    block = Barrier{size};
    for (unsigned i = 0; i < size; ++i) {
        ++warps[i / 32].size;
        threads[i].stack.resize(1 << 16);
        threads[i].has_begun = threads[i].is_over = false;
        getcontext(&threads[i].context);
        threads[i].context.uc_stack.ss_sp = threads[i].stack.data();
        threads[i].context.uc_stack.ss_size = threads[i].stack.size();
        threads[i].context.uc_link = nullptr;
        makecontext(&threads[i].context, enter, 0);
    }
    for (unsigned rounds = 0, left = size; left; ++rounds) {
        if (rounds > 1000000) return false;
        left = 0;
        for (unsigned i = 0; i < size; ++i) {
            if (threads[i].is_over) continue;
            threadIdx.x = i;
            resume(threads[i]);
            left += !threads[i].is_over;
        }
    }
    return true;
}

template <class... Types, std::size_t... Places>
static bool run(void (*kernel)(Types...), const unsigned* grid, unsigned size, std::size_t bytes, void** arguments,
                std::index_sequence<Places...>) {
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {size, 1, 1};
    shared_words.assign(bytes / 8 + 1, -1);
    body = [&] { kernel(*static_cast<Types*>(arguments[Places])...); };
    for (unsigned z = 0; z < grid[2]; ++z)
        for (unsigned y = 0; y < grid[1]; ++y)
            for (unsigned x = 0; x < grid[0]; ++x) {
                blockIdx = {x, y, z};
                if (!run_block(size)) return false;
            }
    return true;
}

template <class... Types>
static bool run_all(void (*kernel)(Types...), const unsigned* grid, unsigned size, std::size_t bytes, void** arguments) {
    return run(kernel, grid, size, bytes, arguments, std::index_sequence_for<Types...>());
}

#define LAUNCH(kernel)                                                                                             \
    extern "C" bool launch_##kernel(const unsigned* grid, unsigned size, std::size_t bytes, void** arguments) { \
        return run_all(kernel, grid, size, bytes, arguments);                                                     \
    }

static void __syncthreads() { wait_at(block); }

// A function of the values of the threads of the warp, given that of the thread itself.
template <class Number, class Function>
static Number exchanged(Number own, Function function) {
    const unsigned me = threadIdx.x, warp = me / 32;
    std::memcpy(&values[me], &own, sizeof(Number));
    wait_at(warps[warp]);
    const Number result = function([=](unsigned lane) {
        Number other;
        std::memcpy(&other, &values[warp * 32 + lane], sizeof(Number));
        return other;
    });
    wait_at(warps[warp]);
    return result;
}

template <class Number>
static Number __shfl_sync(unsigned, Number own, unsigned lane) {
    return exchanged(own, [=](auto of) { return of(lane); });
}
template <class Number>
static Number __shfl_up_sync(unsigned, Number own, unsigned step) {
    const unsigned me = threadIdx.x % 32;
    return exchanged(own, [=](auto of) { return of(me < step ? me : me - step); });
}
template <class Number>
static Number __shfl_xor_sync(unsigned, Number own, unsigned mask) {
    const unsigned me = threadIdx.x % 32;
    return exchanged(own, [=](auto of) { return of(me ^ mask); });
}
static unsigned __ballot_sync(unsigned, bool own) {
    return exchanged(unsigned(own), [](auto of) {
        unsigned all = 0;
        for (unsigned lane = 0; lane < 32; ++lane) all |= of(lane) << lane;
        return all;
    });
}

template <class Number, class Other>
static Number atomicAdd(Number* sum, Other number) {
    const Number before = *sum;
    *sum = before + static_cast<Number>(number);
    return before;
}

static int __popc(unsigned bits) { return __builtin_popcount(bits); }
static long long __double_as_longlong(double number) {
    long long bits;
    std::memcpy(&bits, &number, 8);
    return bits;
}
static double __longlong_as_double(long long bits) {
    double number;
    std::memcpy(&number, &bits, 8);
    return number;
}
using std::floor;
using std::isfinite;
