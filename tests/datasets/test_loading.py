"""Data sets by name, from a folder, from the package and from a net that the tests make up."""

import gzip
import hashlib
import io
import json
from urllib.error import URLError

import numpy as np
import pytest

from calibayes.datasets import complete_varying_numbers, list_datasets, load, load_file
from calibayes.datasets.arff import read_arff
from calibayes.datasets.download import download
from calibayes.datasets.sources import SOURCES

ARFF = b"""% a comment
@RELATION pets
@ATTRIBUTE 'row id' INTEGER
@attribute weight NUMERIC
@attribute "kind of food" {'dry, cheap',wet}
@attribute class {cat,dog}
@DATA
1,3.5,'dry, cheap',cat
2,?,wet,dog
% another comment
3,7.25,wet,dog
"""


class Answer(io.BytesIO):
    def __init__(self, content, status=200):
        super().__init__(content)
        self.status = status


class Net:
    """Answers from a mapping; breaks off after some bytes the first time, then goes on as asked."""

    def __init__(self, files, breaks_after=None):
        self.files, self.breaks_after, self.asked = files, breaks_after, []

    def __call__(self, request):
        self.asked.append((request.full_url, request.get_header("Range")))
        content = self.files[request.full_url]
        if self.breaks_after is not None and "json" not in request.full_url:
            broken, self.breaks_after = content[: self.breaks_after], None
            return Breaking(broken)
        start = request.get_header("Range")
        if start is None:
            return Answer(content)
        return Answer(content[int(start.removeprefix("bytes=").removesuffix("-")) :], status=206)


class Breaking(Answer):
    def read(self, size=-1):
        piece = super().read(size)
        if not piece:
            raise URLError("the line is cut")
        return piece


@pytest.fixture
def pets(monkeypatch, tmp_path):
    """The files of a data set on the net; downloads are kept in a folder of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CALIBAYES_DATA", raising=False)
    description = {
        "data_set_description": {
            "url": "https://example.org/pets.arff",
            "md5_checksum": hashlib.md5(ARFF).hexdigest(),
            "default_target_attribute": "class",
            "row_id_attribute": "row id",
        }
    }
    source = SOURCES["vehicle"].description
    return {source: json.dumps(description).encode(), "https://example.org/pets.arff": ARFF}


def offline(request):
    raise URLError("no route to host")


def test_what_ships_needs_nothing_else(monkeypatch):
    monkeypatch.delenv("CALIBAYES_DATA", raising=False)
    assert [load(name, opener=None).columns.n for name in ("iris", "penguins", "wine")] == [150, 344, 178]
    assert load("iris").columns.names[0] == "sepal_length"
    assert set(load("iris").target) == {"setosa", "versicolor", "virginica"}


def test_a_folder_comes_first(tmp_path, monkeypatch):
    with gzip.open(tmp_path / "iris.csv.gz", "wt", encoding="utf-8") as file:
        file.write("x,target\n1,a\n2,b\n")
    assert load("iris", data_home=tmp_path).columns.n == 2
    monkeypatch.setenv("CALIBAYES_DATA", str(tmp_path))
    assert load("iris").columns.n == 2
    assert "iris" in list_datasets()


def test_a_download_is_checked_converted_and_kept(pets, tmp_path):
    net = Net(pets)
    data = load("vehicle", opener=net)
    assert data.columns.names == ("weight", "kind of food")
    assert data.target.tolist() == ["cat", "dog", "dog"]
    assert np.isnan(data.columns.column(0)[1])
    assert data.columns.column(1)[0] == "dry, cheap"
    assert load("vehicle", opener=offline).target.tolist() == ["cat", "dog", "dog"]
    path = tmp_path / "calibayes" / "vehicle.csv.gz"
    path.write_bytes(gzip.compress(b"x,target\n1,a\n"))
    with pytest.raises(ValueError, match="is not what was downloaded"):
        load("vehicle", opener=offline)


def test_a_broken_download_is_gone_on_with(pets, tmp_path):
    net = Net(pets, breaks_after=100)
    with pytest.raises(ConnectionError, match="What has arrived is kept"):
        load("vehicle", opener=net)
    assert load("vehicle", opener=net).columns.n == 3
    assert net.asked[-1] == ("https://example.org/pets.arff", "bytes=100-")


def test_a_server_that_starts_anew_is_followed(tmp_path):
    (tmp_path / "file.part").write_bytes(b"old")
    path = download("https://example.org/x", tmp_path / "file", opener=lambda request: Answer(b"whole"))
    assert path.read_bytes() == b"whole"


def test_a_wrong_sum_is_not_kept(tmp_path):
    with pytest.raises(ValueError, match="MD5 sum"):
        download("https://example.org/x", tmp_path / "file", "0" * 32, lambda request: Answer(b"other"))
    assert list(tmp_path.iterdir()) == []


def test_offline_says_what_helps(pets):
    with pytest.raises(ConnectionError, match="CALIBAYES_DATA"):
        load("vehicle", opener=offline)
    with pytest.raises(ConnectionError, match="was not to be downloaded"):
        load("vehicle", opener=None)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown data set 'no-such'; known are .*penguins"):
        load("no-such")


def test_arff_with_rows_that_do_not_fit():
    with pytest.raises(ValueError, match="no dense ARFF"):
        read_arff(["@attribute a numeric", "@data", "1,2"])


def test_cleaning(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "size,same,word,target\n1,7,b,x\n2,7,a,x\n,7,a,x\n4,7,,y\n5,7,c,y\n6,7,c,y\n9,7,a,z\n",
        encoding="utf-8",
    )
    data = load_file(path, "target")
    columns, target = complete_varying_numbers(data)
    assert columns.tolist() == [[1, 1], [2, 0], [5, 2], [6, 2], [9, 0]]
    assert target.tolist() == ["x", "x", "y", "y", "z"]
    columns, target = complete_varying_numbers(data, missing_is_level=True)
    assert columns[:, 1].tolist() == [2, 1, 0, 3, 3, 1]  # a missing word is the first level
    columns, target = complete_varying_numbers(data, least_class_rows=2, within_classes=True)
    assert columns.tolist() == [[1], [2], [5], [6]]  # the word never varies within class y
