// Kernels with the same bits on every processor, for one instruction set, CALIBAYES_LEVEL. This file is compiled once for each,
// without fused multiply-add. It must not instantiate standard library functions, see `kernels.cpp`.
#include "tree_rounds.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

const ExactKernels& exact_kernels() {
    static constexpr ExactKernels all = {add_factors, packed_residuals, leaf_sums, whole_loss};
    return all;
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
