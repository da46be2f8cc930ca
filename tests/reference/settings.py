"""The constants of the OCR pipeline, read from the Rust source that owns them."""
import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "examples/ocr/src/settings.rs"


def read(path=SOURCE):
    """Returns a dict of every `pub const NAME: TYPE = NUMBER;` line of a Rust file."""
    pattern = re.compile(r"^pub const (\w+): (\w+) = ([\d._]+);$", re.MULTILINE)
    found = {
        name: (float if kind.startswith("f") else int)(value.replace("_", ""))
        for name, kind, value in pattern.findall(path.read_text())
    }
    declared = path.read_text().count("\npub const ")
    if len(found) != declared:
        raise ValueError(f"{path}: {declared} constants, {len(found)} of them plain numbers")
    return found
