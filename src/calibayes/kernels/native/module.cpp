// Python interface: arrays are checked here, and the GIL is released while kernels run.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <stdexcept>

#include "looking.hpp"
#include "numbers.hpp"

namespace nb = nanobind;
using calibayes::Int;

template <class T, int N>
using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using Out = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

static void demand(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

static calibayes::Type type_of(nb::dlpack::dtype given) {
    using namespace calibayes;
    const auto code = static_cast<nb::dlpack::dtype_code>(given.code);
    const bool plain = given.lanes == 1, whole = code == nb::dlpack::dtype_code::Int,
               positive = code == nb::dlpack::dtype_code::UInt, number = code == nb::dlpack::dtype_code::Float;
    if (plain && (whole || positive)) {
        if (given.bits == 8) return positive ? UINT8 : INT8;
        if (given.bits == 16) return positive ? UINT16 : INT16;
        if (given.bits == 32) return positive ? UINT32 : INT32;
        if (given.bits == 64) return positive ? UINT64 : INT64;
    }
    if (plain && number && given.bits == 32) return FLOAT32;
    if (plain && number && given.bits == 64) return FLOAT64;
    throw std::invalid_argument("codes are whole numbers, or flags as floats");
}

static calibayes::Codes codes_of(const Table& codes) {
    demand(codes.shape(0) == 0 || codes.shape(1) < 2 || codes.stride(1) == 1, "the cells of a row must lie side by side");
    return {codes.data(), codes.stride(0), static_cast<Int>(codes.shape(0)), static_cast<Int>(codes.shape(1)),
            type_of(codes.dtype())};
}

// Number of levels of each column from the first cells of all, which must ascend from 0.
static std::vector<std::uint32_t> levels_of(const In<Int, 1>& first, Int d) {
    demand(static_cast<Int>(first.shape(0)) == d + 1 && first.data()[0] == 0, "one first cell a column, from 0 on");
    std::vector<std::uint32_t> levels(static_cast<std::size_t>(d));
    for (Int j = 0; j < d; ++j) {
        const Int own = first.data()[j + 1] - first.data()[j];
        demand(own >= 0 && own < (Int(1) << 30), "first cells must ascend");
        levels[j] = static_cast<std::uint32_t>(own);
    }
    demand((first.data()[d] + d) * calibayes::WIDEST * 2 < (Int(1) << 32), "too many cells");
    return levels;
}

static void look_up(Table codes, In<double, 2> table, In<Int, 1> first, Out<double, 2> out) {
    const auto rows = codes_of(codes);
    const auto levels = levels_of(first, rows.d);
    const Int k = table.shape(0), cells = first.data()[rows.d];
    demand(static_cast<Int>(table.shape(1)) == cells, "a table of all cells");
    demand(static_cast<Int>(out.shape(0)) == rows.n && static_cast<Int>(out.shape(1)) == k, "a result (n, k)");
    nb::gil_scoped_release free;
    calibayes::look_up(rows, levels, table.data(), k, first.data(), cells, out.data());
}

static void weighted_counts(Table codes, In<double, 2> weights, In<Int, 1> first, Out<double, 2> out) {
    const auto rows = codes_of(codes);
    const auto levels = levels_of(first, rows.d);
    const Int k = weights.shape(1), cells = first.data()[rows.d];
    demand(static_cast<Int>(weights.shape(0)) == rows.n, "weights of all rows");
    demand(static_cast<Int>(out.shape(0)) == k && static_cast<Int>(out.shape(1)) == cells, "a result (k, cells)");
    nb::gil_scoped_release free;
    calibayes::weighted_counts(rows, levels, weights.data(), k, first.data(), cells, out.data());
}

static void top(Table codes, Out<std::uint64_t, 1> out) {
    const auto rows = codes_of(codes);
    demand(static_cast<Int>(out.shape(0)) == rows.d, "a result (d,)");
    nb::gil_scoped_release free;
    calibayes::chosen().top[rows.type](rows, out.data());
}

static void narrow(Table codes, In<std::uint32_t, 1> levels, nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu> out,
                   Out<std::uint64_t, 1> top) {
    const auto rows = codes_of(codes);
    const auto type = type_of(out.dtype());
    demand(type == calibayes::INT8 || type == calibayes::INT16 || type == calibayes::INT32, "signed codes");
    const int which = type == calibayes::INT8 ? 0 : type == calibayes::INT16 ? 1 : 2;
    const Int most = (Int(1) << (8 * (1 << which) - 1));
    demand(static_cast<Int>(out.shape(0)) == rows.n && static_cast<Int>(out.shape(1)) == rows.d, "a result (n, d)");
    demand(static_cast<Int>(levels.shape(0)) == rows.d && static_cast<Int>(top.shape(0)) == rows.d, "levels (d,)");
    for (Int j = 0; j < rows.d; ++j) demand(levels.data()[j] <= most, "more levels than the type has codes");
    nb::gil_scoped_release free;
    calibayes::chosen().narrow[which][rows.type](rows, levels.data(), out.data(), top.data());
}

static std::vector<double> scratch_of(Int k) {
    return std::vector<double>(static_cast<std::size_t>(2 * calibayes::ROWS * k));
}

static nb::tuple as_tuple(const calibayes::Scores& scores) {
    return nb::make_tuple(scores.weight, scores.error, scores.soft_error, scores.log_loss);
}

static nb::tuple assess(In<double, 2> log_joint, In<Int, 1> labels, In<double, 1> weight, In<double, 1> held_out,
                        double generative, double decided, std::optional<Out<double, 2>> weights) {
    const std::size_t n = log_joint.shape(0), k = log_joint.shape(1);
    demand(k > 0 && labels.shape(0) == n && weight.shape(0) == n && held_out.shape(0) == n, "as many of all as rows");
    demand(!weights || (weights->shape(0) == n && weights->shape(1) == k), "weights (n, k)");
    calibayes::Assessment found;
    {
        nb::gil_scoped_release free;
        auto scratch = scratch_of(static_cast<Int>(k));
        found = calibayes::chosen().assess(log_joint.data(), n, k, labels.data(), weight.data(), held_out.data(),
                                           generative, decided, weights ? weights->data() : nullptr, scratch.data());
    }
    return nb::make_tuple(found.objective, as_tuple(found.train), as_tuple(found.held_out));
}

static std::optional<nb::tuple> look(Table codes, In<double, 2> table, In<Int, 1> first, In<double, 1> log_prior,
                                     In<Int, 1> labels, In<double, 1> weight, In<double, 1> held_out,
                                     double generative, double decided, Out<double, 2> counts,
                                     Out<double, 1> classes) {
    const auto rows = codes_of(codes);
    const auto levels = levels_of(first, rows.d);
    const Int k = table.shape(0), cells = first.data()[rows.d];
    const std::size_t n = rows.n;
    demand(k > 0 && static_cast<Int>(table.shape(1)) == cells, "a table of all cells");
    demand(static_cast<Int>(log_prior.shape(0)) == k && static_cast<Int>(classes.shape(0)) == k, "a prior (k,)");
    demand(labels.shape(0) == n && weight.shape(0) == n && held_out.shape(0) == n, "as many of all as rows");
    demand(static_cast<Int>(counts.shape(0)) == k && static_cast<Int>(counts.shape(1)) == cells, "counts (k, cells)");
    calibayes::Assessment found;
    bool done;
    {
        nb::gil_scoped_release free;
        const calibayes::Looked at{rows,          table.data(),    log_prior.data(), k,          first.data(), cells,
                                   labels.data(), weight.data(), held_out.data(),  generative, decided};
        done = calibayes::look(levels, at, counts.data(), classes.data(), found);
    }
    if (!done) return std::nullopt;
    return nb::make_tuple(found.objective, as_tuple(found.train), as_tuple(found.held_out));
}

static void normalize(In<double, 2> log_joint, Out<double, 2> log_posterior, Out<double, 1> evidence) {
    const std::size_t n = log_joint.shape(0), k = log_joint.shape(1);
    demand(k > 0 && log_posterior.shape(0) == n && log_posterior.shape(1) == k && evidence.shape(0) == n,
           "results (n, k) and (n,)");
    nb::gil_scoped_release free;
    auto scratch = scratch_of(static_cast<Int>(k));
    calibayes::chosen().normalize(log_joint.data(), n, k, log_posterior.data(), evidence.data(), scratch.data());
}

static void largest(In<double, 2> rows, Out<Int, 1> which) {
    demand(rows.shape(1) > 0 && which.shape(0) == rows.shape(0), "a result (n,)");
    nb::gil_scoped_release free;
    calibayes::chosen().largest(rows.data(), rows.shape(0), rows.shape(1), which.data());
}

static void kernel_sums(In<double, 2> away, In<double, 1> weight, In<Int, 1> ends, double scale, In<Int, 1> gaps,
                        Out<double, 3> sums, Out<double, 1> nearest) {
    const Int n = away.shape(0), m = away.shape(1), k = static_cast<Int>(ends.shape(0)) - 1, steps = gaps.shape(0);
    demand(m > 0 && weight.shape(0) == away.shape(1), "a weight for each distance, and at least one");
    demand(k >= 0 && ends.data()[0] == 0 && ends.data()[k] == m, "ends of classes from 0 to the last distance");
    for (Int c = 0; c < k; ++c) demand(ends.data()[c] <= ends.data()[c + 1], "ends of classes must ascend");
    for (Int step = 0; step < steps; ++step) demand(gaps.data()[step] >= 0, "kernels are squared 0 times or more");
    demand(static_cast<Int>(sums.shape(0)) == steps && static_cast<Int>(sums.shape(1)) == n &&
               static_cast<Int>(sums.shape(2)) == k && static_cast<Int>(nearest.shape(0)) == n,
           "results (steps, n, k) and (n,)");
    std::vector<double> lanes(static_cast<std::size_t>(steps * calibayes::BESIDE));
    nb::gil_scoped_release free;
    calibayes::chosen().kernel_sums(away.data(), n, m, weight.data(), ends.data(), k, scale, gaps.data(), steps,
                                    sums.data(), nearest.data(), lanes.data());
}

template <class X>
static calibayes::Numbers<X> numbers_of(const Table& x) {
    const auto rows = codes_of(x);
    return {static_cast<const X*>(rows.data), rows.stride, rows.n, rows.d};
}

static void diagonal_gaussian(Table x, In<double, 2> mean, In<double, 2> variance, Out<double, 2> out) {
    const std::size_t k = mean.shape(0), d = x.shape(1);
    demand(mean.shape(1) == d && variance.shape(0) == k && variance.shape(1) == d, "means and variances (k, d)");
    demand(out.shape(0) == x.shape(0) && out.shape(1) == k, "a result (n, k)");
    const auto type = type_of(x.dtype());
    demand(type == calibayes::FLOAT32 || type == calibayes::FLOAT64, "numbers are float32 or float64");
    nb::gil_scoped_release free;
    if (type == calibayes::FLOAT32)
        calibayes::diagonal_gaussian(numbers_of<float>(x), mean.data(), variance.data(), k, out.data());
    else
        calibayes::diagonal_gaussian(numbers_of<double>(x), mean.data(), variance.data(), k, out.data());
}

static void power_sums(Table x, In<double, 1> center, In<double, 2> weights, Out<double, 3> out) {
    const std::size_t k = weights.shape(1), d = x.shape(1);
    demand(center.shape(0) == d && weights.shape(0) == x.shape(0), "a center (d,) and weights (n, k)");
    demand(out.shape(0) == 3 && out.shape(1) == k && out.shape(2) == d, "a result (3, k, d)");
    const auto type = type_of(x.dtype());
    demand(type == calibayes::FLOAT32 || type == calibayes::FLOAT64, "numbers are float32 or float64");
    double *zero = out.data(), *one = zero + k * d, *two = one + k * d;
    nb::gil_scoped_release free;
    std::fill(zero, two + k * d, 0.0);
    if (type == calibayes::FLOAT32)
        calibayes::power_sums(numbers_of<float>(x), center.data(), weights.data(), k, zero, one, two);
    else
        calibayes::power_sums(numbers_of<double>(x), center.data(), weights.data(), k, zero, one, two);
}

static nb::tuple ends(Table x) {
    const auto type = type_of(x.dtype());
    demand(type == calibayes::FLOAT32 || type == calibayes::FLOAT64, "numbers are float32 or float64");
    demand(x.shape(0) > 0 && x.shape(1) > 0, "at least one number");
    double low, high;
    {
        nb::gil_scoped_release free;
        if (type == calibayes::FLOAT32)
            calibayes::chosen().ends32(numbers_of<float>(x), &low, &high);
        else
            calibayes::chosen().ends64(numbers_of<double>(x), &low, &high);
    }
    return nb::make_tuple(low, high);
}

// Checks that every column has at least two points and two cells more than points.
static void demand_grids(const In<Int, 1>& points, const In<Int, 1>& first, std::size_t d) {
    demand(points.shape(0) == d && first.shape(0) == d + 1 && first.data()[0] == 0, "points and first cells of columns");
    for (std::size_t j = 0; j < d; ++j)
        demand(points.data()[j] >= 2 && first.data()[j + 1] - first.data()[j] == points.data()[j] + 2,
               "two cells behind the points of a grid");
}

static void binned_sums(Table x, In<Int, 1> points, In<double, 2> table, In<Int, 1> first, Out<double, 2> out) {
    const std::size_t d = x.shape(1), k = table.shape(0);
    demand_grids(points, first, d);
    demand(type_of(x.dtype()) == calibayes::FLOAT64, "positions are float64");
    demand(static_cast<Int>(table.shape(1)) == first.data()[d], "a table of all cells");
    demand(out.shape(0) == x.shape(0) && out.shape(1) == k, "a result (n, k)");
    nb::gil_scoped_release free;
    calibayes::binned_sums(numbers_of<double>(x), points.data(), first.data(), table.data(), k, out.data());
}

static void binned_counts(Table x, In<Int, 1> points, In<double, 2> weights, In<Int, 1> first, Out<double, 2> out) {
    const std::size_t d = x.shape(1), k = weights.shape(1);
    demand_grids(points, first, d);
    demand(type_of(x.dtype()) == calibayes::FLOAT64, "positions are float64");
    demand(weights.shape(0) == x.shape(0), "weights of all rows");
    demand(out.shape(0) == k && static_cast<Int>(out.shape(1)) == first.data()[d], "a result (k, cells)");
    nb::gil_scoped_release free;
    calibayes::binned_counts(numbers_of<double>(x), points.data(), first.data(), weights.data(), k, out.data());
}

// CSR rows, after a check that the entries of every row exist.
template <class C>
static calibayes::Sparse<C> sparse_of(const In<double, 1>& data, const In<C, 1>& column, const In<Int, 1>& start) {
    const Int n = static_cast<Int>(start.shape(0)) - 1, stored = static_cast<Int>(data.shape(0));
    demand(n >= 0 && data.shape(0) == column.shape(0), "as many columns as cells");
    demand(start.data()[0] >= 0 && start.data()[n] <= stored, "rows begin and end among the cells");
    for (Int r = 0; r < n; ++r) demand(start.data()[r] <= start.data()[r + 1], "rows begin and end in order");
    return {data.data(), column.data(), start.data(), n};
}

template <class C>
static void sparse_sums(In<double, 1> data, In<C, 1> column, In<Int, 1> start, In<double, 2> table, Out<double, 2> out) {
    const auto x = sparse_of<C>(data, column, start);
    const Int d = table.shape(0), k = table.shape(1);
    demand(static_cast<Int>(out.shape(0)) == x.n && static_cast<Int>(out.shape(1)) == k, "a result (n, k)");
    nb::gil_scoped_release free;
    if constexpr (sizeof(C) == 4)
        calibayes::chosen().sparse_sums32(x, table.data(), d, k, out.data());
    else
        calibayes::chosen().sparse_sums64(x, table.data(), d, k, out.data());
}

template <class C>
static void sparse_totals(In<double, 1> data, In<C, 1> column, In<Int, 1> start, In<double, 2> weights,
                          Out<double, 2> out) {
    const auto x = sparse_of<C>(data, column, start);
    const Int d = out.shape(0), k = out.shape(1);
    demand(static_cast<Int>(weights.shape(0)) == x.n && static_cast<Int>(weights.shape(1)) == k, "weights (n, k)");
    nb::gil_scoped_release free;
    if constexpr (sizeof(C) == 4)
        calibayes::chosen().sparse_totals32(x, weights.data(), d, k, out.data());
    else
        calibayes::chosen().sparse_totals64(x, weights.data(), d, k, out.data());
}

// Sum of log x! over the cells of each row: from a table if x is a small integer.
static void log_factorials(In<double, 1> data, In<Int, 1> start, In<double, 1> small, Out<double, 1> out) {
    const auto x = sparse_of<double>(data, data, start);
    demand(static_cast<Int>(out.shape(0)) == x.n, "a result (n,)");
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
    m.def("look_up", look_up, nb::arg("codes").noconvert(), nb::arg("table").noconvert(),
          nb::arg("first").noconvert(), nb::arg("out").noconvert());
    m.def("weighted_counts", weighted_counts, nb::arg("codes").noconvert(), nb::arg("weights").noconvert(),
          nb::arg("first").noconvert(), nb::arg("out").noconvert());
    m.def("top", top, nb::arg("codes").noconvert(), nb::arg("out").noconvert());
    m.def("narrow", narrow, nb::arg("codes").noconvert(), nb::arg("levels").noconvert(), nb::arg("out").noconvert(),
          nb::arg("top").noconvert());
    m.def("assess", assess, nb::arg("log_joint").noconvert(), nb::arg("labels").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("held_out").noconvert(), nb::arg("generative"),
          nb::arg("decided"), nb::arg("weights").none());
    m.def("look", look, nb::arg("codes").noconvert(), nb::arg("table").noconvert(), nb::arg("first").noconvert(),
          nb::arg("log_prior").noconvert(), nb::arg("labels").noconvert(), nb::arg("weight").noconvert(),
          nb::arg("held_out").noconvert(), nb::arg("generative"), nb::arg("decided"), nb::arg("counts").noconvert(),
          nb::arg("classes").noconvert());
    m.def("normalize", normalize, nb::arg("log_joint").noconvert(), nb::arg("log_posterior").noconvert(),
          nb::arg("evidence").noconvert());
    m.def("largest", largest, nb::arg("rows").noconvert(), nb::arg("which").noconvert());
    m.def("kernel_sums", kernel_sums, nb::arg("away").noconvert(), nb::arg("weight").noconvert(),
          nb::arg("ends").noconvert(), nb::arg("scale"), nb::arg("gaps").noconvert(), nb::arg("sums").noconvert(),
          nb::arg("nearest").noconvert());
    m.doc() = "The native kernels; `calibayes.kernels` calls them.";
    m.def("diagonal_gaussian", diagonal_gaussian, nb::arg("x").noconvert(), nb::arg("mean").noconvert(),
          nb::arg("variance").noconvert(), nb::arg("out").noconvert());
    m.def("power_sums", power_sums, nb::arg("x").noconvert(), nb::arg("center").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("out").noconvert());
    m.def("ends", ends, nb::arg("x").noconvert());
    m.def("binned_sums", binned_sums, nb::arg("x").noconvert(), nb::arg("points").noconvert(),
          nb::arg("table").noconvert(), nb::arg("first").noconvert(), nb::arg("out").noconvert());
    m.def("binned_counts", binned_counts, nb::arg("x").noconvert(), nb::arg("points").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("first").noconvert(), nb::arg("out").noconvert());
    m.def("sparse_sums", sparse_sums<std::int32_t>, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("sparse_sums", sparse_sums<std::int64_t>, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("sparse_totals", sparse_totals<std::int32_t>, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("sparse_totals", sparse_totals<std::int64_t>, nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("log_factorials", log_factorials, nb::arg("data").noconvert(), nb::arg("start").noconvert(),
          nb::arg("small").noconvert(), nb::arg("out").noconvert());
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
