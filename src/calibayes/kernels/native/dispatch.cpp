// Selection of the instruction set ("level"): the best that the processor supports, unless `choose` selects another.
#include <atomic>

#include "kernels.hpp"

namespace calibayes {

namespace baseline { const Kernels& kernels(); }
namespace exact_baseline { const ExactKernels& exact_kernels(); }
#if defined(CALIBAYES_X86_LEVELS)
namespace avx2 { const Kernels& kernels(); }
namespace avx512 { const Kernels& kernels(); }
namespace exact_avx2 { const ExactKernels& exact_kernels(); }
namespace exact_avx512 { const ExactKernels& exact_kernels(); }
#endif

namespace {

constexpr int LEVELS = 3;

bool there(int number) {
    if (number == 0) return true;
#if defined(CALIBAYES_X86_LEVELS)
    __builtin_cpu_init();
    if (number == 1) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (number == 2)
        return there(1) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return false;
}

int best() {
    int number = LEVELS - 1;
    while (!there(number)) --number;
    return number;
}

std::atomic<int> current{best()};

}  // namespace

const Kernels* level(int number) {
    if (number < 0 || number >= LEVELS || !there(number)) return nullptr;
#if defined(CALIBAYES_X86_LEVELS)
    if (number == 1) return &avx2::kernels();
    if (number == 2) return &avx512::kernels();
#endif
    return &baseline::kernels();
}

const Kernels& chosen() { return *level(current.load(std::memory_order_relaxed)); }

const ExactKernels& chosen_exact() {
#if defined(CALIBAYES_X86_LEVELS)
    const int number = current.load(std::memory_order_relaxed);
    if (number == 1) return exact_avx2::exact_kernels();
    if (number == 2) return exact_avx512::exact_kernels();
#endif
    return exact_baseline::exact_kernels();
}

int choose(int number) {
    if (!level(number)) return 0;
    current.store(number);
    return 1;
}

}  // namespace calibayes
