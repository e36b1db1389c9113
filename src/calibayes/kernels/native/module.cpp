// Python interface: `checks.hpp` checks the arrays, and the GIL is released while kernels run.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "checks.hpp"
#include "gaussian_module.hpp"
#include "fused_pass.hpp"
#include "level_pairs.hpp"
#include "number_loops.hpp"
#include "summary_module.hpp"
#include "tree_module.hpp"

namespace nb = nanobind;
using namespace calibayes::checks;
using calibayes::chosen;
using calibayes::Int;
using calibayes::Type;

static void look_up(Table codes, In<double, 2> table, In<Int, 1> first, Out<double, 2> out) {
    const auto rows = some_columns(codes);
    const auto levels = levels_of(first, rows.d);
    const Int k = classes_of(table, 0), cells = first.data()[rows.d];
    demand_shape(table, "a table of all cells (k, cells)", {k, cells});
    demand_shape(out, "the result (n, k)", {rows.n, k});
    nb::gil_scoped_release free;
    calibayes::look_up(rows, levels, table.data(), k, first.data(), cells, out.data());
}

static void weighted_counts(Table codes, In<double, 2> weights, In<Int, 1> first, Out<double, 2> out) {
    const auto rows = some_columns(codes);
    const auto levels = levels_of(first, rows.d);
    const Int k = classes_of(weights, 1), cells = first.data()[rows.d];
    demand_shape(weights, "weights (n, k)", {rows.n, k});
    demand_shape(out, "the result (k, cells)", {k, cells});
    nb::gil_scoped_release free;
    calibayes::weighted_counts(rows, levels, weights.data(), k, first.data(), cells, out.data());
}

static void top(Table codes, Out<std::uint64_t, 1> out) {
    const auto rows = codes_of(codes);
    demand_shape(out, "the result (d,)", {rows.d});
    nb::gil_scoped_release free;
    chosen().top[rows.type](rows, out.data());
}

static void narrow(Table codes, In<std::uint32_t, 1> levels,
                   nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu> out, Out<std::uint64_t, 1> top) {
    const auto rows = codes_of(codes);
    const auto type = type_of(out.dtype());
    demand(type == Type::INT8 || type == Type::INT16 || type == Type::INT32, "the result must be int8, int16 or int32");
    const int which = type == Type::INT8 ? 0 : type == Type::INT16 ? 1 : 2;
    const Int most = (Int(1) << (8 * (1 << which) - 1));
    demand_shape(out, "the result (n, d)", {rows.n, rows.d});
    demand_shape(levels, "numbers of levels (d,)", {rows.d});
    demand_shape(top, "largest codes (d,)", {rows.d});
    for (Int j = 0; j < rows.d; ++j) demand(levels.data()[j] <= most, "more levels than the result has codes");
    nb::gil_scoped_release free;
    chosen().narrow[which][rows.type](rows, levels.data(), out.data(), top.data());
}

static std::vector<double> scratch_of(Int k) {
    return std::vector<double>(static_cast<std::size_t>(2 * calibayes::ROWS * k));
}

static nb::tuple as_tuple(const calibayes::Scores& scores) {
    return nb::make_tuple(scores.weight, scores.error, scores.soft_error, scores.log_loss);
}

static nb::tuple assess(In<double, 2> log_joint, In<Int, 1> labels, In<double, 1> weight, In<double, 1> held_out,
                        double generative, double decided, std::optional<Out<double, 2>> weights) {
    const Int n = log_joint.shape(0), k = classes_of(log_joint, 1);
    demand_aligned(log_joint, "log joint densities (n, k)");
    demand_shape(labels, "labels (n,)", {n});
    demand_shape(weight, "weights of training rows (n,)", {n});
    demand_shape(held_out, "weights of held-out rows (n,)", {n});
    if (weights) demand_shape(*weights, "class weights (n, k)", {n, k});
    calibayes::Assessment found;
    {
        nb::gil_scoped_release free;
        auto scratch = scratch_of(k);
        found = chosen().assess(log_joint.data(), n, k, labels.data(), weight.data(), held_out.data(), generative,
                                decided, weights ? weights->data() : nullptr, scratch.data());
    }
    return nb::make_tuple(found.objective, as_tuple(found.train), as_tuple(found.held_out));
}

