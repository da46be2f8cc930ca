"""The OCR pipeline of examples/ocr over onnxruntime: the same steps in the same arithmetic.

Pictures are uint8 arrays [height, width, 3] in RGB order. Points are (x, y) in pixels.
"""
from types import SimpleNamespace

import numpy as np

import settings

S = SimpleNamespace(**settings.read())


def resample(picture, xs, ys):
    """Bilinear samples of `picture` at the points (xs, ys); outside, the border is repeated."""
    height, width = picture.shape[:2]
    xs = np.clip(xs, 0.0, width - 1.0)
    ys = np.clip(ys, 0.0, height - 1.0)
    x0 = np.floor(xs).astype(np.int64)
    y0 = np.floor(ys).astype(np.int64)
    x1 = np.minimum(x0 + 1, width - 1)
    y1 = np.minimum(y0 + 1, height - 1)
    fx = (xs - x0)[..., None]
    fy = (ys - y0)[..., None]
    p = picture.astype(np.float64)
    top = p[y0, x0] * (1.0 - fx) + p[y0, x1] * fx
    bottom = p[y1, x0] * (1.0 - fx) + p[y1, x1] * fx
    return top * (1.0 - fy) + bottom * fy


def normalise(samples):
    """[h, w, RGB] in 0..=255 to [BGR, h, w] in -1..=1, as the networks were trained."""
    return ((samples / 255.0 - 0.5) / 0.5)[..., ::-1].transpose(2, 0, 1).astype(np.float32)


def detect_size(height, width):
    """The size of detection's input for a picture."""
    scale = min(1.0, S.DETECT_MAX_SIDE / max(height, width))

    def side(length):
        steps = int(np.floor(length * scale / S.DETECT_STEP + 0.5))
        return min(max(steps, 1) * S.DETECT_STEP, S.DETECT_MAX_SIDE)

    return side(height), side(width)


def detect_input(picture):
    """Detection's input [1, 3, h, w]."""
    height, width = picture.shape[:2]
    h, w = detect_size(height, width)
    xs = (np.arange(w) + 0.5) * width / w - 0.5
    ys = (np.arange(h) + 0.5) * height / h - 0.5
    xs, ys = np.meshgrid(xs, ys)
    return normalise(resample(picture, xs, ys))[None]


def components(mask):
    """The 8-connected components of `mask`, each a list of runs (y, first x, last x)."""
    runs, parent, above = [], [], range(0)

    def root(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for y in range(mask.shape[0]):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], mask[y].astype(np.int8), [0]))))
        start = len(runs)
        for first, end in zip(edges[0::2], edges[1::2]):
            runs.append((y, int(first), int(end) - 1))
            parent.append(len(parent))
        here = range(start, len(runs))
        for i in here:
            for j in above:
                if runs[j][1] <= runs[i][2] + 1 and runs[i][1] <= runs[j][2] + 1:
                    a, b = root(i), root(j)
                    parent[max(a, b)] = min(a, b)
        above = here
    groups = {}
    for i, run in enumerate(runs):
        groups.setdefault(root(i), []).append(run)
    return [groups[key] for key in sorted(groups)]


def hull(points):
    """The convex hull of integer points, anticlockwise with y upwards, no three in line."""
    points = sorted(set(points))
    if len(points) < 3:
        return points

    def half(sequence):
        chain = []
        for p in sequence:
            while len(chain) > 1 and cross(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        return chain[:-1]

    return half(points) + half(reversed(points))


def cross(o, a, b):
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def smallest_rectangle(points):
    """The rectangle of least area around a convex polygon that shares a direction with a side.

    Returns (centre x, centre y, direction x, direction y, length along it, length across)."""
    best = None
    for i, (x0, y0) in enumerate(points):
        x1, y1 = points[(i + 1) % len(points)]
        length = np.sqrt(float((x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0)))
        if length == 0.0:
            continue
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        along = [x * dx + y * dy for x, y in points]
        across = [y * dx - x * dy for x, y in points]
        a0, a1, c0, c1 = min(along), max(along), min(across), max(across)
        area = (a1 - a0) * (c1 - c0)
        if best is None or area < best[0]:
            a, c = (a0 + a1) / 2.0, (c0 + c1) / 2.0
            best = (area, (a * dx - c * dy, a * dy + c * dx, dx, dy, a1 - a0, c1 - c0))
    return None if best is None else best[1]


def corners(rectangle):
    """The corners of a rectangle: top left, top right, bottom right, bottom left."""
    cx, cy, dx, dy, length, breadth = rectangle
    points = []
    for u, v in ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)):
        a, c = u * length, v * breadth
        points.append((cx + a * dx - c * dy, cy + a * dy + c * dx))
    points.sort()
    left = sorted(points[:2], key=lambda p: p[1])
    right = sorted(points[2:], key=lambda p: p[1])
    return [left[0], right[0], right[1], left[1]]


