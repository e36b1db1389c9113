// What each level of instructions offers: plain functions over plain arrays. The arrays were checked before they come
// here. Sizes: n rows, d columns, k classes; `pad` is k rounded up to the width of a row of a packed
// table: 2, 4, 8, 12 or 16.
#pragma once

#include <cstddef>
#include <cstdint>

namespace calibayes {

using Int = std::int64_t;

constexpr Int TILE = 8;        // groups of columns whose tables are in the nearest cache at a time
constexpr Int SPAN = 512;      // groups whose entries are found at a time
constexpr Int STRETCH = 1024;  // rows of levels that are taken at a time
constexpr Int WIDEST = 16;     // classes that are taken at a time
constexpr Int WIDTHS = 5;      // packed rows of 2, 4, 8, 12 or 16 numbers
constexpr Int BESIDE = 16;     // numbers that are added side by side; the scratch of kernel sums has so many for each step
constexpr Int ROWS = 64;       // rows of numbers, or whose posterior is, taken at a time; its scratch has 2 * ROWS * k numbers

// Odd widths are slow: what is stored across the lines of a cache is slow to be read again.
constexpr Int padded(Int k) { return k <= 2 ? 2 : (k + 3) / 4 * 4; }
constexpr Int width(Int pad) { return pad / 4; }  // its place among the widths

constexpr int TALLIED = 8;  // levels that are told apart at a time
constexpr int NARROW = 3;  // int8, int16, int32

enum Type { INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64, TYPES };

// Rows of codes, `stride` entries apart.
struct Codes {
    const void* data;
    Int stride, n, d;
    Type type;
};

// Columns taken together: group p holds columns p, p + groups, p + 2 * groups, ...; the entry of a group is the number
// whose digits are the entries of its columns. A code that is no level is the last digit of a column that has such.
// N is the type of such numbers: bytes where no group has more cells.
template <class N>
struct Groups {
    Int groups, members;
    const N* last;               // last digit of each column, (members * groups)
    const N* digits;             // how many digits it has, what the digits before it are multiplied with
    const std::uint32_t* first;  // where each group begins in the packed table, (groups,)
};

// Sums over labeled rows: weight, error, soft error, log loss.
struct Scores {
    double weight, error, soft_error, log_loss;
};

struct Assessment {
    double objective;
    Scores train, held_out;
};

template <class X>
struct Numbers {
    const X* data;
    Int stride, n, d;
};

// Sparse rows: row r has entries start[r] to start[r + 1].
template <class C>
struct Sparse {
    const double* data;
    const C* column;
    const Int* start;
    Int n;
};

// From the entries of one row to those of the next. Rows must not lie a power of two apart: the caches of processors
// have but a few ways for such.
constexpr Int LINE = SPAN + 16;

// Rows by the entries of their groups, LINE numbers a row.
template <class N>
struct Grouped {
    // The entries of groups `from` to `to` of some rows; whether a code was beyond the last digit of its column.
    bool (*entries[TYPES])(const Codes&, const Int* rows, Int n, const Groups<N>&, Int from, Int to, N* entries);
    // For a tile of groups, which begin at `first` in a packed table: sums of cells, sums of weights in cells.
    void (*gather[WIDTHS])(const N* entries, const std::uint32_t* first, Int n, Int tile, const double* table,
                           double* sums);
    void (*scatter[WIDTHS])(const N* entries, const std::uint32_t* first, Int n, Int tile, const double* weights,
                            double* table);
    void (*scatter_one)(const N* entries, const std::uint32_t* first, Int n, Int tile, Int pad, const Int* own,
                        const double* weight, double* table);
};

struct Kernels {
    const char* name;
    // Largest code of each column, negative ones and NaN counting as the largest there is.
    void (*top[TYPES])(const Codes&, std::uint64_t* top);
    // Codes in a narrower signed type, -1 for what is none of `levels` (d,); the same largest codes are told.
    void (*narrow[NARROW][TYPES])(const Codes&, const std::uint32_t* levels, void* narrow, std::uint64_t* top);
    // How many of some rows have each of 1 to 8 levels from `from` on, added to (levels, d). Codes of one byte.
    void (*tally[TALLIED])(const Codes&, const Int* rows, Int n, std::uint8_t from, std::uint32_t* counts);
    Grouped<std::uint8_t> by_bytes;
    Grouped<std::uint32_t> by_words;
    // Posterior, weights Y - (1 - generative) P (null: not wanted; 0 where no larger than `decided`) and scores of rows with joint log densities (n, k).
    Assessment (*assess)(const double* log_joint, Int n, Int k, const Int* labels, const double* weight,
                         const double* held_out, double generative, double decided, double* weights, double* scratch);
    void (*normalize)(const double* log_joint, Int n, Int k, double* log_posterior, double* evidence,
                      double* scratch);
    // Sums over columns of ((x - mean) * root)^2 for rows without a gap, of that + term over known columns for the others;
    // `gaps` says which. mean, root, term are packed, (d, K).
    void (*distances32[WIDTHS])(const Numbers<float>&, const double* mean, const double* root, const double* term,
                                double* sums, std::uint8_t* gaps);
    void (*distances64[WIDTHS])(const Numbers<double>&, const double* mean, const double* root, const double* term,
                                double* sums, std::uint8_t* gaps);
    // Weighted sums of powers of x - center, 0, 1 and 2, each packed (d, K), added to what is there.
    void (*powers32[WIDTHS])(const Numbers<float>&, const double* center, const double* weights, double* count,
                             double* first, double* second);
    void (*powers64[WIDTHS])(const Numbers<double>&, const double* center, const double* weights, double* count,
                             double* first, double* second);
    // The same for rows of one class each, `own`; each sum is (k, d).
    void (*own_powers32)(const Numbers<float>&, const double* center, const Int* own, const double* weight,
                         double* count, double* first, double* second);
    void (*own_powers64)(const Numbers<double>&, const double* center, const Int* own, const double* weight,
                         double* count, double* first, double* second);
    // Least and largest of at least one number, both NaN where there is a NaN.
    void (*ends32)(const Numbers<float>&, double* low, double* high);
    void (*ends64)(const Numbers<double>&, double* low, double* high);
    // Logs of products of densities between grid points, and sums of weights at the points; tables are packed (cells, K).
    void (*binned_sums[WIDTHS])(const Numbers<double>&, const Int* points, const Int* start, const double* density,
                                const double* log_scale, double* sums);
    void (*binned_counts[WIDTHS])(const Numbers<double>&, const Int* points, const Int* start, const double* weights,
                                  double* table);
    void (*sparse_sums32)(const Sparse<std::int32_t>&, const double* table, Int d, Int k, double* out);
    void (*sparse_sums64)(const Sparse<std::int64_t>&, const double* table, Int d, Int k, double* out);
    void (*sparse_totals32)(const Sparse<std::int32_t>&, const double* weights, Int d, Int k, double* table);
    void (*sparse_totals64)(const Sparse<std::int64_t>&, const double* weights, Int d, Int k, double* table);
    void (*largest)(const double* rows, Int n, Int k, Int* which);
    // Sums of kernels exp(-scale (away - nearest)) by class, (steps, n, k), and the nearest of each row: of squared distances
    // (n, m), those of class c from ends[c] on; from step to step kernels are squared gaps[step] times.
    void (*kernel_sums)(const double* away, Int n, Int m, const double* weight, const Int* ends, Int k, double scale,
                        const Int* gaps, Int steps, double* sums, double* nearest, double* lanes);
};

const Kernels& chosen();
const Kernels* level(int number);  // null behind the last
int choose(int number);            // whether the processor has it

}  // namespace calibayes
