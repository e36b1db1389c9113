// The passes over rows of which the growth of trees consists. `tree_kernels.py` defines the constants in capital letters, and
// compiles this file without fused multiply-add: every number has the bits of NumPy's. Arrays by class are (k, n). The words of a
// row lie together in groups of `width`: (groups, n, width).

typedef long long Int;
typedef unsigned long long Word;

constexpr int BINS = 256, WORD = 8;
constexpr unsigned ALL = 0xffffffffu;

// -- Exponentials, logarithms and posteriors, operation by operation as in `calibayes.kernels.posterior`

__device__ double exact_exp(double x) {
    constexpr double series[] = EXP_SERIES;
    const double safe = x > LEAST_EXPONENT ? x : LEAST_EXPONENT;
    const double shifted = safe * LOG2_E + ROUND;
    const double m = shifted - ROUND;
    const double r = (safe - m * LOG2_HIGH) - m * LOG2_LOW;
    double p = series[0];
#pragma unroll
    for (int i = 1; i < sizeof(series) / sizeof(double); ++i) p = p * r + series[i];
    const Word bits = static_cast<Word>(__double_as_longlong(p)) + (static_cast<Word>(__double_as_longlong(shifted)) << 52);
    return x > LEAST_EXPONENT ? __longlong_as_double(static_cast<Int>(bits)) : 0.0;
}

__device__ double exact_log(double x) {
    constexpr double series[] = LOG_SERIES;
    const Int bits = __double_as_longlong(x), exponent = (bits - ROOT_OF_HALF) >> 52;
    const double y = __longlong_as_double(bits - (exponent << 52));
    const double f = (y - 1.0) / (y + 1.0), z = f * f;
    double p = series[0];
#pragma unroll
    for (int i = 1; i < sizeof(series) / sizeof(double); ++i) p = p * z + series[i];
    return static_cast<double>(exponent) * LOG2 + (2.0 * f + 2.0 * f * (z * p));
}

// The larger of two log scores; NaN if one of them is.
__device__ double larger(double top, double score) { return score > top || score != score ? score : top; }

// Posteriors of a row, from its log scores.
struct Posterior {
    const double* scores;  // of the row's first class
    Int n;
    double top, total;
    bool finite;

    __device__ Posterior(const double* of_row, Int n, int k) : scores(of_row), n(n), top(of_row[0]), total(0.0) {
        for (int c = 1; c < k; ++c) top = larger(top, scores[c * n]);
        finite = isfinite(top);
        total = exact_exp(shifted(0));
        for (int c = 1; c < k; ++c) total = total + exact_exp(shifted(c));
    }
    __device__ double shifted(int c) const { return finite ? scores[c * n] - top : 0.0; }
    __device__ double of(int c) const { return exact_exp(shifted(c)) / total; }
};

__device__ double variance_of(double posterior, int k) {
    return posterior * (1.0 - posterior) * (static_cast<double>(k) / static_cast<double>(k - 1));
}

__device__ Int whole(double x) { return static_cast<Int>(floor(x)); }

__device__ void add(Int* sum, Int number) { atomicAdd(reinterpret_cast<Word*>(sum), static_cast<Word>(number)); }

#define EACH_ROW(row, n) \
    for (Int row = blockIdx.x * static_cast<Int>(blockDim.x) + threadIdx.x; row < n; row += gridDim.x * static_cast<Int>(blockDim.x))

template <class Number>
__device__ Number sum_of_warp(Number own) {
    for (int step = 16; step; step /= 2) own += __shfl_xor_sync(ALL, own, step);
    return own;
}

// -- Residuals: packed numbers (c, n), 0 for rows that are not trained on

