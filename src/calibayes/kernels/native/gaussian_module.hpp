// Python interface of the kernels for Gaussian densities.
#pragma once

#include "checks.hpp"
#include "matrix_products.hpp"
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

// The function in a capsule of SciPy, `scipy.linalg.cython_blas.__pyx_capi__` or that of `cython_lapack`.
template <class Function>
Function blas_function(const nb::capsule& capsule) {
    demand(std::string(capsule.name() ? capsule.name() : "").rfind("void (char *", 0) == 0, "expected a BLAS function of SciPy");
    return reinterpret_cast<Function>(capsule.data());
}

using Factors = nb::ndarray<nb::ro, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

inline void class_log_densities(Table x, In<double, 2> mean, Factors factor, In<double, 1> offset, nb::capsule strmm,
                                nb::capsule dtrmm, Out<double, 2> out) {
    const auto rows = numbers_of(x);
    const Int k = classes_of(mean, 0);
    demand_shape(mean, "means (k, d)", {k, rows.d});
    demand_shape(factor, "factors (k, d, d)", {k, rows.d, rows.d});
    demand_shape(offset, "offsets (k,)", {k});
    demand_shape(out, "the result (n, k)", {rows.n, k});
    const auto type = type_of(factor.dtype());
    demand(type == Type::FLOAT64 || (type == Type::FLOAT32 && rows.type == Type::FLOAT32),
           "factors must be float64, or float32 like the rows");
    const auto single = blas_function<TriangularProduct<float>>(strmm);
    const auto twofold = blas_function<TriangularProduct<double>>(dtrmm);
    nb::gil_scoped_release free;
    if (type == Type::FLOAT32)
        calibayes::class_log_densities(numbers_as<float>(rows), mean.data(), static_cast<const float*>(factor.data()),
                                       offset.data(), k, single, out.data());
    else if (rows.type == Type::FLOAT32)
        calibayes::class_log_densities(numbers_as<float>(rows), mean.data(), static_cast<const double*>(factor.data()),
                                       offset.data(), k, twofold, out.data());
    else
        calibayes::class_log_densities(numbers_as<double>(rows), mean.data(), static_cast<const double*>(factor.data()),
                                       offset.data(), k, twofold, out.data());
}

inline void first_and_outer(Table x, In<double, 1> center, In<double, 2> weights, nb::capsule dsyrk, Out<double, 2> first,
                            Out<double, 3> second) {
    const auto rows = numbers_of(x);
    const Int k = classes_of(weights, 1);
    demand_shape(center, "the center (d,)", {rows.d});
    demand_shape(weights, "weights (n, k)", {rows.n, k});
    demand_shape(first, "the first moments (k, d)", {k, rows.d});
    demand_shape(second, "the second moments (k, d, d)", {k, rows.d, rows.d});
    const auto multiply = blas_function<SquareProduct>(dsyrk);
    nb::gil_scoped_release free;
    if (rows.type == Type::FLOAT32)
        calibayes::first_and_outer(numbers_as<float>(rows), center.data(), weights.data(), k, multiply, first.data(),
                                   second.data());
    else
        calibayes::first_and_outer(numbers_as<double>(rows), center.data(), weights.data(), k, multiply, first.data(),
                                   second.data());
}

inline void inverse_factors(In<double, 3> matrices, nb::capsule dpotrf, nb::capsule dtrtri, Team& team, Out<double, 3> inverse,
                            Out<double, 2> left, Out<Int, 1> failed) {
    const Int g = static_cast<Int>(matrices.shape(0)), d = static_cast<Int>(matrices.shape(1));
    demand(d > 0 && d < MOST_SIZE, "expected at least one column, and fewer than 2^31");
    demand_shape(matrices, "matrices (g, d, d)", {g, d, d});
    demand_shape(inverse, "their inverse factors (g, d, d)", {g, d, d});
    demand_shape(left, "variances (g, d)", {g, d});
    demand_shape(failed, "columns (g,)", {g});
    const auto factorize = blas_function<Factorization>(dpotrf);
    const auto invert = blas_function<TriangularInverse>(dtrtri);
    std::vector<double> scratch(static_cast<std::size_t>(2 * g * d));
    nb::gil_scoped_release free;
    team.each(g, [&](Int i, Int) {
        double *matrix = inverse.data() + i * d * d, *pivots = scratch.data() + 2 * i * d;
        std::copy(matrices.data() + i * d * d, matrices.data() + (i + 1) * d * d, matrix);
        failed.data()[i] = invert_factor(matrix, d, factorize, invert, left.data() + i * d, pivots, pivots + d);
    });
}

inline void define(nb::module_& m) {
    m.def("inverse_factors", apart<inverse_factors>, nb::arg("matrices").noconvert(), nb::arg("dpotrf"), nb::arg("dtrtri"),
          nb::arg("team"), nb::arg("inverse").noconvert(), nb::arg("left").noconvert(), nb::arg("failed").noconvert());
    m.def("class_log_densities", apart<class_log_densities>, nb::arg("x").noconvert(), nb::arg("mean").noconvert(),
          nb::arg("factor").noconvert(), nb::arg("offset").noconvert(), nb::arg("strmm"), nb::arg("dtrmm"),
          nb::arg("out").noconvert());
    m.def("first_and_outer", apart<first_and_outer>, nb::arg("x").noconvert(), nb::arg("center").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("dsyrk"), nb::arg("first").noconvert(), nb::arg("second").noconvert());
    m.def("diagonal_gaussian", apart<diagonal_gaussian>, nb::arg("x").noconvert(), nb::arg("mean").noconvert(),
          nb::arg("variance").noconvert(), nb::arg("out").noconvert());
    m.def("left_out_shares", apart<left_out_shares>, nb::arg("x").noconvert(), nb::arg("own").noconvert(),
          nb::arg("mean").noconvert(), nb::arg("scale").noconvert(), nb::arg("inverse").noconvert(),
          nb::arg("least").noconvert(), nb::arg("change").noconvert(), nb::arg("distance").noconvert(),
          nb::arg("product").noconvert());
}

}  // namespace gaussians
}  // namespace calibayes