static std::optional<nb::tuple> fused_pass(Table codes, In<double, 2> table, In<Int, 1> first, In<double, 1> log_prior,
                                     In<Int, 1> labels, In<double, 1> weight, In<double, 1> held_out,
                                     double generative, double decided, Out<double, 2> counts,
                                     Out<double, 1> classes) {
    const auto rows = some_columns(codes);
    const auto levels = levels_of(first, rows.d);
    const Int n = rows.n, k = classes_of(table, 0), cells = first.data()[rows.d];
    demand_shape(table, "a table of all cells (k, cells)", {k, cells});
    demand_shape(log_prior, "log prior (k,)", {k});
    demand_shape(labels, "labels (n,)", {n});
    demand_shape(weight, "weights of training rows (n,)", {n});
    demand_shape(held_out, "weights of held-out rows (n,)", {n});
    demand_shape(counts, "counts (k, cells)", {k, cells});
    demand_shape(classes, "sums of classes (k,)", {k});
    calibayes::Assessment found;
    bool done;
    {
        nb::gil_scoped_release free;
        const calibayes::FusedInput at{rows,          table.data(),  log_prior.data(), k,          first.data(), cells,
                        labels.data(), weight.data(), held_out.data(),  generative, decided};
        done = calibayes::fused_pass(levels, at, counts.data(), classes.data(), found);
    }
    if (!done) return std::nullopt;
    return nb::make_tuple(found.objective, as_tuple(found.train), as_tuple(found.held_out));
}

static void normalize(In<double, 2> log_joint, Out<double, 2> log_posterior, Out<double, 1> evidence) {
    const Int n = log_joint.shape(0), k = classes_of(log_joint, 1);
    demand_aligned(log_joint, "log joint densities (n, k)");
    demand_shape(log_posterior, "the result (n, k)", {n, k});
    demand_shape(evidence, "the result (n,)", {n});
    nb::gil_scoped_release free;
    auto scratch = scratch_of(k);
    chosen().normalize(log_joint.data(), n, k, log_posterior.data(), evidence.data(), scratch.data());
}

static void largest(In<double, 2> rows, Out<Int, 1> which) {
    const Int n = rows.shape(0), k = classes_of(rows, 1);
    demand_aligned(rows, "rows (n, k)");
    demand_shape(which, "the result (n,)", {n});
    nb::gil_scoped_release free;
    chosen().largest(rows.data(), n, k, which.data());
}

// Checks what all kernel sums have in common, for n rows and m centers; returns scratch for their lanes.
static std::vector<double> checked_kernels(Int n, Int m, const In<double, 1>& weight, const In<Int, 1>& ends,
                                           double scale, const In<Int, 1>& gaps, const Out<double, 3>& sums,
                                           const Out<double, 1>& nearest) {
    const Int k = static_cast<Int>(ends.shape(0)) - 1, steps = gaps.shape(0);
    demand(m > 0, "expected at least one distance in each row");
    demand(scale >= 0.0 && scale <= std::numeric_limits<double>::max(), "the scale must be 0 or positive, and finite");
    demand_shape(weight, "a weight for each distance (m,)", {m});
    demand_aligned(ends, "ends of classes (k + 1,)");
    demand(k > 0 && ends.data()[0] == 0 && ends.data()[k] == m,
           "ends of classes must go from 0 to the number of distances");
    for (Int c = 0; c < k; ++c) demand(ends.data()[c] <= ends.data()[c + 1], "ends of classes must ascend");
    demand_aligned(gaps, "numbers of squarings (steps,)");
    for (Int step = 0; step < steps; ++step)
        demand(gaps.data()[step] >= 0 && gaps.data()[step] <= calibayes::MOST_SQUARINGS,
               "kernels must be squared 0 to 64 times");
    demand_shape(sums, "results (steps, n, k)", {steps, n, k});
    demand_shape(nearest, "results (n,)", {n});
    return std::vector<double>(static_cast<std::size_t>(steps * calibayes::BESIDE));
}