extern "C" __global__ void packed_residuals(const double* scores, const int* labels, const double* weight, const unsigned* fractions,
                                            const unsigned char* training, Int n, int k, double scale, Int* packed) {
    const int first = k == 2 ? 1 : 0;
    EACH_ROW(row, n) {
        if (!training[row]) {
            for (int c = first; c < k; ++c) packed[(c - first) * n + row] = 0;
            continue;
        }
        const Posterior posterior(scores + row, n, k);
        const double units = weight[row] * scale, rounding = static_cast<double>(fractions[row]) * TWO_TO_MINUS_32;
        const int label = labels[row];
        for (int c = first; c < k; ++c) {
            const double p = posterior.of(c);
            const Int residual = (c == label ? whole(units + rounding) : 0) - whole(p * units + rounding);
            packed[(c - first) * n + row] = residual * HALF + whole(variance_of(p, k) * units + rounding);
        }
    }
}

// -- Nodes: a request is a node's range of rows in one of two arrays (2, capacity), and how it is divided

struct Request {
    Int begin, end, source, group, place, shift, most, missing_left, summed;
};
enum { LEFT, RIGHT, BOTH };

__device__ bool goes_left(Word word, Int shift, Int most, Int missing_left) {
    const int code = static_cast<int>(word >> shift & (BINS - 1));
    return code ? code <= most : missing_left != 0;
}

// A block divides a stretch of a node's rows, into the same range of the other array: left rows from its beginning, right ones
// from its end. `blocks` (blocks, 3) are requests, parts and numbers of parts. Adds the numbers of left and of right rows.
extern "C" __global__ void divide(const Word* words, Int n, int width, int* rows, Int capacity, const Request* requests, const int* blocks,
                                  int* counts) {
    constexpr int EACH = STRETCH / DIVIDING;
    __shared__ int left_rows, left_at, right_at;
    const Request request = requests[blocks[3 * blockIdx.x]];
    const Int begin = request.begin + blocks[3 * blockIdx.x + 1] * static_cast<Int>(STRETCH);
    const Int end = begin + STRETCH < request.end ? begin + STRETCH : request.end;
    const int *from = rows + request.source * capacity, lane = threadIdx.x & 31;
    int* to = rows + (1 - request.source) * capacity;
    const Word* word = words + request.group * n * width + request.place;
    if (threadIdx.x == 0) left_rows = 0;
    __syncthreads();
    unsigned sides = 0;  // bit i: whether the thread's row i goes left
#pragma unroll 8
    for (int i = 0; i < EACH; ++i) {
        const Int at = begin + i * DIVIDING + threadIdx.x;
        if (at < end && goes_left(word[from[at] * static_cast<Int>(width)], request.shift, request.most, request.missing_left)) sides |= 1u << i;
    }
    atomicAdd(&left_rows, __popc(sides));
    __syncthreads();
    if (threadIdx.x == 0) {
        int* count = counts + 2 * blocks[3 * blockIdx.x];
        const int right_rows = static_cast<int>(end - begin) - left_rows;
        left_at = atomicAdd(count, left_rows);
        right_at = atomicAdd(count + 1, right_rows);
    }
    __syncthreads();
    for (int i = 0; i < EACH; ++i) {
        const Int at = begin + i * DIVIDING + threadIdx.x;
        const bool left = sides >> i & 1, right = at < end && !left;
        const unsigned lefts = __ballot_sync(ALL, left), rights = __ballot_sync(ALL, right), before = (1u << lane) - 1;
        int of_left = 0, of_right = 0;
        if (lane == 0) {
            of_left = atomicAdd(&left_at, __popc(lefts));
            of_right = atomicAdd(&right_at, __popc(rights));
        }
        of_left = __shfl_sync(ALL, of_left, 0) + __popc(lefts & before);
        of_right = __shfl_sync(ALL, of_right, 0) + __popc(rights & before);
        if (left) to[request.begin + of_left] = from[at];
        if (right) to[request.end - 1 - of_right] = from[at];
    }
}