def mean_inside(probability, rectangle):
    """The mean of the map over the pixels whose centres lie in the rectangle."""
    cx, cy, dx, dy, length, breadth = rectangle
    height, width = probability.shape
    points = corners(rectangle)
    x0 = max(int(np.floor(min(p[0] for p in points))), 0)
    x1 = min(int(np.ceil(max(p[0] for p in points))), width - 1)
    y0 = max(int(np.floor(min(p[1] for p in points))), 0)
    y1 = min(int(np.ceil(max(p[1] for p in points))), height - 1)
    ys, xs = np.mgrid[y0 : y1 + 1, x0 : x1 + 1].astype(np.float64)
    along = (xs - cx) * dx + (ys - cy) * dy
    across = (ys - cy) * dx - (xs - cx) * dy
    inside = (np.abs(along) <= length / 2 + 1e-6) & (np.abs(across) <= breadth / 2 + 1e-6)
    values = probability[y0 : y1 + 1, x0 : x1 + 1][inside]
    return float(values.astype(np.float64).mean()) if values.size else 0.0


def boxes(probability, height, width):
    """The quadrilaterals of text in a picture of the given size, in reading order."""
    mask = probability.astype(np.float64) > S.PIXEL_THRESHOLD
    # Grow by one pixel to the right and downwards, which joins the letters of a word.
    grown = mask.copy()
    grown[1:] |= mask[:-1]
    grown[:, 1:] |= mask[:, :-1]
    grown[1:, 1:] |= mask[:-1, :-1]

    found = []
    for runs in components(grown):
        points = hull([p for y, first, last in runs for p in ((first, y), (last, y))])
        rectangle = smallest_rectangle(points)
        if rectangle is None or min(rectangle[4], rectangle[5]) < S.MIN_SIDE:
            continue
        if mean_inside(probability, rectangle) < S.BOX_THRESHOLD:
            continue
        cx, cy, dx, dy, length, breadth = rectangle
        out = length * breadth * S.UNCLIP_RATIO / (2.0 * (length + breadth))
        quad = corners((cx, cy, dx, dy, length + 2.0 * out, breadth + 2.0 * out))
        sx, sy = width / probability.shape[1], height / probability.shape[0]
        found.append(
            [
                (min(max(x * sx, 0.0), width - 1.0), min(max(y * sy, 0.0), height - 1.0))
                for x, y in quad
            ]
        )
    return reading_order(found)


def distance(a, b):
    return float(np.sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1])))


def reading_order(quads):
    """Rows from top to bottom, each from left to right: a box belongs to a row when its centre is
    within half a height of the centre of the row's topmost box."""

    def centre(q):
        return (q[0][1] + q[1][1] + q[2][1] + q[3][1]) / 4.0

    rows = []
    for q in sorted(quads, key=lambda q: (centre(q), q[0][0])):
        if rows:
            first = rows[-1][0]
            if centre(q) - centre(first) < distance(first[0], first[3]) / 2.0:
                rows[-1].append(q)
                continue
        rows.append([q])
    return [q for row in rows for q in sorted(row, key=lambda q: q[0][0])]


