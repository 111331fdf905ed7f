"""Files for tests of this room."""

import pytest


@pytest.fixture
def written(tmp_path):
    def write(text, name="jobs.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write
