// All kernels for one instruction set, CALIBAYES_LEVEL. This file is compiled once for each. It must not instantiate
// standard library functions: the linker would share them, compiled for this instruction set, with the others.
#include "grids.hpp"
#include "level_tables.hpp"
#include "gaussian.hpp"
#include "left_out.hpp"
#include "kernel_sums.hpp"
#include "node_sums.hpp"
#include "posterior.hpp"
#include "product_sums.hpp"
#include "sparse.hpp"
#include "tree_walk.hpp"
#include "column_sweeps.hpp"
#include "level_comparison.hpp"

#define CALIBAYES_NAME_(level) #level
#define CALIBAYES_NAME(level) CALIBAYES_NAME_(level)

namespace calibayes {
namespace CALIBAYES_LEVEL {

#define CALIBAYES_ALL_TYPES(f)                                                                              \
    {f<std::int8_t>, f<std::uint8_t>, f<std::int16_t>, f<std::uint16_t>, f<std::int32_t>, f<std::uint32_t>, \
     f<std::int64_t>, f<std::uint64_t>, f<float>, f<double>}
#define CALIBAYES_ALL_WIDTHS(f) {f<2>, f<4>, f<8>, f<12>, f<16>}

template <class N>
constexpr Grouped<N> grouped() {
    return {CALIBAYES_ALL_TYPES(Rows<N>::template entries), CALIBAYES_ALL_WIDTHS(Rows<N>::template gather),
            CALIBAYES_ALL_WIDTHS(Rows<N>::template scatter), Rows<N>::scatter_one};
}

const Kernels& kernels() {
    static constexpr Kernels all = {
        CALIBAYES_NAME(CALIBAYES_LEVEL),
        CALIBAYES_ALL_TYPES(top_of),
        {CALIBAYES_ALL_TYPES(narrow8), CALIBAYES_ALL_TYPES(narrow16), CALIBAYES_ALL_TYPES(narrow32)},
        {tally<1>, tally<2>, tally<3>, tally<4>, tally<5>, tally<6>, tally<7>, tally<8>},
        grouped<std::uint8_t>(),
        grouped<std::uint32_t>(),
        assess,
        normalize,
        CALIBAYES_ALL_WIDTHS(distances32),
        CALIBAYES_ALL_WIDTHS(distances64),
        CALIBAYES_ALL_WIDTHS(powers32),
        CALIBAYES_ALL_WIDTHS(powers64),
        own_powers<float>,
        own_powers<double>,
        centered_rows<float, float>,
        centered_rows<float, double>,
        centered_rows<double, double>,
        scaled_rows<float>,
        scaled_rows<double>,
        squared_lengths<float>,
        squared_lengths<double>,
        ends<float>,
        ends<double>,
        left_out_shares<float>,
        left_out_shares<double>,
        CALIBAYES_ALL_WIDTHS(binned_sums),
        CALIBAYES_ALL_WIDTHS(binned_counts),
        sparse_sums<std::int32_t>,
        sparse_sums<std::int64_t>,
        sparse_totals<std::int32_t>,
        sparse_totals<std::int64_t>,
        largest,
        kernel_sums,
        kernel_sums_around,
        product_sums,
        {node_sums<0>, node_sums<1>, node_sums<2>, node_sums<3>, node_sums<4>, node_sums<5>, node_sums<6>, node_sums<7>,
         node_sums<8>},
        masked_leaves<std::uint32_t, std::int32_t>,
        masked_leaves<std::uint64_t, std::int64_t>,
        known_moments,
        sample_flags,
    };
    return all;
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