// Adds to sums (requests, 2, cells, classes) those of a part of the rows of the summed child; the block's group of words is
// blockIdx.y, its class blockIdx.z. Parts are so small that sums of a block have 32 bits. Threads that add to the same number
// wait for each other: the most frequent code of each column is left out, whose sums are what the others leave of the total, and a
// column of few codes has several sums of each, for neighboring threads. `common` (groups, width) are frequent codes.
extern "C" __global__ void __launch_bounds__(SUMMING, 2)
    node_sums(const Word* words, Int n, int width, const Word* common, const Word* packed, const int* rows, Int capacity,
              const Request* requests, const int* blocks, const int* counts, const Int* first, int d, Int* sums) {
    constexpr int AHEAD = 2, COLUMNS = WIDTH * WORD;  // rows that a thread reads before it adds them
    extern __shared__ int residuals[];                // (columns, BINS)
    __shared__ int sizes[COLUMNS], spreads[COLUMNS], total_residual, total_variance;
    const int number = blocks[3 * blockIdx.x], part = blocks[3 * blockIdx.x + 1], parts = blocks[3 * blockIdx.x + 2];
    const Request request = requests[number];
    Int begin = request.begin, count = request.end - request.begin, source = request.source;
    if (request.summed != BOTH) {
        source = 1 - source;
        const int lefts = counts[2 * number];
        if (request.summed == LEFT) count = lefts;
        else begin += lefts, count -= lefts;
    }
    const Int start = part * static_cast<Int>(blockDim.x);
    if (start >= count) return;
    const int first_column = blockIdx.y * width * WORD, rest = d - first_column;
    const int columns = rest < width * WORD ? rest : width * WORD;
    int* variances = residuals + columns * BINS;
    if (threadIdx.x < COLUMNS) {
        const int j = first_column + threadIdx.x;
        const int size = threadIdx.x < columns ? static_cast<int>(first[j + 1] - first[j]) : 0;
        int spread = 0;
        while (size && spread < 5 && size << (spread + 1) <= BINS) ++spread;
        sizes[threadIdx.x] = size, spreads[threadIdx.x] = spread;
    }
    if (threadIdx.x == 0) total_residual = total_variance = 0;
    for (int i = threadIdx.x; i < 2 * columns * BINS; i += blockDim.x) residuals[i] = 0;
    __syncthreads();
    unsigned spread[WIDTH] = {};  // four bits for each column of a word
    Word frequent[WIDTH];
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) {
        for (int j = 0; j < WORD; ++j) spread[w] |= spreads[w * WORD + j] << (4 * j);
        frequent[w] = w < width ? common[blockIdx.y * width + w] : 0;
    }
    const int* chosen = rows + source * capacity + begin;
    const Word *own = words + blockIdx.y * n * width, *numbers = packed + blockIdx.z * n;
    const Int step = parts * static_cast<Int>(blockDim.x);
    int all_residuals = 0, all_variances = 0;
    for (Int at = start + threadIdx.x; at < count; at += AHEAD * step) {
        Word codes[AHEAD][WIDTH], pairs[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const bool inside = at + i * step < count;
            const Int row = inside ? chosen[at + i * step] : 0;
            pairs[i] = inside ? numbers[row] : 0;
#pragma unroll
            for (int w = 0; w < WIDTH; ++w) codes[i][w] = inside && w < width ? own[row * width + w] : 0;
        }
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            if (!pairs[i]) continue;
            const int residual = static_cast<int>(pairs[i] >> 32), variance = static_cast<int>(pairs[i]);
            all_residuals += residual, all_variances += variance;
#pragma unroll
            for (int w = 0; w < WIDTH; ++w) {
                const Word others = codes[i][w] ^ frequent[w];
#pragma unroll
                for (int j = 0; j < WORD; ++j) {
                    if (w * WORD + j >= columns || !(others >> (8 * j) & (BINS - 1))) continue;
                    const int shift = spread[w] >> (4 * j) & 15, code = static_cast<int>(codes[i][w] >> (8 * j) & (BINS - 1));
                    const int cell = (w * WORD + j) * BINS + (code << shift) + (threadIdx.x & ((1 << shift) - 1));
                    atomicAdd(residuals + cell, residual);
                    atomicAdd(variances + cell, variance);
                }
            }
        }
    }
    all_residuals = sum_of_warp(all_residuals), all_variances = sum_of_warp(all_variances);
    if ((threadIdx.x & 31) == 0) atomicAdd(&total_residual, all_residuals), atomicAdd(&total_variance, all_variances);
    __syncthreads();
    // Each warp completes its columns and adds them to the result.
    const Int cells = first[d] * gridDim.z;
    Int* out = sums + 2 * number * cells + blockIdx.z;
    for (int j = threadIdx.x / 32; j < columns; j += blockDim.x / 32) {
        const int most = static_cast<int>(common[blockIdx.y * width + j / WORD] >> (8 * (j % WORD)) & (BINS - 1));
        Int* column = out + first[first_column + j] * gridDim.z;
        int left_residual = 0, left_variance = 0;
        for (int code = threadIdx.x & 31; code < sizes[j]; code += 32) {
            int residual = 0, variance = 0;
            for (int c = 0; c < 1 << spreads[j]; ++c) {
                const int cell = j * BINS + (code << spreads[j]) + c;
                residual += residuals[cell], variance += variances[cell];
            }
            left_residual += residual, left_variance += variance;
            if (residual) add(column + code * gridDim.z, residual);
            if (variance) add(column + code * gridDim.z + cells, static_cast<unsigned>(variance));
        }
        left_residual = total_residual - sum_of_warp(left_residual);
        left_variance = total_variance - sum_of_warp(left_variance);
        if ((threadIdx.x & 31) == 0) {
            if (left_residual) add(column + most * gridDim.z, left_residual);
            if (left_variance) add(column + most * gridDim.z + cells, static_cast<unsigned>(left_variance));
        }
    }
}

