"""Cells for what is missing, and tables as numbers."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.encoders import AdaptiveBins, ByColumnType, Dense, Levels, MissingAsLevel, PrincipalComponents
from calibayes.kernels.numbers.quantiles import inverse_cdf_quantiles
from calibayes.tables.read import read_frame

TABLE = pd.DataFrame(
    {
        "whole": [1.0, 2.0, 3.0, 2.0],
        "gappy": [0.5, np.nan, 0.5, 7.0],
        "empty": [np.nan] * 4,
        "text": ["a", "b", None, "b"],
    }
)


def fitted(encoder, table=TABLE):
    return encoder.fit(read_frame(table), range(table.shape[1]), np.ones(len(table)))


class TestGapCells:
    def test_what_is_missing_has_the_last_cell(self):
        cells = fitted(MissingAsLevel(ByColumnType(AdaptiveBins())))
        assert_array_equal(
            cells.encode(read_frame(TABLE)), [[0, 0, 0, 0], [1, 2, 0, 1], [2, 0, 0, 2], [1, 1, 0, 1]]
        )
        layout = cells.layout()
        assert layout["levels"] == (3, 3, 1, 3)
        assert layout["ordered"] == (3, 2, 0, 0)
        assert layout["gappy"] == (False, True, True, True)
        assert len(layout["log_volume"]) == 10

    def test_a_gap_in_a_whole_column_and_a_new_level_say_nothing(self):
        cells = fitted(MissingAsLevel(ByColumnType(AdaptiveBins())))
        new = TABLE.assign(whole=np.nan, text="c")
        assert (cells.encode(read_frame(new))[:, [0, 3]] == -1).all()

    def test_decoded_it_is_what_it_was(self):
        cells = fitted(MissingAsLevel(ByColumnType(AdaptiveBins())))
        columns = cells.decode(cells.encode(read_frame(TABLE)), None)
        for name, column in zip(TABLE, columns, strict=True):
            assert pd.Series(column, name=name).equals(TABLE[name]) or name == "text"
        assert columns[3].tolist() == ["a", "b", None, "b"]

    def test_silent_it_leaves_gaps_open(self):
        cells = fitted(MissingAsLevel(ByColumnType(AdaptiveBins()))).with_missing_unknown()
        assert_array_equal(cells.encode(read_frame(TABLE))[:, 1], [0, -1, 0, 1])

    def test_new_levels_move_the_gap_to_the_end(self):
        cells = fitted(MissingAsLevel(Levels()), TABLE[["text"]])
        grown, moved = cells.extend(read_frame(pd.DataFrame({"text": ["aa", None]})))
        assert [code.tolist() for code in moved] == [[0, 2, 3]]
        assert grown.encode(read_frame(TABLE[["text"]]))[:, 0].tolist() == [0, 2, 3, 2]
        fewer, back = grown.restricted_to(np.array([1.0, 0.0, 2.0, 1.0]))
        assert [code.tolist() for code in back] == [[0, -1, 1, 2]]
        assert fewer.layout()["levels"] == (3,)
        united, ours, theirs = cells.unite(cells)
        assert (united.layout()["levels"], ours, theirs) == ((3,), None, None)


class TestDense:
    def test_rare_levels_share_an_indicator(self):
        frame = pd.DataFrame({"a": ["x", "y", "z"] * 150 + ["p", "q"]})
        assert fitted(Dense(), frame).names == ("a = x", "a = y", "a = z", "a = other")

    def test_columns_have_mean_0_and_variance_1(self):
        table = TABLE.assign(more=["x", "y", "z", "x"])
        encoder = fitted(Dense(), table)
        x = encoder.encode(read_frame(table))
        assert encoder.names == (
            "whole",
            "gappy",
            "text = b",
            "more = x",
            "more = y",
            "more = z",
            "gappy missing",
            "text missing",
        )
        assert encoder.sources == (0, 1, 3, 4, 4, 4, 1, 3)
        assert_allclose(x.mean(axis=0), 0.0, atol=1e-12)
        assert_allclose(x.std(axis=0), 1.0)

    def test_numbers_are_bent_about_their_median(self):
        values = np.array([-3.0, -1.0, 0.0, 2.0, 1e6])
        x = fitted(Dense(), pd.DataFrame({"v": values})).encode(read_frame(pd.DataFrame({"v": values})))[:, 0]
        bent = np.arcsinh(values / (3.0 / 1.35))
        assert_allclose(x, (bent - bent.mean()) / bent.std())

    def test_weights_count_as_rows(self):
        rng = np.random.default_rng(0)
        table = TABLE.iloc[rng.integers(0, 4, 30)].reset_index(drop=True)
        weight = rng.integers(1, 4, 30)
        one = Dense().fit(read_frame(table), range(4), weight.astype(float))
        two = fitted(Dense(), table.iloc[np.repeat(np.arange(30), weight)])
        assert_allclose(one.encode(read_frame(table)), two.encode(read_frame(table)), atol=1e-12)

    def test_gaps_and_levels_that_were_not_there_are_nothing_special(self):
        encoder = fitted(Dense())
        new = TABLE.assign(whole=np.nan, gappy=np.nan, text="c")
        assert np.isfinite(encoder.encode(read_frame(new))).all()

    def test_a_table_of_constants_keeps_one_column(self):
        table = pd.DataFrame({"a": [1.0, 1.0], "b": ["x", "x"]})
        assert_array_equal(fitted(Dense(), table).encode(read_frame(table)), np.zeros((2, 1)))

    def test_it_is_not_turned_back(self):
        with pytest.raises(ValueError, match="not turned back"):
            fitted(Dense()).decode(np.zeros((1, 4)), None)


class TestPrincipal:
    def test_components_are_uncorrelated_and_those_of_largest_variance(self):
        rng = np.random.default_rng(0)
        common = rng.normal(size=(200, 1))
        table = read_frame(pd.DataFrame(common + 0.1 * rng.normal(size=(200, 5))))
        encoder = PrincipalComponents(2).fit(table, range(5), np.ones(200))
        z = encoder.encode(table)
        assert_allclose(z.T @ z / 200, np.eye(2), atol=1e-10)
        assert abs(np.corrcoef(z[:, 0], common[:, 0])[0, 1]) > 0.98
        x = Dense().fit(table, range(5), np.ones(200)).encode(table)
        left = np.linalg.svd(x)[0][:, :2] * np.sqrt(200)
        assert_allclose(np.abs(z), np.abs(left), atol=1e-8)

    def test_weights_count_as_rows_and_columns_that_are_others_add_nothing(self):
        rng = np.random.default_rng(0)
        rows, weight = rng.normal(size=(30, 2)), rng.integers(1, 4, 30)
        frame = pd.DataFrame(np.column_stack([rows, rows]))
        one = PrincipalComponents().fit(read_frame(frame), range(4), weight.astype(float))
        two = fitted(PrincipalComponents(), frame.iloc[np.repeat(np.arange(30), weight)])
        assert one.encode(read_frame(frame)).shape == (30, 2)
        products = [z @ z.T for z in (one.encode(read_frame(frame)), two.encode(read_frame(frame)))]
        assert_allclose(*products, atol=1e-8)  # signs are a matter of taste

    def test_what_cannot_be_is_said(self):
        with pytest.raises(ValueError, match="at least one component"):
            PrincipalComponents(0)
        with pytest.raises(ValueError, match="not turned back"):
            fitted(PrincipalComponents()).decode(np.zeros((1, 2)), None)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
def test_quantiles_are_numpy_s_averaged_ones(share):
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=20), rng.integers(1, 5, 20)
    expected = np.quantile(np.repeat(values, weight), share, method="averaged_inverted_cdf")
    assert inverse_cdf_quantiles(values, weight.astype(float), (share,)) == pytest.approx([expected])
