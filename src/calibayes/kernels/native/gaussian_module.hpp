// Python interface of the kernels for Gaussian densities of independent columns.
#pragma once

#include "checks.hpp"
#include "number_loops.hpp"

namespace calibayes {
namespace gaussians {

namespace nb = nanobind;
using namespace checks;

inline void diagonal_gaussian(Table x, In<double, 2> mean, In<double, 2> variance, Out<double, 2> out) {
    const auto rows = numbers_of(x);
    const Int k = classes_of(mean, 0);
    demand_shape(mean, "means (k, d)", {k, rows.d});
    demand_shape(variance, "variances (k, d)", {k, rows.d});
    demand_shape(out, "the result (n, k)", {rows.n, k});
    nb::gil_scoped_release free;
    if (rows.type == Type::FLOAT32)
        calibayes::diagonal_gaussian(numbers_as<float>(rows), mean.data(), variance.data(), k, out.data());
    else
        calibayes::diagonal_gaussian(numbers_as<double>(rows), mean.data(), variance.data(), k, out.data());
}

inline void left_out_shares(Table x, In<Int, 1> own, In<double, 2> mean, In<double, 2> scale, In<double, 2> inverse,
                            In<double, 2> least, In<double, 1> change, Out<double, 1> distance, Out<double, 2> product) {
    const auto rows = numbers_of(x);
    const Int k = classes_of(mean, 0), groups = (rows.d + SHARES - 1) / SHARES;
    demand_shape(own, "classes of rows (n,)", {rows.n});
    for (Int r = 0; r < rows.n; ++r)
        demand(own.data()[r] >= 0 && own.data()[r] < k, "the class of a row must be one of those with means");
    demand_shape(mean, "means (k, d)", {k, rows.d});
    demand_shape(scale, "factors of squares (k, d)", {k, rows.d});
    demand_shape(inverse, "inverse variances (k, d)", {k, rows.d});
    demand_shape(least, "least shares (k, d)", {k, rows.d});
    demand_shape(change, "changes of variances (n,)", {rows.n});
    demand_shape(distance, "the distances (n,)", {rows.n});
    demand_shape(product, "the products (n, groups of columns)", {rows.n, groups});
    const LeftOutTables tables{mean.data(), scale.data(), inverse.data(), least.data()};
    nb::gil_scoped_release free;
    if (rows.type == Type::FLOAT32)
        chosen().left_out_shares32(numbers_as<float>(rows), tables, own.data(), change.data(), groups, distance.data(),
                                   product.data());
    else
        chosen().left_out_shares64(numbers_as<double>(rows), tables, own.data(), change.data(), groups, distance.data(),
                                   product.data());
}

inline void define(nb::module_& m) {
    m.def("diagonal_gaussian", apart<diagonal_gaussian>, nb::arg("x").noconvert(), nb::arg("mean").noconvert(),
          nb::arg("variance").noconvert(), nb::arg("out").noconvert());
    m.def("left_out_shares", apart<left_out_shares>, nb::arg("x").noconvert(), nb::arg("own").noconvert(),
          nb::arg("mean").noconvert(), nb::arg("scale").noconvert(), nb::arg("inverse").noconvert(),
          nb::arg("least").noconvert(), nb::arg("change").noconvert(), nb::arg("distance").noconvert(),
          nb::arg("product").noconvert());
}

}  // namespace gaussians
}  // namespace calibayes