// -- The best split of each column, as `calibayes.kernels.tree_nodes.best_split` finds it

struct Found {
    double gain, most, missing_left, left, all;  // the last two are variances: of the left side, and of the node
};

// Sums over the block's threads before a thread, it included, and over all.
struct Scan {
    Int before, all;

    __device__ Scan(Int own, Int* of_warps) : before(own), all(0) {
        const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
        for (int step = 1; step < 32; step *= 2) {
            const Int lower = __shfl_up_sync(ALL, before, step);
            if (lane >= step) before += lower;
        }
        if (lane == 31) of_warps[warp] = before;
        __syncthreads();
        Int lower = 0;
        for (int w = 0; w < BINS / 32; ++w) {
            if (w < warp) lower += of_warps[w];
            all += of_warps[w];
        }
        before += lower;
        __syncthreads();
    }
};

// The place of the largest gain, the first of equal ones, if it is positive; else -1.
__device__ int place_of_best(double gain, int place, double* gains, int* places) {
    const auto take = [&](double other, int there) {
        if (other > gain || (other == gain && there < place)) gain = other, place = there;
    };
    for (int step = 16; step; step /= 2) {
        const double other = __shfl_xor_sync(ALL, gain, step);
        take(other, __shfl_xor_sync(ALL, place, step));
    }
    if ((threadIdx.x & 31) == 0) gains[threadIdx.x / 32] = gain, places[threadIdx.x / 32] = place;
    __syncthreads();
    for (int w = 0; w < BINS / 32; ++w) take(gains[w], places[w]);
    __syncthreads();
    return gain > 0.0 ? place : -1;
}

__device__ double quality(Int residual, Int variance, double prior) {
    const double deviation = static_cast<double>(residual);
    return deviation * deviation / (static_cast<double>(variance) + prior);
}

