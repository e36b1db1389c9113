// Interface of the kernels of one instruction set: functions over raw arrays, which `module.cpp` has checked. Sizes:
// n rows, d columns, k classes; `pad` is k rounded up to the width of a row of a packed table: 2, 4, 8, 12 or 16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace calibayes {

using Int = std::int64_t;

constexpr Int TILE = 8;        // groups of columns whose tables fit into the L1 cache together
constexpr Int SPAN = 512;      // groups whose entries are computed at a time
constexpr Int FEW = 64;        // most groups whose entries are stored without space between rows
constexpr Int REPEATED = 64;   // rows whose entries are computed at a time, for few groups
// Largest distance between the entries of consecutive rows. It must not be a power of two, for which cache associativity
// is too low.
constexpr Int LINE = SPAN + 16;
constexpr Int STRETCH = 1024;  // rows of levels processed at a time
constexpr Int WIDEST = 16;     // most classes processed at a time
constexpr Int WIDTHS = 5;      // number of widths of packed rows: 2, 4, 8, 12 or 16 numbers
constexpr Int MOST_SQUARINGS = 64;  // a number from 0 to 1 is 0 or 1 after so many squarings
constexpr int TOGETHER = 8;    // rows whose distances to centers are computed together
constexpr Int CENTERS = 128;  // centers of product kernels processed at a time
constexpr Int BESIDE = 16;     // lanes of kernel sums; their scratch has this many numbers per step
constexpr Int ROWS = 64;       // rows of numbers or posteriors processed at a time; the scratch of posteriors has 2 * ROWS * k numbers

constexpr Int SHARES = 32;     // columns whose shares of variances are multiplied: 1e-6 to this power is no underflow

// Other widths are slow: loads after stores that cross cache lines stall.
constexpr Int padded(Int k) { return k <= 2 ? 2 : (k + 3) / 4 * 4; }
constexpr Int width(Int pad) { return pad / 4; }  // index of the width

constexpr Int BINS = 256;       // codes of a byte

// Sums of packed numbers; numbers that are too large for any table wrap around.
inline Int added(Int a, Int b) { return static_cast<Int>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)); }
inline Int reduced(Int a, Int b) { return static_cast<Int>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)); }
inline Int shifted(Int a) { return static_cast<Int>(static_cast<std::uint64_t>(a) << 32); }

// A number without its fraction; 0 if it is missing or too large for an integer.
inline Int whole(double x) { return x > -9.2e18 && x < 9.2e18 ? static_cast<Int>(x) : 0; }

constexpr int AT_ONCE = 9;      // numbers of classes with a kernel of their own, for 1 to 8 classes; kernel 0 is for more

constexpr int TALLIED = 8;  // most levels counted at a time by `tally`
constexpr int NARROW = 3;  // number of code types: int8, int16, int32

enum Type { INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64, TYPES };

// Rows of codes, `stride` entries from one row to the next.
struct Codes {
    const void* data;
    Int stride, n, d;
    Type type;
};

