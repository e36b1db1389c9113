// Independent columns of numbers: the variances of a row's class without the row, as shares of given ones.
#pragma once

#include "vector_row.hpp"

namespace calibayes {
namespace CALIBAYES_LEVEL {

constexpr int BATCH = 4;  // columns at a time, each with sums of its own

struct ShareLanes {
    double far[BATCH], product[BATCH], spare[BATCH];
};

template <class X>
CALIBAYES_INLINE void add_columns(const X* row, const double* CALIBAYES_ALONE mean, const double* CALIBAYES_ALONE scale,
                                  const double* CALIBAYES_ALONE inverse, const double* CALIBAYES_ALONE least,
                                  double change, int columns, ShareLanes& lanes) {
    for (int l = 0; l < columns; ++l) {
        const double away = row[l] - mean[l], z = away * away * scale[l];
        const double share = (1.0 - z) + change * inverse[l], spare = share - least[l];
        lanes.far[l] += z / share;
        lanes.product[l] *= share;
        lanes.spare[l] = spare < lanes.spare[l] ? spare : lanes.spare[l];
    }
}

template <class X>
void left_out_shares(const Numbers<X>& x, const LeftOutTables& of, const Int* own, const double* change, Int groups,
                     double* distance, double* product) {
    for (Int r = 0; r < x.n; ++r) {
        const X* row = x.data + r * x.stride;
        const Int cell = own[r] * x.d;
        const double *mean = of.mean + cell, *scale = of.scale + cell, *inverse = of.inverse + cell, *least = of.least + cell;
        double far = 0.0, spare = 0.0;
        for (Int g = 0; g < groups; ++g) {
            const Int end = (g + 1) * SHARES < x.d ? (g + 1) * SHARES : x.d;
            ShareLanes lanes;
            for (int l = 0; l < BATCH; ++l) lanes.far[l] = lanes.spare[l] = 0.0, lanes.product[l] = 1.0;
            Int j = g * SHARES;
            for (; j + BATCH <= end; j += BATCH)
                add_columns(row + j, mean + j, scale + j, inverse + j, least + j, change[r], BATCH, lanes);
            add_columns(row + j, mean + j, scale + j, inverse + j, least + j, change[r], static_cast<int>(end - j), lanes);
            product[r * groups + g] = (lanes.product[0] * lanes.product[1]) * (lanes.product[2] * lanes.product[3]);
            far += (lanes.far[0] + lanes.far[1]) + (lanes.far[2] + lanes.far[3]);
            for (int l = 0; l < BATCH; ++l) spare = lanes.spare[l] < spare ? lanes.spare[l] : spare;
        }
        distance[r] = spare < 0.0 ? -1.0 : far;
    }
}

}  // namespace CALIBAYES_LEVEL
}  // namespace calibayes