// A block of BINS threads, one for each code; sums are those of the column, by code and class.
__device__ void find_split(const Int* residuals, const Int* variances, int codes, int classes, double prior, double least,
                           Found* found) {
    __shared__ Int of_warps[BINS / 32];
    __shared__ double gains[BINS / 32];
    __shared__ int places[BINS / 32];
    const int code = threadIdx.x;
    double whole = 0.0, all = 0.0, of_left[2] = {}, of_right[2] = {}, left[2] = {};  // by the side of missing values: right, left
    bool gaps = false;
    for (int c = 0; c < classes; ++c) {
        const int cell = code * classes + c;
        const Scan residual(code < codes ? residuals[cell] : 0, of_warps), variance(code < codes ? variances[cell] : 0, of_warps);
        gaps |= residuals[c] != 0 || variances[c] != 0;
        whole += quality(residual.all, variance.all, prior), all += static_cast<double>(variance.all);
        for (int side = 0; side < 2; ++side) {
            const Int deviation = residual.before - (side ? 0 : residuals[c]), spread = variance.before - (side ? 0 : variances[c]);
            of_left[side] += quality(deviation, spread, prior);
            of_right[side] += quality(residual.all - deviation, variance.all - spread, prior);
            left[side] += static_cast<double>(spread);
        }
    }
    double best = 0.0;
    int place = 0;
    for (int side = 0; side < (gaps ? 2 : 1); ++side) {
        const double gain = of_left[side] + of_right[side] - whole;
        const bool possible = code >= 1 && code < codes && left[side] >= least && all - left[side] >= least;
        if (possible && gain > best) best = gain, place = side * BINS + code;
    }
    const int winner = place_of_best(best, place, gains, places);
    if (winner < 0 && code == 0) *found = {0.0, 0.0, 0.0, 0.0, all};
    if (winner < 0 || code != winner % BINS) return;
    const int side = winner / BINS;
    const bool missing_left = gaps ? side != 0 : left[0] >= all - left[0];
    *found = {best, static_cast<double>(code), missing_left ? 1.0 : 0.0, left[side], all};
}

// The best splits (m, 2, d) of the summed children of divided nodes, and of the other ones, whose sums take the place of those of
// their parents. A parent's address is 0 if there is no other child.
extern "C" __global__ void best_splits(const Word* parents, Int* sums, const Int* first, int d, int classes, double prior,
                                       double least, Found* found) {
    const int j = blockIdx.x, codes = static_cast<int>(first[j + 1] - first[j]);
    const Int cells = first[d] * classes, begin = first[j] * classes;
    Int *own = sums + 2 * blockIdx.y * cells + begin, *other = reinterpret_cast<Int*>(parents[blockIdx.y]);
    found += 2 * blockIdx.y * static_cast<Int>(d) + j;
    if (other) {
        other += begin;
        for (int i = threadIdx.x; i < codes * classes; i += BINS) {
            other[i] -= own[i];
            other[cells + i] -= own[cells + i];
        }
    }
    __syncthreads();
    find_split(own, own + cells, codes, classes, prior, least, found);
    __syncthreads();
    if (other) find_split(other, other + cells, codes, classes, prior, least, found + d);
}

// -- Trees: the leaves of rows, sums over leaves, and scores

struct Node {
    int group, place, shift, most, missing_left, left, right;  // a leaf has group -1, and its number on the left
};

__device__ int leaf_of(const Node* tree, const Word* words, Int n, int width, Int row) {
    const Node* node = tree;
    while (node->group >= 0) {
        const Word word = words[(node->group * n + row) * width + node->place];
        node = tree + (goes_left(word, node->shift, node->most, node->missing_left) ? node->left : node->right);
    }
    return node->left;
}

