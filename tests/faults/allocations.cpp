// Preloaded before libstdc++: the n-th `operator new` after `calibayes_fail_at(n)` throws std::bad_alloc, until
// `calibayes_stop()`, which returns the number of allocations since. Threads other than the one that asked are not counted.
#include <cstdlib>
#include <new>

namespace {
thread_local bool counting = false;
thread_local long made = 0, fails_at = 0;

void count() {
    if (counting && ++made == fails_at) throw std::bad_alloc();
}

void* given(void* memory) {
    if (!memory) throw std::bad_alloc();
    return memory;
}
}  // namespace

extern "C" void calibayes_fail_at(long n) { made = 0, fails_at = n, counting = true; }

extern "C" long calibayes_stop() {
    counting = false;
    return made;
}

void* operator new(std::size_t size) {
    count();
    return given(std::malloc(size ? size : 1));
}

void* operator new(std::size_t size, std::align_val_t alignment) {
    count();
    const std::size_t step = static_cast<std::size_t>(alignment);
    return given(std::aligned_alloc(step, (size + step - 1) / step * step));
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
