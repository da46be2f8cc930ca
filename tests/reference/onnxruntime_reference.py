"""Writes what onnxruntime answers, for the project's tests to compare with.

    onnxruntime_reference.py OUT

fills OUT with
    <model>/<case>.npz   uncompressed; arrays `in.<input name>` and `out.<output name>`
    ocr/<name>.png       pictures of text
    ocr/<name>.txt       the lines that the pipeline of ocr.py reads in them
    tokens.tsv           token ids of the MiniLM tokenizer, a tab, the text with \\n and \\t escaped
"""
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers

import inputs
import ocr
import pictures

MODELS = Path(__file__).resolve().parents[2] / "assets/models"

# More texts that a tokenizer can get wrong.
TEXTS = inputs.SENTENCES + [
    "",
    "   \t\n ",
    "UPPER lower MiXeD",
    "don't; won't, 'quoted' \"twice\" -- dash—dash…",
    "e\u0301te\u0301 vs été; ﬁne ligature; ＦＵＬＬ width",
    "unaffable antidisestablishmentarianism " + "x" * 120,
    "emoji 😀 and\u200bzero\u00a0width, control\u0007bell",
    "1,234.56€ 50% #tag @user a_b c/d",
    "नमस्ते दुनिया, Привет мир, مرحبا بالعالم",
]


def session(path):
    """A session that computes as the file says: on one thread, with no fusion of its own."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return onnxruntime.InferenceSession(
        str(MODELS / path), options, providers=["CPUExecutionProvider"]
    )


def write_cases(out, name, path, cases):
    running = session(path)
    names = [output.name for output in running.get_outputs()]
    (out / name).mkdir(parents=True, exist_ok=True)
    for case, feeds in cases:
        arrays = {f"in.{key}": np.ascontiguousarray(value) for key, value in feeds.items()}
        for key, value in zip(names, running.run(names, feeds)):
            arrays[f"out.{key}"] = value
        np.savez(out / name / f"{case}.npz", **arrays)


def write_pictures(out, reader):
    out.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.pictures():
        picture.save(out / f"{name}.png")
        lines = [text for text, _, _ in reader.read(np.asarray(picture))]
        (out / f"{name}.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def main(out):
    tokenizer = tokenizers.Tokenizer.from_file(str(MODELS / "minilm/tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    write_cases(out, "minilm", "minilm/minilm.onnx", inputs.minilm(tokenizer))
    write_cases(out, "det", "pp-ocr/det.onnx", inputs.detection())
    write_cases(out, "rec", "pp-ocr/rec.onnx", inputs.recognition())
    write_cases(out, "cls", "pp-ocr/cls.onnx", inputs.classification())
    write_cases(out, "basic-pitch", "basic-pitch/nmp.onnx", inputs.pitch())
    write_cases(out, "common-det", "ddddocr/common_det.onnx", inputs.objects())
    write_pictures(
        out / "ocr", ocr.Ocr(session("pp-ocr/det.onnx"), session("pp-ocr/rec.onnx"))
    )
    with open(out / "tokens.tsv", "w", encoding="utf-8", newline="\n") as file:
        for text in TEXTS:
            ids = " ".join(map(str, tokenizer.encode(text).ids))
            line = text.replace("\n", "\\n").replace("\t", "\\t")
            file.write(f"{ids}\t{line}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