static void kernel_sums(In<double, 2> away, In<double, 1> weight, In<Int, 1> ends, double scale, In<Int, 1> gaps,
                        Out<double, 3> sums, Out<double, 1> nearest) {
    const Int n = away.shape(0), m = away.shape(1);
    demand_aligned(away, "squared distances (n, m)");
    auto lanes = checked_kernels(n, m, weight, ends, scale, gaps, sums, nearest);
    const Int k = static_cast<Int>(ends.shape(0)) - 1, steps = gaps.shape(0);
    nb::gil_scoped_release free;
    chosen().kernel_sums(away.data(), n, m, weight.data(), ends.data(), k, scale, gaps.data(), steps, sums.data(),
                         nearest.data(), lanes.data());
}

static void kernel_sums_around(In<double, 2> rows, In<double, 2> factor, In<double, 1> weight, In<Int, 1> ends,
                               double scale, In<Int, 1> gaps, Out<double, 3> sums, Out<double, 1> nearest) {
    const Int n = rows.shape(0), d = rows.shape(1), m = factor.shape(1);
    demand_aligned(rows, "rows (n, d)");
    demand_shape(factor, "the factor of the centers (d + 2, m)", {d + 2, m});
    auto lanes = checked_kernels(n, m, weight, ends, scale, gaps, sums, nearest);
    const Int k = static_cast<Int>(ends.shape(0)) - 1, steps = gaps.shape(0);
    std::vector<double> away(static_cast<std::size_t>(m) * calibayes::TOGETHER);
    nb::gil_scoped_release free;
    chosen().kernel_sums_around(rows.data(), n, d, factor.data(), m, weight.data(), ends.data(), k, scale, gaps.data(),
                                steps, sums.data(), nearest.data(), lanes.data(), away.data());
}

static void product_sums(In<double, 2> rows, In<Int, 1> own, In<double, 2> centers, In<double, 1> weights,
                         In<double, 2> scales, In<double, 2> levels, In<Int, 2> pairs, In<double, 2> shapes,
                         Out<double, 2> single, Out<double, 2> twice) {
    const Int n = rows.shape(0), d = rows.shape(1), m = centers.shape(1), p = pairs.shape(1);
    demand(d < MOST_SIZE && m < MOST_SIZE && p < MOST_SIZE, "expected fewer than 2^31 columns, centers and pairs");
    demand_aligned(rows, "rows (n, d)");
    demand_shape(own, "own centers (n,)", {n});
    demand_shape(centers, "centers (d, m)", {d, m});
    demand_shape(weights, "weights (m,)", {m});
    demand_shape(scales, "scales (2, d)", {2, d});
    demand_shape(levels, "kernels of levels (2, d)", {2, d});
    demand_shape(pairs, "pairs (2, p)", {2, p});
    demand_shape(shapes, "shapes (p, 3)", {p, 3});
    demand_shape(single, "sums of columns (n, d)", {n, d});
    demand_shape(twice, "sums of pairs (n, p)", {n, p});
    for (Int q = 0; q < 2 * p; ++q) demand(pairs.data()[q] >= 0 && pairs.data()[q] < d, "pairs must be two columns");
    std::vector<double> scratch(static_cast<std::size_t>(2 * d * calibayes::CENTERS + 8 * (d + p)));
    const calibayes::ProductKernels of{rows.data(),   centers.data(), weights.data(), scales.data(), levels.data(),
                                       shapes.data(), own.data(),     pairs.data(),   n,             d,
                                       m,             p};
    nb::gil_scoped_release free;
    chosen().product_sums(of, single.data(), twice.data(), scratch.data());
}

static void power_sums(Table x, In<double, 1> center, In<double, 2> weights, Out<double, 3> out) {
    const auto rows = numbers_of(x);
    const Int k = classes_of(weights, 1), d = rows.d;
    demand_shape(center, "a center (d,)", {d});
    demand_shape(weights, "weights (n, k)", {rows.n, k});
    demand_shape(out, "the result (3, k, d)", {3, k, d});
    double *zero = out.data(), *one = zero + k * d, *two = one + k * d;
    nb::gil_scoped_release free;
    std::fill(zero, two + k * d, 0.0);
    if (rows.type == Type::FLOAT32)
        calibayes::power_sums(numbers_as<float>(rows), center.data(), weights.data(), k, zero, one, two);
    else
        calibayes::power_sums(numbers_as<double>(rows), center.data(), weights.data(), k, zero, one, two);
}

