"""Write the hostile files of this folder: python -m tests.files.corpus.write_corpus

They are made from a small valid model. Run it after a change of the format, so that each file is refused for what is
hostile in it and not because its model is out of date. Files in the folder ``found`` are findings of `tests.files.fuzz`,
which stay as they are.
"""

import re
from pathlib import Path

from tests.files.hostile_containers import CONTAINERS
from tests.files.hostile_documents import JSON, MODELS, TAGS, VERSIONS
from tests.files.sample_models import small_model

FOLDER = Path(__file__).parent
KEPT = {**CONTAINERS, **VERSIONS, **JSON, **TAGS, **MODELS}
MOST_BYTES = 20_000
VALID = "valid.safetensors"
"""The file that the others are made from."""


def file_name(name: str) -> str:
    words = re.sub(r"(^| )-", " minus ", name.replace('"', " text ").lower())
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-") + ".safetensors"


def main() -> None:
    for old in FOLDER.glob("*.safetensors"):
        old.unlink()
    (FOLDER / VALID).write_bytes(small_model().content)
    for name, hostile in KEPT.items():
        content = hostile.make()
        path = FOLDER / file_name(name)
        assert not path.exists(), name
        if len(content) <= MOST_BYTES:
            path.write_bytes(content)


if __name__ == "__main__":
    main()