// Groups of columns: group p has columns p, p + groups, p + 2 * groups, ...; the entry of a group is the number whose
// digits are the codes of its columns. A code that is no level is the last digit of a column that contains such codes.
// N is the type of these numbers: bytes if no group has more cells.
template <class N>
struct Groups {
    Int groups, members;
    const N* last;               // last digit of each column, (members * groups)
    const N* digits;             // number of digits of each column, by which the digits before it are multiplied
    const std::uint32_t* first;  // first cell of each group in the packed table, (groups,)
    Int line;                    // distance between the entries of consecutive rows
    const N* repeated;           // `last` REPEATED times, for few groups of one column each; else null
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

// CSR rows: row r has entries start[r] to start[r + 1].
template <class C>
struct Sparse {
    const double* data;
    const C* column;
    const Int* start;
    Int n;
};

// Kernels over the entries of groups, `line` numbers per row.
template <class N>
struct Grouped {
    // Writes the entries of groups `from` to `to` of given rows; returns whether a code exceeded the last digit of its column.
    bool (*entries[TYPES])(const Codes&, const Int* rows, Int n, const Groups<N>&, Int from, Int to, N* entries);
    // For a tile of groups whose cells begin at `first` in a packed table: sums of table entries, and sums of weights per cell.
    void (*gather[WIDTHS])(const N* entries, Int line, const std::uint32_t* first, Int n, Int tile, const double* table,
                           double* sums);
    void (*scatter[WIDTHS])(const N* entries, Int line, const std::uint32_t* first, Int n, Int tile, const double* weights,
                            double* table);
    void (*scatter_one)(const N* entries, Int line, const std::uint32_t* first, Int n, Int tile, Int pad, const Int* own,
                        const double* weight, double* table);
};

// Smallest and largest of the numbers that are not NaN, and sums of their differences from a pivot and of the squares of
// these.
struct KnownMoments {
    double low, high, sum, squares;
};

// The hash by which distinct numbers are sampled. It is static so that each instruction set has its own.
static inline std::uint64_t sample_hash(double x) {
    std::uint64_t word;
    std::memcpy(&word, &x, sizeof word);
    word *= 0x9E3779B97F4A7C15u;
    return (word ^ (word >> 29)) * 0x9E3779B97F4A7C15u;
}

// Moments of classes, (k, d) each; see `left_out_shares`.
struct LeftOutTables {
    const double *mean, *scale, *inverse, *least;
};

// Centers (d, m) with weights (m,), and rows (n, d) around which their kernels are summed; `own` is the center of which one
// copy is left out, or negative. The kernel of a column has the exponent scale * gap^2, with one scale for its own sum and one
// for pairs, (2, d); `levels` (2, d) are the kernels of an equal and of another level, 0 for numbers. `shapes` (p, 3) are the
// exponents of x^2, xy, y^2 of a pair with a full bandwidth matrix; NaN for products of kernels.
struct ProductKernels {
    const double *rows, *centers, *weights, *scales, *levels, *shapes;
    const Int *own, *pairs;
    Int n, d, m, p;
};

// A split of a tree: codes from `lowest` to `lowest + range` go left, and others keep the leaves of `kept`.
struct MaskedSplit {
    std::uint64_t kept;
    std::int32_t column;
    std::uint8_t lowest, range;
};

// The splits of a tree in any order, and the numbers of its leaves from left to right.
struct MaskedTree {
    const MaskedSplit* first;
    Int splits;
    const std::int8_t* leaves;
};

struct Kernels {
    const char* name;
    // Largest code of each column; negative codes and NaN count as the largest unsigned number.
    void (*top[TYPES])(const Codes&, std::uint64_t* top);
    // Codes in a narrower signed type, -1 for those outside `levels` (d,), and the largest codes as in `top`.
    void (*narrow[NARROW][TYPES])(const Codes&, const std::uint32_t* levels, void* narrow, std::uint64_t* top);
    // Adds the number of given rows with each of 1 to 8 levels from `from` on to (levels, d). Codes of one byte.
    void (*tally[TALLIED])(const Codes&, const Int* rows, Int n, std::uint8_t from, std::uint32_t* counts);
    Grouped<std::uint8_t> by_bytes;
    Grouped<std::uint32_t> by_words;
    // Scores, and class weights weight * (Y - (1 - generative) P), of rows with joint log densities (n, k). Class weights of
    // at most `decided` are 0; they are not computed if `weights` is null.
    Assessment (*assess)(const double* log_joint, Int n, Int k, const Int* labels, const double* weight,
                         const double* held_out, double generative, double decided, double* weights, double* scratch);
    void (*normalize)(const double* log_joint, Int n, Int k, double* log_posterior, double* evidence,
                      double* scratch);
    // Sums over columns of ((x - mean) * root)^2 for rows without missing values; of that + term over the known columns for
    // the others, which `gaps` marks. mean, root, term are packed, (d, K).
    void (*distances32[WIDTHS])(const Numbers<float>&, const double* mean, const double* root, const double* term,
                                double* sums, std::uint8_t* gaps);
    void (*distances64[WIDTHS])(const Numbers<double>&, const double* mean, const double* root, const double* term,
                                double* sums, std::uint8_t* gaps);
    // Adds the weighted sums of the powers 0, 1 and 2 of x - center to packed sums, (d, K) each.
    void (*powers32[WIDTHS])(const Numbers<float>&, const double* center, const double* weights, double* count,
                             double* first, double* second);
    void (*powers64[WIDTHS])(const Numbers<double>&, const double* center, const double* weights, double* count,
                             double* first, double* second);
    // The same for rows with one class each, `own`; sums are (k, d) each.
    void (*own_powers32)(const Numbers<float>&, const double* center, const Int* own, const double* weight,
                         double* count, double* first, double* second);
    void (*own_powers64)(const Numbers<double>&, const double* center, const Int* own, const double* weight,
                         double* count, double* first, double* second);
    // Rows minus a center; given rows minus a center, times the root of their absolute weight, whose weighted sums are added to
    // `first`; sums of squares of rows, `step` numbers apart.
    void (*centered32_32)(const Numbers<float>&, const double* center, float* out);
    void (*centered32_64)(const Numbers<float>&, const double* center, double* out);
    void (*centered64_64)(const Numbers<double>&, const double* center, double* out);
    void (*scaled_rows32)(const Numbers<float>&, const Int* rows, const double* weight, const double* root,
                          const double* center, double* first, double* out);
    void (*scaled_rows64)(const Numbers<double>&, const Int* rows, const double* weight, const double* root,
                          const double* center, double* first, double* out);
    void (*squared_lengths32)(const float* rows, Int n, Int d, Int step, double* out);
    void (*squared_lengths64)(const double* rows, Int n, Int d, Int step, double* out);
    // Minimum and maximum of at least one number, both NaN if there is a NaN.
    void (*ends32)(const Numbers<float>&, double* low, double* high);
    void (*ends64)(const Numbers<double>&, double* low, double* high);
    // With z = (x - mean)^2 * scale and share = 1 - z + change * inverse for the class of each row, `own`: the sum of
    // z / share over the columns, -1 if a share is below the least, and products of shares over SHARES columns.
    void (*left_out_shares32)(const Numbers<float>&, const LeftOutTables&, const Int* own, const double* change, Int groups,
                              double* distance, double* product);
    void (*left_out_shares64)(const Numbers<double>&, const LeftOutTables&, const Int* own, const double* change, Int groups,
                              double* distance, double* product);
    // Sums of log densities interpolated between grid points, and sums of weights per cell; tables are packed, (cells, K).
    void (*binned_sums[WIDTHS])(const Numbers<double>&, const Int* points, const Int* start, const double* density,
                                const double* log_scale, double* sums);
    void (*binned_counts[WIDTHS])(const Numbers<double>&, const Int* points, const Int* start, const double* weights,
                                  double* table);
    void (*sparse_sums32)(const Sparse<std::int32_t>&, const double* table, Int d, Int k, double* out);
    void (*sparse_sums64)(const Sparse<std::int64_t>&, const double* table, Int d, Int k, double* out);
    void (*sparse_totals32)(const Sparse<std::int32_t>&, const double* weights, Int d, Int k, double* table);
    void (*sparse_totals64)(const Sparse<std::int64_t>&, const double* weights, Int d, Int k, double* table);
    void (*largest)(const double* rows, Int n, Int k, Int* which);
    // Sums of kernels exp(-scale (away - nearest)) by class, (steps, n, k), and the smallest `away` of each row. `away` are
    // squared distances (n, m), those of class c from ends[c] to ends[c + 1]; kernels are squared gaps[step] times before
    // each step.
    void (*kernel_sums)(const double* away, Int n, Int m, const double* weight, const Int* ends, Int k, double scale,
                        const Int* gaps, Int steps, double* sums, double* nearest, double* lanes);
    void (*kernel_sums_around)(const double* rows, Int n, Int d, const double* factor, Int m, const double* weight,
                               const Int* ends, Int k, double scale, const Int* gaps, Int steps, double* sums,
                               double* nearest, double* lanes, double* away);
    void (*product_sums)(const ProductKernels&, double* single, double* pairs, double* scratch);
    // Adds the numbers (m, k) of given rows to the sums of the first columns of a word, (columns, BINS, k).
    void (*node_sums[AT_ONCE])(const std::uint64_t* words, const std::int32_t* rows, Int m, const Int* packed, Int k,
                               int columns, Int* sums);
    // The leaves of up to ROWS rows with codes (d, ROWS) in a tree of at most 32, or 64, leaves.
    void (*masked_leaves32)(const MaskedTree&, const std::uint8_t* codes, Int many, std::int8_t* out, Int stride);
    void (*masked_leaves64)(const MaskedTree&, const std::uint8_t* codes, Int many, std::int8_t* out, Int stride);
    KnownMoments (*known_moments)(const double* x, Int n, double pivot);
    // Which numbers have a hash of at most `bound`, 1 or 0.
    void (*sample_flags)(const double* x, Int n, std::uint64_t bound, std::uint8_t* flags);
};

// Rows with log scores (n, k), class codes and weights.
struct LabeledScores {
    const double* scores;
    const std::int32_t* labels;
    const double* weight;
    Int n, k, step;  // the weight of row r is weight[r * step]: one number may be that of all rows
};

// Kernels whose results have the same bits on every processor; the scratch has 2 * ROWS * k numbers.
struct ExactKernels {
    // Adds the log factors (leaves, k) of the leaf of each row to its log scores.
    void (*add_factors)(const double* factors, const std::int8_t* codes, Int n, Int k, double* scores);
    // Packed residuals and variances of the last `packed_classes` of k classes, rounded by fractions of 2^-32 of each row.
    void (*packed_residuals)(const LabeledScores&, double scale, const std::uint32_t* fractions, Int packed_classes, Int* packed,
                             double* scratch);
    // Adds to sums (3, leaves, k), in units of 1 / scale: residuals and variances of rows that are not held out, and weights of
    // all rows by class.
    void (*leaf_sums)(const LabeledScores&, const std::int8_t* codes, const std::uint8_t* held_out, Int leaves, double scale, Int* sums,
                      double* scratch);
    // The sum of the log losses of held-out rows, each at most `most`, in units of 1 / scale.
    Int (*whole_loss)(const LabeledScores&, const std::uint8_t* held_out, double scale, double most, double* scratch);
};

const Kernels& chosen();
const ExactKernels& chosen_exact();
const Kernels* level(int number);  // null after the last
int choose(int number);            // whether the processor supports it

}  // namespace calibayes