static nb::tuple ends(Table x) {
    const auto rows = numbers_of(x);
    demand(rows.n > 0, "expected at least one row");
    double low, high;
    {
        nb::gil_scoped_release free;
        if (rows.type == Type::FLOAT32)
            chosen().ends32(numbers_as<float>(rows), &low, &high);
        else
            chosen().ends64(numbers_as<double>(rows), &low, &high);
    }
    return nb::make_tuple(low, high);
}

static void binned_sums(Table x, In<Int, 1> points, In<double, 2> table, In<Int, 1> first, Out<double, 2> out) {
    const auto rows = numbers_of(x);
    const Int k = classes_of(table, 0);
    demand(rows.type == Type::FLOAT64, "positions must be float64");
    demand_grids(points, first, rows.d);
    demand_shape(table, "a table of all cells (k, cells)", {k, first.data()[rows.d]});
    demand_shape(out, "the result (n, k)", {rows.n, k});
    nb::gil_scoped_release free;
    calibayes::binned_sums(numbers_as<double>(rows), points.data(), first.data(), table.data(), k, out.data());
}

static void binned_counts(Table x, In<Int, 1> points, In<double, 2> weights, In<Int, 1> first, Out<double, 2> out) {
    const auto rows = numbers_of(x);
    const Int k = classes_of(weights, 1);
    demand(rows.type == Type::FLOAT64, "positions must be float64");
    demand_grids(points, first, rows.d);
    demand_shape(weights, "weights (n, k)", {rows.n, k});
    demand_shape(out, "the result (k, cells)", {k, first.data()[rows.d]});
    nb::gil_scoped_release free;
    calibayes::binned_counts(numbers_as<double>(rows), points.data(), first.data(), weights.data(), k, out.data());
}

template <class C>
static void sparse_sums(In<double, 1> data, In<C, 1> column, In<Int, 1> start, In<double, 2> table, Out<double, 2> out) {
    const auto x = sparse_of<C>(data, column, start);
    const Int d = table.shape(0), k = table.shape(1);
    demand_aligned(table, "a table (d, k)");
    demand_shape(out, "the result (n, k)", {x.n, k});
    nb::gil_scoped_release free;
    if constexpr (sizeof(C) == 4)
        chosen().sparse_sums32(x, table.data(), d, k, out.data());
    else
        chosen().sparse_sums64(x, table.data(), d, k, out.data());
}

template <class C>
static void sparse_totals(In<double, 1> data, In<C, 1> column, In<Int, 1> start, In<double, 2> weights,
                          Out<double, 2> out) {
    const auto x = sparse_of<C>(data, column, start);
    const Int d = out.shape(0), k = out.shape(1);
    demand_shape(weights, "weights (n, k)", {x.n, k});
    demand_aligned(out, "the result (d, k)");
    nb::gil_scoped_release free;
    if constexpr (sizeof(C) == 4)
        chosen().sparse_totals32(x, weights.data(), d, k, out.data());
    else
        chosen().sparse_totals64(x, weights.data(), d, k, out.data());
}

// Sum of log x! over the cells of each row: from a table if x is a small integer.
static void log_factorials(In<double, 1> data, In<Int, 1> start, In<double, 1> small, Out<double, 1> out) {
    const auto x = sparse_of<double>(data, data, start);
    demand_aligned(small, "log factorials of small integers");
    demand_shape(out, "the result (n,)", {x.n});
    const double most = static_cast<double>(small.shape(0));
    nb::gil_scoped_release free;
    for (Int r = 0; r < x.n; ++r) {
        double sum = 0.0;
        for (Int i = x.start[r]; i < x.start[r + 1]; ++i) {
            const double value = x.data[i];
            const bool known = value >= 0.0 && value < most && value == static_cast<double>(static_cast<Int>(value));
            sum += known ? small.data()[static_cast<Int>(value)] : std::lgamma(value + 1.0);
        }
        out.data()[r] = sum;
    }
}

static std::vector<const char*> names() {
    std::vector<const char*> found;
    for (int number = 0; const auto* kernels = calibayes::level(number); ++number) found.push_back(kernels->name);
    return found;
}

