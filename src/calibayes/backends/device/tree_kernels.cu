// The passes over rows of which the growth of trees consists. `tree_kernels.py` defines the constants in capital letters, and
// compiles this file without fused multiply-add: every number has the bits of NumPy's. Arrays by class are (k, n).

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
    Int begin, end, source, word, shift, most, missing_left, summed;
};
enum { LEFT, RIGHT, BOTH };

__device__ bool goes_left(Word word, Int shift, Int most, Int missing_left) {
    const int code = static_cast<int>(word >> shift & (BINS - 1));
    return code ? code <= most : missing_left != 0;
}

// A block divides a stretch of a node's rows, into the same range of the other array: left rows from its beginning, right ones
// from its end. `blocks` (blocks, 3) are requests, parts and numbers of parts. Adds the numbers of left and of right rows.
extern "C" __global__ void divide(const Word* words, Int n, int* rows, Int capacity, const Request* requests, const int* blocks,
                                  int* counts) {
    constexpr int EACH = STRETCH / DIVIDING;
    __shared__ int left_rows, left_at, right_at;
    const Request request = requests[blocks[3 * blockIdx.x]];
    const Int begin = request.begin + blocks[3 * blockIdx.x + 1] * static_cast<Int>(STRETCH);
    const Int end = begin + STRETCH < request.end ? begin + STRETCH : request.end;
    const int *from = rows + request.source * capacity, lane = threadIdx.x & 31;
    int* to = rows + (1 - request.source) * capacity;
    const Word* word = words + request.word * n;
    if (threadIdx.x == 0) left_rows = 0;
    __syncthreads();
    unsigned sides = 0;  // bit i: whether the thread's row i goes left
#pragma unroll 8
    for (int i = 0; i < EACH; ++i) {
        const Int at = begin + i * DIVIDING + threadIdx.x;
        if (at < end && goes_left(word[from[at]], request.shift, request.most, request.missing_left)) sides |= 1u << i;
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

// Adds to sums (requests, 2, classes, cells) those of a part of the rows of the summed child; the block's word is blockIdx.y,
// its class blockIdx.z. A column of few codes has several sums of each, for neighboring threads, which would wait for
// each other. Parts are so small that sums of a block have 32 bits.
extern "C" __global__ void node_sums(const Word* words, const Word* packed, Int n, const int* rows, Int capacity,
                                     const Request* requests, const int* blocks, const int* counts, const Int* first, int d,
                                     Int* sums) {
    constexpr int AHEAD = 4;  // rows that a thread reads before it adds them
    __shared__ int residuals[WORD * BINS];
    __shared__ unsigned variances[WORD * BINS];
    __shared__ int sizes[WORD], spreads[WORD];
    const int number = blocks[3 * blockIdx.x], part = blocks[3 * blockIdx.x + 1], parts = blocks[3 * blockIdx.x + 2];
    const Request request = requests[number];
    Int begin = request.begin, count = request.end - request.begin, source = request.source;
    if (request.summed != BOTH) {
        source = 1 - source;
        const int lefts = counts[2 * number];
        if (request.summed == LEFT) count = lefts;
        else begin += lefts, count -= lefts;
    }
    if (part * static_cast<Int>(blockDim.x) >= count) return;
    const int first_column = blockIdx.y * WORD, columns = d - first_column < WORD ? d - first_column : WORD;
    if (threadIdx.x < WORD) {
        const int j = first_column + threadIdx.x;
        const int size = threadIdx.x < columns ? static_cast<int>(first[j + 1] - first[j]) : 0;
        int spread = 0;
        while (size && spread < 5 && size << (spread + 1) <= BINS) ++spread;
        sizes[threadIdx.x] = size, spreads[threadIdx.x] = spread;
    }
    for (int i = threadIdx.x; i < WORD * BINS; i += blockDim.x) residuals[i] = 0, variances[i] = 0;
    __syncthreads();
    int spread[WORD], copy[WORD];
#pragma unroll
    for (int j = 0; j < WORD; ++j) spread[j] = spreads[j], copy[j] = j * BINS + (threadIdx.x & ((1 << spread[j]) - 1));
    const int* chosen = rows + source * capacity + begin;
    const Word *word = words + blockIdx.y * n, *numbers = packed + blockIdx.z * n;
    const Int step = parts * static_cast<Int>(blockDim.x);
    for (Int at = part * static_cast<Int>(blockDim.x) + threadIdx.x; at < count; at += AHEAD * step) {
        Word codes[AHEAD], pairs[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const bool inside = at + i * step < count;
            const int row = inside ? chosen[at + i * step] : 0;
            codes[i] = inside ? word[row] : 0, pairs[i] = inside ? numbers[row] : 0;
        }
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            if (!pairs[i]) continue;
            const int residual = static_cast<int>(pairs[i] >> 32);
            const unsigned variance = static_cast<unsigned>(pairs[i]);
#pragma unroll
            for (int j = 0; j < WORD; ++j) {
                if (j >= columns) break;
                const int cell = copy[j] + (static_cast<int>(codes[i] >> (8 * j) & (BINS - 1)) << spread[j]);
                atomicAdd(residuals + cell, residual);
                atomicAdd(variances + cell, variance);
            }
        }
    }
    __syncthreads();
    const Int cells = first[d];
    Int* out = sums + ((2 * number) * static_cast<Int>(gridDim.z) + blockIdx.z) * cells;
    for (int i = threadIdx.x; i < columns * BINS; i += blockDim.x) {
        const int j = i / BINS, code = i % BINS;
        if (code >= sizes[j]) continue;
        Int residual = 0, variance = 0;
        for (int c = 0; c < 1 << spreads[j]; ++c) {
            residual += residuals[j * BINS + (code << spreads[j]) + c];
            variance += variances[j * BINS + (code << spreads[j]) + c];
        }
        Int* cell = out + first[first_column + j] + code;
        if (residual) add(cell, residual);
        if (variance) add(cell + gridDim.z * cells, variance);
    }
}

// -- Trees: the leaves of rows, sums over leaves, and scores

struct Node {
    int word, shift, most, missing_left, left, right;  // a leaf has word -1, and its number on the left
};

__device__ int leaf_of(const Node* tree, const Word* words, Int n, Int row) {
    const Node* node = tree;
    while (node->word >= 0)
        node = tree + (goes_left(words[node->word * n + row], node->shift, node->most, node->missing_left) ? node->left : node->right);
    return node->left;
}

// Adds to sums (3, leaves, k) residuals and variances of training rows and weights of all rows. The block does the classes from
// blockIdx.y * width on, with several sums of each, for neighboring threads. Notes the leaves of the rows.
extern "C" __global__ void leaf_sums(const Word* words, Int n, const Node* nodes, int count, const double* scores, int k,
                                     const int* labels, const double* weight, const unsigned char* training, double scale,
                                     int width, int copies, unsigned char* leaf, Int* sums) {
    extern __shared__ Int own[];
    __shared__ Node tree[MOST_NODES];
    const int leaves = (count + 1) / 2, from = blockIdx.y * width, to = from + width < k ? from + width : k;
    const int entries = 3 * leaves * width, copy = threadIdx.x % copies;
    for (int i = threadIdx.x; i < count; i += blockDim.x) tree[i] = nodes[i];
    for (int i = threadIdx.x; i < entries * copies; i += blockDim.x) own[i] = 0;
    __syncthreads();
    const auto at = [&](int kind, int place, int c) { return own + ((kind * leaves + place) * width + c - from) * copies + copy; };
    EACH_ROW(row, n) {
        const int place = leaf_of(tree, words, n, row), label = labels[row];
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
        if (sum) add(sums + i / width * static_cast<Int>(k) + from + i % width, sum);
    }
}

// Adds log factors (leaves, k) to log scores, and held-out losses to a sum.
extern "C" __global__ void move(double* scores, Int n, int k, const unsigned char* leaf, const double* factors, const int* labels,
                                const double* held_out_weight, double scale, Int* loss) {
    Int own = 0;
    EACH_ROW(row, n) {
        const double* factor = factors + leaf[row] * k;
        for (int c = 0; c < k; ++c) scores[c * n + row] += factor[c];
        if (held_out_weight[row] == 0.0) continue;
        const Posterior posterior(scores + row, n, k);
        const double of_row = exact_log(posterior.total) - posterior.shifted(labels[row]);
        own += whole((of_row < LARGEST_LOSS ? of_row : LARGEST_LOSS) * (held_out_weight[row] * scale) + 0.5);
    }
    for (int step = 16; step; step /= 2) own += __shfl_down_sync(ALL, own, step);
    if ((threadIdx.x & 31) == 0 && own) add(loss, own);
}

// The leaf of each row in each tree, (n, trees). `first` (trees + 1,) are the first nodes of the trees.
extern "C" __global__ void leaf_codes(const Word* words, Int n, const Node* nodes, const Int* first, int trees, signed char* codes) {
    EACH_ROW(row, n)
        for (int tree = 0; tree < trees; ++tree)
            codes[row * trees + tree] = static_cast<signed char>(leaf_of(nodes + first[tree], words, n, row));
}

// Adds the log factors (leaves of all trees, k) of the leaves of rows to log scores, tree by tree. The block does WORD classes.
extern "C" __global__ void forest_scores(const Word* words, Int n, const Node* nodes, const Int* first, int trees,
                                         const double* factors, int k, double* scores) {
    const int from = blockIdx.y * WORD, count = k - from < WORD ? k - from : WORD;
    EACH_ROW(row, n) {
        double sums[WORD];
#pragma unroll
        for (int c = 0; c < WORD; ++c) sums[c] = c < count ? scores[(from + c) * n + row] : 0.0;
        for (int tree = 0; tree < trees; ++tree) {
            // A tree of m nodes has (m + 1) / 2 leaves, so that (first + tree) / 2 is the number of leaves before it.
            const Int leaf = (first[tree] + tree) / 2 + leaf_of(nodes + first[tree], words, n, row);
#pragma unroll
            for (int c = 0; c < WORD; ++c)
                if (c < count) sums[c] = sums[c] + factors[leaf * k + from + c];
        }
#pragma unroll
        for (int c = 0; c < WORD; ++c)
            if (c < count) scores[(from + c) * n + row] = sums[c];
    }
}
