"""The inputs that each model's reference outputs are made from: a few sizes of every dynamic
dimension, the smallest among them. Equal on every machine: seeds are fixed, pictures are drawn.

Each function yields (case name, {input name: array}).
"""
import numpy as np

import ocr
import pictures

SENTENCES = [
    "The weather is lovely today.",
    "It's so sunny outside!",
    "He drove to the stadium.",
    "A kernel that is compiled ahead of time needs no compiler at run time, only a driver that "
    "loads it, and the memory that its plan asked for.",
    "Zürich, Malmö and São Paulo: naïve résumés don't tokenise themselves (see §3.2, p. 17).",
    "Photosynthesis converts light energy into chemical energy.",
    "北京 is the capital of China; 東京 that of Japan.",
    "def mean(xs): return sum(xs) / len(xs)  # raises ZeroDivisionError",
]


def tokenised(tokenizer, texts, batch, sequence, padded_rows=()):
    """Token ids, masks and types of `batch` rows of `sequence` tokens; texts repeat as needed.

    Rows named in `padded_rows` hold padding alone. A sequence longer than 64 is filled by joining
    sentences, so that long rows are really long."""
    ids = np.zeros((batch, sequence), np.int64)
    mask = np.zeros((batch, sequence), np.int64)
    for row in range(batch):
        if row in padded_rows:
            continue
        joined = 1 if row % 2 else max(1, sequence // 24)
        text = " ".join(texts[(row + i) % len(texts)] for i in range(joined))
        encoded = tokenizer.encode(text).ids
        if len(encoded) > sequence:
            encoded = encoded[: max(sequence - 1, 0)] + encoded[-1:]
        ids[row, : len(encoded)] = encoded
        mask[row, : len(encoded)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def minilm(tokenizer):
    for batch, sequence, padded in ((1, 1, ()), (1, 9, ()), (3, 17, (1,)), (8, 64, (7,)),
                                    (32, 128, ()), (1, 512, ()), (8, 512, ())):
        name = f"{batch}x{sequence}" + ("_padded-row" if padded else "")
        yield name, tokenised(tokenizer, SENTENCES, batch, sequence, padded)


def fitted(picture, height, width):
    """The middle of a picture, repeated at its border or cut, as [3, height, width]."""
    h, w = picture.shape[:2]
    ys = np.clip(np.arange(height) + (h - height) // 2, 0, h - 1)
    xs = np.clip(np.arange(width) + (w - width) // 2, 0, w - 1)
    return ocr.normalise(picture[np.ix_(ys, xs)].astype(np.float64))


def detection():
    drawn = [np.asarray(p) for _, p in pictures.pictures()]
    for batch, height, width in ((1, 32, 32), (1, 64, 96), (2, 192, 160), (1, 320, 640),
                                 (1, 960, 960)):
        x = np.stack([fitted(drawn[-1 - i], height, width) for i in range(batch)])
        yield f"{batch}x{height}x{width}", {"x": x}


def text_lines(height, width, count):
    """Pictures of single lines of text at `height`, as recognition wants them."""
    rng = np.random.default_rng(7)
    words = " ".join(SENTENCES).encode("ascii", "ignore").decode().split()
    rows = []
    for i in range(count):
        text = " ".join(words[(5 * i + k) % len(words)] for k in range(max(1, width // 90)))
        fonts = ("Lato-Regular", "SourceSerifPro-Regular", "Caladea-Regular", "Manrope-Medium")
        face = (fonts[i % 4], round(height * 0.6), 4, round(height * 0.1), text)
        paper = tuple(int(v) for v in rng.integers(200, 256, 3))
        rows.append(ocr.normalise(np.asarray(pictures.page((width, height), [face], paper=paper))
                                  .astype(np.float64)))
    return np.stack(rows)


def recognition():
    for batch, width in ((1, 8), (1, 32), (2, 100), (1, 320), (8, 320), (1, 1280)):
        yield f"{batch}x48x{width}", {"x": text_lines(48, width, batch)}


def classification():
    for batch, height, width in ((1, 16, 16), (1, 32, 100), (1, 48, 192), (6, 48, 192),
                                 (2, 64, 320)):
        x = text_lines(height, width, batch)
        x[1::2] = x[1::2, :, ::-1, ::-1]  # every other line upside down
        yield f"{batch}x{height}x{width}", {"x": x}


def audio(batch, samples=43844, rate=22050):
    """Plucked notes with a little noise: [batch, samples, 1], about -1..=1."""
    rng = np.random.default_rng(11)
    t = np.arange(samples) / rate
    rows = []
    for _ in range(batch):
        sound = 0.003 * rng.standard_normal(samples)
        for start in np.arange(0.0, 1.9, 0.24):
            pitch = 440.0 * 2.0 ** ((rng.integers(40, 84) - 69) / 12.0)
            since = np.clip(t - start, 0.0, None)
            for harmonic in (1, 2, 3, 4):
                sound += (t >= start) * 0.3 / harmonic * np.exp(-3.0 * harmonic * since) \
                    * np.sin(2.0 * np.pi * pitch * harmonic * since)
        rows.append(np.clip(sound, -1.0, 1.0))
    return np.stack(rows)[..., None].astype(np.float32)


def pitch():
    for batch in (1, 2, 5):
        yield f"{batch}", {"serving_default_input_2:0": audio(batch)}


def terrain():
    """Heights with noise, how much of it, and how difficult the terrain is to be."""
    rng = np.random.default_rng(17)
    for batch in (1, 2):
        y, x = np.mgrid[0:128, 0:128] / 128.0
        hills = np.stack([np.sin(5 * x + i) * np.cos(4 * y) for i in range(batch)])[:, None]
        sigma = rng.uniform(0.1, 2.0, batch)
        noisy = hills + sigma[:, None, None, None] * rng.standard_normal(hills.shape)
        yield f"{batch}", {"noisy": noisy.astype(np.float32), "sigma": sigma.astype(np.float32),
                           "difficulty": rng.uniform(0, 1, batch).astype(np.float32)}


def windows(rate, count=3, batch=1):
    """Consecutive windows of sound, each with the end of the one before it: [batch, 9/8 · 32 ms]."""
    window = rate // 1000 * 32
    context = window // 8
    sound = audio(batch, context + count * window, rate)[..., 0]
    for i in range(count):
        yield np.ascontiguousarray(sound[:, i * window: (i + 1) * window + context])


def letters():
    rng = np.random.default_rng(19)
    for batch, sequence in ((1, 1), (1, 7), (2, 24), (3, 50)):
        yield f"{batch}x{sequence}", {"input": rng.integers(1, 30, (batch, sequence))}


def objects():
    """ddddocr's detector: BGR in 0..=255, padded with 114."""
    drawn = dict(pictures.pictures())
    for name in ("receipt", "turned"):
        picture = np.asarray(drawn[name])[:416, :416, ::-1]
        x = np.full((1, 3, 416, 416), 114.0, np.float32)
        x[0, :, : picture.shape[0], : picture.shape[1]] = picture.transpose(2, 0, 1)
        yield name, {"images": x}