NB_MODULE(_native, m) {
    m.def("look_up", apart<look_up>, nb::arg("codes").noconvert(), nb::arg("table").noconvert(),
          nb::arg("first").noconvert(), nb::arg("out").noconvert());
    m.def("weighted_counts", apart<weighted_counts>, nb::arg("codes").noconvert(), nb::arg("weights").noconvert(),
          nb::arg("first").noconvert(), nb::arg("out").noconvert());
    m.def("top", apart<top>, nb::arg("codes").noconvert(), nb::arg("out").noconvert());
    m.def("narrow", apart<narrow>, nb::arg("codes").noconvert(), nb::arg("levels").noconvert(), nb::arg("out").noconvert(),
          nb::arg("top").noconvert());
    m.def("assess", apart<assess>, nb::arg("log_joint").noconvert(), nb::arg("labels").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("held_out").noconvert(), nb::arg("generative"),
          nb::arg("decided"), nb::arg("weights").noconvert().none());
    m.def("fused_pass", apart<fused_pass>, nb::arg("codes").noconvert(), nb::arg("table").noconvert(), nb::arg("first").noconvert(),
          nb::arg("log_prior").noconvert(), nb::arg("labels").noconvert(), nb::arg("weight").noconvert(),
          nb::arg("held_out").noconvert(), nb::arg("generative"), nb::arg("decided"), nb::arg("counts").noconvert(),
          nb::arg("classes").noconvert());
    m.def("normalize", apart<normalize>, nb::arg("log_joint").noconvert(), nb::arg("log_posterior").noconvert(),
          nb::arg("evidence").noconvert());
    m.def("largest", apart<largest>, nb::arg("rows").noconvert(), nb::arg("which").noconvert());
    m.def("kernel_sums", apart<kernel_sums>, nb::arg("away").noconvert(), nb::arg("weight").noconvert(),
          nb::arg("ends").noconvert(), nb::arg("scale"), nb::arg("gaps").noconvert(), nb::arg("sums").noconvert(),
          nb::arg("nearest").noconvert());
    m.def("kernel_sums_around", apart<kernel_sums_around>, nb::arg("rows").noconvert(), nb::arg("factor").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("ends").noconvert(), nb::arg("scale"), nb::arg("gaps").noconvert(),
          nb::arg("sums").noconvert(), nb::arg("nearest").noconvert());
    m.def("product_sums", apart<product_sums>, nb::arg("rows").noconvert(), nb::arg("own").noconvert(),
          nb::arg("centers").noconvert(), nb::arg("weights").noconvert(), nb::arg("scales").noconvert(),
          nb::arg("levels").noconvert(), nb::arg("pairs").noconvert(), nb::arg("shapes").noconvert(),
          nb::arg("single").noconvert(), nb::arg("twice").noconvert());
    m.doc() = "The native kernels; `calibayes.kernels` calls them.";
    m.def("power_sums", apart<power_sums>, nb::arg("x").noconvert(), nb::arg("center").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("out").noconvert());
    m.def("ends", apart<ends>, nb::arg("x").noconvert());
    m.def("binned_sums", apart<binned_sums>, nb::arg("x").noconvert(), nb::arg("points").noconvert(),
          nb::arg("table").noconvert(), nb::arg("first").noconvert(), nb::arg("out").noconvert());
    m.def("binned_counts", apart<binned_counts>, nb::arg("x").noconvert(), nb::arg("points").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("first").noconvert(), nb::arg("out").noconvert());
    m.def("sparse_sums", apart<sparse_sums<std::int32_t>>, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("sparse_sums", apart<sparse_sums<std::int64_t>>, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("sparse_totals", apart<sparse_totals<std::int32_t>>, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("sparse_totals", apart<sparse_totals<std::int64_t>>, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("log_factorials", apart<log_factorials>, nb::arg("data").noconvert(), nb::arg("start").noconvert(),
          nb::arg("small").noconvert(), nb::arg("out").noconvert());
    calibayes::gaussians::define(m);
    calibayes::pairs::define(m);
    calibayes::summaries::define(m);
    calibayes::trees::define(m);
    m.def("level", [] { return calibayes::chosen().name; });
    m.def("levels", [] {
        nb::list found;
        for (const char* name : names()) found.append(name);
        return found;
    });
    m.def("choose", [](const std::string& name) {
        const auto all = names();
        for (std::size_t number = 0; number < all.size(); ++number)
            if (name == all[number]) return calibayes::choose(static_cast<int>(number)) == 1;
        return false;
    });
}