// Adds to sums (3, leaves, k) residuals and variances of training rows and weights of all rows. The block does the classes from
// blockIdx.y * classes on, with several sums of each, for neighboring threads. Notes the leaves of the rows.
extern "C" __global__ void leaf_sums(const Word* words, Int n, int width, const Node* nodes, int count, const double* scores, int k,
                                     const int* labels, const double* weight, const unsigned char* training, double scale,
                                     int classes, int copies, unsigned char* leaf, Int* sums) {
    extern __shared__ Int own[];
    __shared__ Node tree[MOST_NODES];
    const int leaves = (count + 1) / 2, from = blockIdx.y * classes, to = from + classes < k ? from + classes : k;
    const int entries = 3 * leaves * classes, copy = threadIdx.x % copies;
    for (int i = threadIdx.x; i < count; i += blockDim.x) tree[i] = nodes[i];
    for (int i = threadIdx.x; i < entries * copies; i += blockDim.x) own[i] = 0;
    __syncthreads();
    const auto at = [&](int kind, int place, int c) { return own + ((kind * leaves + place) * classes + c - from) * copies + copy; };
    EACH_ROW(row, n) {
        const int place = leaf_of(tree, words, n, width, row), label = labels[row];
        if (blockIdx.y == 0) leaf[row] = static_cast<unsigned char>(place);
        const double units = weight[row] * scale;
        const Int mass = whole(units);
        if (from <= label && label < to) add(at(2, place, label), mass);
        if (!training[row]) continue;
        const Posterior posterior(scores + row, n, k);
        for (int c = from; c < to; ++c) {
            const double p = posterior.of(c);
            add(at(0, place, c), (c == label ? mass : 0) - whole(p * units));
            add(at(1, place, c), whole(variance_of(p, k) * units));
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < entries; i += blockDim.x) {
        Int sum = 0;
        for (int c = 0; c < copies; ++c) sum += own[i * copies + c];
        if (sum) add(sums + i / classes * static_cast<Int>(k) + from + i % classes, sum);
    }
}

// Adds log factors (leaves, k), if they are given, to log scores, and held-out losses to a sum.
extern "C" __global__ void move(double* scores, Int n, int k, const unsigned char* leaf, const double* factors, const int* labels,
                                const double* held_out_weight, double scale, Int* loss) {
    Int own = 0;
    EACH_ROW(row, n) {
        for (int c = 0; factors && c < k; ++c) scores[c * n + row] += factors[leaf[row] * k + c];
        if (held_out_weight[row] == 0.0) continue;
        const Posterior posterior(scores + row, n, k);
        const double of_row = exact_log(posterior.total) - posterior.shifted(labels[row]);
        own += whole((of_row < LARGEST_LOSS ? of_row : LARGEST_LOSS) * (held_out_weight[row] * scale) + 0.5);
    }
    own = sum_of_warp(own);
    if ((threadIdx.x & 31) == 0 && own) add(loss, own);
}

// The leaf of each row in each tree, (n, trees). `first` (trees + 1,) are the first nodes of the trees.
extern "C" __global__ void leaf_codes(const Word* words, Int n, int width, const Node* nodes, const Int* first, int trees, signed char* codes) {
    EACH_ROW(row, n)
        for (int tree = 0; tree < trees; ++tree)
            codes[row * trees + tree] = static_cast<signed char>(leaf_of(nodes + first[tree], words, n, width, row));
}

// Adds the log factors (leaves of all trees, k) of the leaves of rows to log scores, tree by tree. The block does WORD classes.
extern "C" __global__ void forest_scores(const Word* words, Int n, int width, const Node* nodes, const Int* first, int trees,
                                         const double* factors, int k, double* scores) {
    const int from = blockIdx.y * WORD, count = k - from < WORD ? k - from : WORD;
    EACH_ROW(row, n) {
        double sums[WORD];
#pragma unroll
        for (int c = 0; c < WORD; ++c) sums[c] = c < count ? scores[(from + c) * n + row] : 0.0;
        for (int tree = 0; tree < trees; ++tree) {
            // A tree of m nodes has (m + 1) / 2 leaves, so that (first + tree) / 2 is the number of leaves before it.
            const Int leaf = (first[tree] + tree) / 2 + leaf_of(nodes + first[tree], words, n, width, row);
#pragma unroll
            for (int c = 0; c < WORD; ++c)
                if (c < count) sums[c] = sums[c] + factors[leaf * k + from + c];
        }
#pragma unroll
        for (int c = 0; c < WORD; ++c)
            if (c < count) scores[(from + c) * n + row] = sums[c];
    }
}