def line_size(quad):
    """Corners so that text runs from the first to the second, and the width of the line image."""
    width = max(distance(quad[0], quad[1]), distance(quad[3], quad[2]))
    height = max(distance(quad[0], quad[3]), distance(quad[1], quad[2]))
    if height >= width * S.VERTICAL_RATIO:
        quad = [quad[1], quad[2], quad[3], quad[0]]
        width, height = height, width
    pixels = int(np.ceil(S.LINE_HEIGHT * width / max(height, 1.0)))
    return quad, min(max(pixels, 1), S.LINE_MAX_WIDTH)


def line_image(picture, quad, width):
    """The quadrilateral pulled straight to LINE_HEIGHT x width, normalised: [3, height, width]."""
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = quad
    # The projective map of the unit square onto the quadrilateral (Heckbert 1989, section 2.2.3).
    sx, sy = x0 - x1 + x2 - x3, y0 - y1 + y2 - y3
    dx1, dy1, dx2, dy2 = x1 - x2, y1 - y2, x3 - x2, y3 - y2
    det = dx1 * dy2 - dx2 * dy1
    g = (sx * dy2 - dx2 * sy) / det if det != 0.0 else 0.0
    h = (dx1 * sy - sx * dy1) / det if det != 0.0 else 0.0
    a, b = x1 - x0 + g * x1, x3 - x0 + h * x3
    d, e = y1 - y0 + g * y1, y3 - y0 + h * y3
    us = (np.arange(width) + 0.5) / width
    vs = (np.arange(S.LINE_HEIGHT) + 0.5) / S.LINE_HEIGHT
    u, v = np.meshgrid(us, vs)
    w = g * u + h * v + 1.0
    return normalise(resample(picture, (a * u + b * v + x0) / w, (d * u + e * v + y0) / w))


def batches(lines):
    """Groups lines of similar width: lists of indices into `lines`, and the width of each group."""
    order = sorted(range(len(lines)), key=lambda i: (lines[i].shape[2], i))
    for at in range(0, len(order), S.LINE_BATCH):
        group = order[at : at + S.LINE_BATCH]
        widest = max(lines[i].shape[2] for i in group)
        steps = -(-widest // S.LINE_WIDTH_STEP)
        yield group, max(steps * S.LINE_WIDTH_STEP, S.LINE_MIN_WIDTH)


def batch_input(lines, group, width):
    """Recognition's input [lines, 3, LINE_HEIGHT, width]; zeros on the right of shorter lines."""
    x = np.zeros((len(group), 3, S.LINE_HEIGHT, width), np.float32)
    for row, i in enumerate(group):
        x[row, :, :, : lines[i].shape[2]] = lines[i]
    return x


def decode(probabilities, characters):
    """Greedy CTC: the likeliest class of each step, repeats merged, blanks (class 0) dropped.

    Returns the text without spaces around it, and the mean probability of its characters."""
    text, scores, last = [], [], 0
    for step in probabilities:
        best = int(step.argmax())
        if best != 0 and best != last:
            text.append(characters[best - 1])
            scores.append(float(step[best]))
        last = best
    return "".join(text).strip(" "), (sum(scores) / len(scores) if scores else 0.0)


class Ocr:
    """Detection and recognition over two onnxruntime sessions."""

    def __init__(self, detection, recognition):
        self.detection, self.recognition = detection, recognition
        listed = recognition.get_modelmeta().custom_metadata_map["character"]
        self.characters = listed.split("\n") + [" "]

    def read(self, picture):
        """The lines of text in reading order: (text, score, quadrilateral)."""
        x = detect_input(picture)
        probability = self.detection.run(None, {self.detection.get_inputs()[0].name: x})[0][0, 0]
        quads = boxes(probability, *picture.shape[:2])
        lines = [line_image(picture, *line_size(quad)) for quad in quads]
        texts = [None] * len(lines)
        for group, width in batches(lines):
            x = batch_input(lines, group, width)
            out = self.recognition.run(None, {self.recognition.get_inputs()[0].name: x})[0]
            for row, i in enumerate(group):
                texts[i] = decode(out[row], self.characters)
        return [
            (text, score, quad)
            for (text, score), quad in zip(texts, quads)
            if text and score >= S.LINE_THRESHOLD
        ]
