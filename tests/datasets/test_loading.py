"""Load data sets by name from a folder, from the package and from a simulated server."""

import gzip
import hashlib
import io
import json
from urllib.error import URLError
from urllib.request import Request

import numpy as np
import pandas as pd
import pytest

from calibayes.datasets import Dataset, find_file, is_local, list_datasets, load, load_file, numeric_matrix
from calibayes.datasets.download import SOURCES, CheckedRedirects, download, fetch, open_url, read_arff

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


class Response(io.BytesIO):
    def __init__(self, content, status=200):
        super().__init__(content)
        self.status = status


class Server:
    """Serves files from a mapping; the first download fails after ``fails_after`` bytes, later ones can be resumed."""

    def __init__(self, files, fails_after=None):
        self.files, self.fails_after, self.requests = files, fails_after, []

    def __call__(self, request):
        self.requests.append((request.full_url, request.get_header("Range")))
        content = self.files[request.full_url]
        if self.fails_after is not None and "json" not in request.full_url:
            beginning, self.fails_after = content[: self.fails_after], None
            return InterruptedResponse(beginning)
        start = request.get_header("Range")
        if start is None:
            return Response(content)
        return Response(content[int(start.removeprefix("bytes=").removesuffix("-")) :], status=206)


class InterruptedResponse(Response):
    def read(self, size=-1):
        block = super().read(size)
        if not block:
            raise URLError("connection lost")
        return block


@pytest.fixture
def pets(monkeypatch, tmp_path):
    """The files of a data set on a server, by address; downloads are cached in a temporary folder."""
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


def test_bundled_data_sets_need_no_download(monkeypatch):
    monkeypatch.delenv("CALIBAYES_DATA", raising=False)
    assert [len(load(name, opener=None).data) for name in ("iris", "penguins", "wine")] == [150, 344, 178]
    assert load("iris").data.columns[0] == "sepal_length"
    assert set(load("iris").target) == {"setosa", "versicolor", "virginica"}


def test_the_folder_takes_precedence(tmp_path, monkeypatch):
    with gzip.open(tmp_path / "iris.csv.gz", "wt", encoding="utf-8") as file:
        file.write("x,target\n1,a\n2,b\n")
    assert len(load("iris", data_home=tmp_path).data) == 2
    monkeypatch.setenv("CALIBAYES_DATA", str(tmp_path))
    assert len(load("iris").data) == 2
    assert "iris" in list_datasets()


def test_a_download_is_verified_converted_and_cached(pets, tmp_path):
    server = Server(pets)
    data = load("vehicle", opener=server)
    assert list(data.data.columns) == ["weight", "kind of food"]
    assert data.target.tolist() == ["cat", "dog", "dog"]
    assert np.isnan(data.data.iloc[1, 0])
    assert data.data.iloc[0, 1] == "dry, cheap"
    assert load("vehicle", opener=offline).target.tolist() == ["cat", "dog", "dog"]
    path = tmp_path / "calibayes" / "vehicle.csv.gz"
    path.write_bytes(gzip.compress(b"x,target\n1,a\n"))
    with pytest.raises(ValueError, match="was changed after its download"):
        load("vehicle", opener=offline)


def test_an_interrupted_download_is_resumed(pets, tmp_path):
    server = Server(pets, fails_after=100)
    with pytest.raises(ConnectionError, match="The part received so far is kept"):
        load("vehicle", opener=server)
    assert len(load("vehicle", opener=server).data) == 3
    assert server.requests[-1] == ("https://example.org/pets.arff", "bytes=100-")


def test_a_server_without_ranges_sends_the_whole_file(tmp_path):
    (tmp_path / "file.part").write_bytes(b"old")
    path = download("https://example.org/x", tmp_path / "file", opener=lambda request: Response(b"whole"))
    assert path.read_bytes() == b"whole"


def test_a_download_with_a_wrong_checksum_is_deleted(tmp_path):
    with pytest.raises(ValueError, match="MD5 checksum"):
        download("https://example.org/x", tmp_path / "file", "0" * 32, lambda request: Response(b"other"))
    assert list(tmp_path.iterdir()) == []


