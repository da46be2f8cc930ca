"""Writes what onnxruntime answers, for the project's tests to compare with.

    onnxruntime_reference.py OUT

fills OUT with
    <model>/<case>.npz   uncompressed; arrays `in.<input name>` and `out.<output name>`
    microsoft/<case>/    cases of microsoft.py
    classical/<case>/    cases of classical.py
    drawn/<case>/        cases of drawn.py
    exporters/<model>/   models of exporters.py
    sizes/<network>/     networks of sizes.py
    ocr/<name>.png       pictures of text
    ocr/<name>.txt       the lines that the pipeline of ocr.py reads in them
    tokens.tsv           token ids of the MiniLM tokenizer, a tab, the text with \\n and \\t escaped
"""
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers

import classical
import drawn
import exporters
import inputs
import microsoft
import ocr
import pictures
import sizes

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


def session(path, exact_integers=False):
    """A session that computes as the file says: on one thread, with no fusion of its own.

    Sums of products of 8-bit integers saturate on CPUs without instructions for them, unless
    `exact_integers`, which takes more of the optimiser."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_BASIC
    if exact_integers:
        options.add_session_config_entry("session.x64quantprecision", "1")
        options.graph_optimization_level = levels.ORT_ENABLE_EXTENDED
    return onnxruntime.InferenceSession(
        str(MODELS / path), options, providers=["CPUExecutionProvider"]
    )


def write_cases(out, name, path, cases, exact_integers=False):
    running = session(path, exact_integers)
    names = [output.name for output in running.get_outputs()]
    (out / name).mkdir(parents=True, exist_ok=True)
    for case, feeds in cases:
        arrays = {f"in.{key}": np.ascontiguousarray(value) for key, value in feeds.items()}
        for key, value in zip(names, running.run(names, feeds)):
            arrays[f"out.{key}"] = value
        np.savez(out / name / f"{case}.npz", **arrays)


def write_calls(out, name, path, windows, carried, **constant):
    """Consecutive calls: `carried` are inputs that are outputs of the call before, zero at first, as
    (input, output, shape)."""
    running = session(path)
    names = [output.name for output in running.get_outputs()]
    (out / name).mkdir(parents=True, exist_ok=True)
    state = {given: np.zeros(shape, np.float32) for given, _, shape in carried}
    for call, window in enumerate(windows):
        feeds = {"input": window, **state, **constant}
        results = dict(zip(names, running.run(names, feeds)))
        state = {given: results[made] for given, made, _ in carried}
        arrays = {f"in.{key}": value for key, value in feeds.items()}
        arrays |= {f"out.{key}": value for key, value in results.items()}
        np.savez(out / name / f"call-{call}.npz", **arrays)


def write_voice(out):
    """The six files of silero-vad; the first one for both of its rates."""
    state = [("state", "stateN", (2, 1, 128))]
    rates = {16000: np.array(16000, np.int64), 8000: np.array(8000, np.int64)}
    for name, file, rate in (("vad", "vad", 16000), ("vad-8k", "vad", 8000),
                             ("vad-op15", "vad_16k_op15", 16000)):
        write_calls(out, name, f"silero-vad/{file}.onnx", inputs.windows(rate), state, sr=rates[rate])
    for name, file in (("vad-half", "vad_half"), ("vad-openvino", "vad_openvino_16k")):
        write_calls(out, name, f"silero-vad/{file}.onnx", inputs.windows(16000), state)
    write_calls(out, "vad-ifless", "silero-vad/vad_op18_ifless.onnx",
                inputs.windows(16000, batch=2), [("state", "stateN", (2, 2, 128))],
                sr=rates[16000])
    rows = (np.concatenate(list(inputs.windows(16000, count))) for count in (3, 1, 5))
    write_calls(out, "vad-sequence", "silero-vad/vad_16k_sequence.onnx", rows,
                [("h", "hn", (1, 1, 128)), ("c", "cn", (1, 1, 128))])


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
    write_cases(out, "terrain", "terrain/unet.onnx", inputs.terrain())
    write_cases(out, "tashkeel", "tashkeel/rawi_ensemble.onnx", inputs.letters(), True)
    write_voice(out)
    microsoft.main(out / "microsoft")
    classical.main(out / "classical")
    drawn.main(out / "drawn")
    exporters.main(out / "exporters")
    sizes.main(out / "sizes")
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
