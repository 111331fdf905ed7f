"""Downloads from a server on this machine: whole and checked, or not there at all."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading

import pytest
import torch
from cifar_archive import batches, write_archive

from traincast.__main__ import run
from traincast.api.logs import read_log
from traincast.errors import DownloadError, InputError
from traincast.recipes.data import cifar10, load
from traincast.recipes.data.download import cache_folder, download
from traincast.recipes.data.load import load_dataset

CONTENT = bytes(range(256)) * 3000
MD5 = hashlib.md5(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/unknown-length":
            self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        n_sent = 1000 if self.path == "/cut" else len(self.server.content)
        self.wfile.write(self.server.content[:n_sent])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.content = CONTENT
        running.address = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "traincast" / "data"


def test_a_download_is_whole_and_reports_progress(server, tmp_path):
    seen = []
    path = tmp_path / "new" / "file"
    download(f"{server.address}/file", path, md5=MD5, on_progress=lambda done, whole: seen.append((done, whole)))
    assert path.read_bytes() == CONTENT
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [place.name for place in path.parent.iterdir()] == ["file"]


def test_a_server_that_does_not_tell_the_length_is_fine(server, tmp_path):
    seen = []
    download(
        f"{server.address}/unknown-length", tmp_path / "file", md5=MD5, on_progress=lambda *both: seen.append(both)
    )
    assert seen[-1] == (len(CONTENT), None)


@pytest.mark.parametrize(
    ("page", "md5", "words"),
    [
        ("/file", "0" * 32, f"has the MD5 checksum {MD5} instead of 0000"),
        ("/cut", MD5, "the connection ended 767000 bytes too early"),
        ("/missing", MD5, "the server answered 404"),
    ],
)
def test_what_is_not_the_whole_file_leaves_nothing_and_keeps_what_was_there(server, tmp_path, page, md5, words):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(DownloadError, match=words):
        download(server.address + page, path, md5=md5)
    assert [place.name for place in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_an_interrupted_download_leaves_nothing(server, tmp_path):
    def interrupt(n_done, n_bytes):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(f"{server.address}/file", tmp_path / "file", md5=MD5, on_progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_gives_one_sentence(tmp_path):
    with pytest.raises(DownloadError, match=r"could not be fetched to .*refused"):
        download("http://127.0.0.1:9/file", tmp_path / "file", md5=MD5)


def test_only_web_addresses_are_fetched(tmp_path):
    with pytest.raises(DownloadError, match="starts with https"):
        download("file:///etc/passwd", tmp_path / "file", md5=MD5)


def test_a_place_that_cannot_be_written_gives_one_sentence(server, tmp_path):
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(DownloadError, match="could not be fetched to"):
        download(f"{server.address}/file", tmp_path / "taken" / "file", md5=MD5)


def test_cifar10_is_not_fetched_unless_allowed(cache):
    assert cache_folder() == cache
    with pytest.raises(InputError, match=r"CIFAR-10 is not in .* allow its download"):
        load_dataset("cifar10")


def test_cifar10_is_fetched_once_and_then_read_from_the_cache(server, cache, tmp_path, monkeypatch):
    server.content = write_archive(tmp_path / "small.tar.gz").read_bytes()
    monkeypatch.setattr(load, "CIFAR10_URL", f"{server.address}/cifar-10-python.tar.gz")
    monkeypatch.setattr(load, "CIFAR10_MD5", hashlib.md5(server.content).hexdigest())
    monkeypatch.setattr(load, "read_cifar10", lambda path, image_side: path)
    seen = []
    path = load_dataset("cifar10", download=True, on_progress=lambda *both: seen.append(both))
    assert path == cache / "cifar-10-python.tar.gz"
    assert path.read_bytes() == server.content
    assert seen
    monkeypatch.setattr(load, "CIFAR10_URL", "http://127.0.0.1:9/cifar-10-python.tar.gz")
    assert load_dataset("cifar10") == path


def test_cifar10_is_fetched_with_its_bytes_told_and_trained_on(server, tmp_path, monkeypatch, capsys):
    torch.set_num_threads(1)
    server.content = write_archive(tmp_path / "small.tar.gz").read_bytes()
    monkeypatch.setattr(load, "CIFAR10_URL", f"{server.address}/cifar-10-python.tar.gz")
    monkeypatch.setattr(load, "CIFAR10_MD5", hashlib.md5(server.content).hexdigest())
    for name, content in batches().items():
        monkeypatch.setitem(cifar10.CHECKSUMS, name, hashlib.md5(content).hexdigest())
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    line = ["train", "scratch", "--data", "cifar10", "--epochs", "1", "--batch", "50"]
    assert run([*line, "--download", "--json"]) == 0
    told = capsys.readouterr()
    assert f"Downloading, bytes: {len(server.content):,} of {len(server.content):,}" in told.err
    assert "Training (scratch): 2 of 2" in told.err
    assert json.loads(told.out)["result"]["n_steps"] == 2  # of 100 images
    log = read_log(tmp_path / "runs" / "scratch-cifar_resnet20-cifar10" / "log.csv")
    assert log.find("loss", "train").steps.tolist() == [1, 2]
    assert run(line) == 0  # it had ended, and the data are here
    assert "Downloading" not in capsys.readouterr().err