def test_offline_errors_name_the_folder_variable(pets):
    with pytest.raises(ConnectionError, match="CALIBAYES_DATA"):
        load("vehicle", opener=offline)
    with pytest.raises(ConnectionError, match="downloads are off"):
        load("vehicle", opener=None)


def test_an_unknown_name_lists_the_available_ones():
    with pytest.raises(ValueError, match=r"unknown data set 'no-such'; available are .*penguins"):
        load("no-such")


def test_arff_with_rows_of_another_length():
    with pytest.raises(ValueError, match="not a dense ARFF file"):
        read_arff(["@attribute a numeric", "@data", "1,2"])


def test_numeric_matrix(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "size,same,word,target\n1,7,b,x\n2,7,a,x\n,7,a,x\n4,7,,y\n5,7,c,y\n6,7,c,y\n9,7,a,z\n",
        encoding="utf-8",
    )
    data = load_file(path, "target")
    columns, target = numeric_matrix(data)
    assert columns.tolist() == [[1, 1], [2, 0], [5, 2], [6, 2], [9, 0]]
    assert target.tolist() == ["x", "x", "y", "y", "z"]
    columns, target = numeric_matrix(data, missing_is_level=True)
    assert columns[:, 1].tolist() == [2, 1, 0, 3, 3, 1]  # a missing word is level 0
    columns, target = numeric_matrix(data, least_class_rows=2, within_classes=True)
    assert columns.tolist() == [[1], [2], [5], [6]]  # the word is constant within class y


@pytest.mark.parametrize("name", ["../secret", "a/b", "/etc/passwd", "..", "a\\b", ""])
def test_names_cannot_leave_the_folder(tmp_path, name):
    (tmp_path / "data").mkdir()
    (tmp_path / "secret.csv.gz").write_bytes(gzip.compress(b"x,target\n1,a\n2,b\n"))
    for function in (load, find_file, is_local):
        with pytest.raises(ValueError, match="is not a name of a data set"):
            function(name, data_home=tmp_path / "data")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://api.openml.org/x", "ftp://openml.org/x"])
def test_only_https_is_downloaded(pets, tmp_path, url):
    for call in (lambda: fetch(url, offline), lambda: download(url, tmp_path / "file", opener=offline)):
        with pytest.raises(ValueError, match="only https addresses are downloaded"):
            call()


@pytest.mark.parametrize("url", ["https://example.org/x", "https://openml.org.example.org/x"])
def test_only_hosts_of_openml_are_opened(url):
    with pytest.raises(ValueError, match=r"only hosts of openml\.org"):
        open_url(Request(url))


def test_redirects_are_checked():
    request = Request("https://api.openml.org/x")
    with pytest.raises(ValueError, match="only https"):
        CheckedRedirects().redirect_request(request, None, 302, "Found", {}, "http://api.openml.org/x")
    with pytest.raises(ValueError, match=r"only hosts of openml\.org"):
        CheckedRedirects().redirect_request(request, None, 302, "Found", {}, "https://example.org/x")


def test_a_data_folder_that_does_not_exist_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBAYES_DATA", str(tmp_path / "gone"))
    for call in (lambda: load("iris"), list_datasets, lambda: is_local("iris")):
        with pytest.raises(ValueError, match=r"CALIBAYES_DATA.*gone.*does not exist"):
            call()
    monkeypatch.setenv("CALIBAYES_DATA", "")
    assert len(load("iris").data) == 150
    with pytest.raises(ValueError, match=r"data_home.*gone.*does not exist"):
        load("iris", data_home=tmp_path / "gone")


def test_columns_of_little_variance_within_a_class_are_dropped():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 50)
    frame = pd.DataFrame({"small": rng.normal(0, 1e-3, 100) + groups, "large": rng.normal(size=100)})
    data = Dataset("two groups", frame, pd.Series(groups, name="target"))
    assert frame["small"].var() > 0.2
    shapes = {
        least: numeric_matrix(data, within_classes=True, least_variance=least)[0].shape[1]
        for least in (0, 1e-4)
    }
    assert shapes == {0: 2, 1e-4: 1}
    assert numeric_matrix(data, least_variance=1e-4)[0].shape[1] == 2
    tiny = Dataset("tiny", frame * 1e-200, data.target)
    assert (
        numeric_matrix(tiny)[0].shape[1] == 2
    )  # the variance is 0 in floating point, the columns are not constant
