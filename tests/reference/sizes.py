"""Networks whose sizes data gives: what they choose is none, one or all, as the input `limit` says.

    sizes.py OUT

fills OUT with
    <network>/model.onnx
    <network>/<case>.npz   arrays `in.<input name>` and `out.<output name>`
"""
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import parser

# Name, interface, body, and the sizes (by dim) and limits that it is tried at. Integers are below 4.
NETWORKS = [
    ("suppression",
     "(float[batch, n, 4] boxes, float[batch, 3, n] scores, int64 limit)"
     " => (int64[k, 3] selected, float[k, 4] chosen, float[k] best)",
     """
     most = Constant<value_int = 5>()
     overlap = Constant<value_float = 0.4>()
     hundredth = Constant<value_float = 0.01>()
     number = Cast<to = 1>(limit)
     least = Mul(number, hundredth)
     selected = NonMaxSuppression(boxes, scores, most, overlap, least)
     places = Constant<value_ints = [0, 2]>()
     at = Gather<axis = 1>(selected, places)
     chosen = GatherND(boxes, at)
     best = GatherND(scores, selected)
     """,
     [(dict(batch=1, n=1), -1000), (dict(batch=1, n=40), 1000), (dict(batch=2, n=17), -1000),
      (dict(batch=2, n=40), 50)]),
    ("suppression_of_centres",
     "(float[1, n, 4] raw, float[1, 1, n] scores, int64 limit) => (int64[k, 3] selected, float[k, 4] chosen)",
     """
     boxes = Abs(raw)
     overlap = Constant<value_float = 0.5>()
     selected = NonMaxSuppression<center_point_box = 1>(boxes, scores, limit, overlap)
     column = Constant<value_int = 2>()
     at = Gather<axis = 1>(selected, column)
     zero = Constant<value_ints = [0]>()
     all = Squeeze(boxes, zero)
     chosen = Gather(all, at)
     """,
     [(dict(n=1), 3), (dict(n=30), 0), (dict(n=30), 1), (dict(n=30), 100)]),
    ("unique",
     "(int64[n] x) => (int64[m] y, int64[m] first, int64[n] inverse, int64[m] counts, int64[n] back)",
     """
     y, first, inverse, counts = Unique(x)
     back = Gather(y, inverse)
     """,
     [(dict(n=1), None), (dict(n=2), None), (dict(n=60), None)]),
    ("unique_unsorted_rows",
     "(int64[n, 3] x) => (float[m, 3] y, int64[n] inverse, int64[m] counts, float[m] sums)",
     """
     two = Constant<value_int = 2>()
     bits = Mod(x, two)
     rows = Cast<to = 1>(bits)
     y, first, inverse, counts = Unique<axis = 0, sorted = 0>(rows)
     sums = ReduceSum<keepdims = 0>(y, last)
     """,
     [(dict(n=1), None), (dict(n=5), None), (dict(n=40), None)]),
    ("compress",
     "(int64[n] x, float[n, 8] table, int64 limit)"
     " => (float[m, 8] rows, float[m, 5] product, float[8] most, int64[m] at)",
     """
     chosen = Less(x, limit)
     rows = Compress<axis = 0>(table, chosen)
     product = MatMul(rows, weights)
     both = Concat<axis = 0>(table, rows)
     most = ReduceMax<axes = [0], keepdims = 0>(both)
     at = Compress(x, chosen)
     """,
     [(dict(n=1), 0), (dict(n=1), 4), (dict(n=50), 0), (dict(n=50), 2), (dict(n=50), 4)]),
    ("places_that_are_not_zero",
     "(float[n, 5] x, int64 limit) => (int64[2, m] places, float[m] values, float total, int64[1] count)",
     """
     number = Cast<to = 1>(limit)
     large = Less(number, x)
     places = NonZero(large)
     turned = Transpose<perm = [1, 0]>(places)
     values = GatherND(x, turned)
     total = ReduceSum<keepdims = 0>(values)
     count = Shape(values)
     """,
     [(dict(n=1), 9), (dict(n=1), -9), (dict(n=33), 9), (dict(n=33), 0), (dict(n=33), -9)]),
    ("range",
     "(float[n, 12] x, int64 limit) => (int64[m] range, float[m, k] shaped, float[m, 3] ones, float[m, r] wide)",
     """
     zero = Constant<value_int = 0>()
     one = Constant<value_int = 1>()
     first = Constant<value_ints = [0]>()
     range = Range(zero, limit, one)
     size = Unsqueeze(limit, first)
     rest = Constant<value_ints = [-1]>()
     shape = Concat<axis = 0>(size, rest)
     shaped = Reshape(x, shape)
     three = Constant<value_ints = [3]>()
     block = Concat<axis = 0>(size, three)
     filled = ConstantOfShape<value = float[1] {1.5}>(block)
     column = Cast<to = 1>(range)
     high = Unsqueeze(column, unit)
     ones = Add(filled, high)
     flat = Reshape(x, rest)
     extents = Shape(flat)
     both = Concat<axis = 0>(size, extents)
     wide = Expand(flat, both)
     """,
     [(dict(n=1), 1), (dict(n=1), 12), (dict(n=9), 4), (dict(n=9), 27)]),
    ("largest",
     "(float[n, 16] x, int64 limit) => (float[n, k] y, int64[n, k] at, float[n, k] softmax, float[n, r] rest)",
     """
     first = Constant<value_ints = [0]>()
     k = Unsqueeze(limit, first)
     y, at = TopK<axis = -1>(x, k)
     softmax = Softmax<axis = -1>(y)
     end = Constant<value_ints = [16]>()
     axis = Constant<value_ints = [1]>()
     rest = Slice(x, k, end, axis)
     """,
     [(dict(n=1), 1), (dict(n=7), 1), (dict(n=7), 5), (dict(n=7), 16)]),
    ("grown",
     "(float[n, 3] x, int64[n] classes, int64 limit)"
     " => (float[p, 3] padded, float[n, r] tiled, float[n, d] hot, float[n, d] product)",
     """
     first = Constant<value_ints = [0]>()
     one = Constant<value_ints = [1]>()
     size = Unsqueeze(limit, first)
     pads = Concat<axis = 0>(size, first, one, first)
     padded = Pad(x, pads)
     repeats = Concat<axis = 0>(one, size)
     tiled = Tile(x, repeats)
     four = Constant<value_int = 4>()
     depth = Add(limit, four)
     values = Constant<value_floats = [0.0, 1.0]>()
     hot = OneHot(classes, depth, values)
     turned = Transpose<perm = [1, 0]>(hot)
     square = MatMul(hot, turned)
     product = MatMul(square, hot)
     """,
     [(dict(n=1), 0), (dict(n=1), 1), (dict(n=6), 0), (dict(n=6), 7)]),
    ("scaled",
     "(float[n, 2, 5, 8] x, int64 limit)"
     " => (float[n, 2, a, b] nearest, float[n, 2, c, d] linear, float[n, 2, e, f] cubic, float[n, 2, g, h] aligned,"
     " float[n, 2, i, j] smooth, float sum)",
     """
     tenth = Constant<value_float = 0.1>()
     number = Cast<to = 1>(limit)
     factor = Mul(number, tenth)
     half = Constant<value_float = 0.55>()
     other = Mul(factor, half)
     first = Constant<value_ints = [0]>()
     ones = Constant<value_floats = [1.0, 1.0]>()
     tall = Unsqueeze(factor, first)
     broad = Unsqueeze(other, first)
     scales = Concat<axis = 0>(ones, tall, broad)
     nearest = Resize<mode = "nearest">(x, , scales)
     linear = Resize<mode = "linear">(x, , scales)
     cubic = Resize<mode = "cubic", exclude_outside = 1, coordinate_transformation_mode = "asymmetric">(x, , scales)
     aligned = Resize<mode = "linear", coordinate_transformation_mode = "align_corners">(x, , scales)
     smooth = Resize<mode = "linear", antialias = 1>(x, , scales)
     sum = ReduceSum<keepdims = 0>(linear)
     """,
     [(dict(n=1), 4), (dict(n=1), 10), (dict(n=2), 17), (dict(n=2), 36)]),
    ("scaled_along_axes",
     "(float[n, 5, 6] x, int64 limit) => (float[n, a, 6] up, float[n, b, c] kept, float[n, d, e] within)",
     """
     quarter = Constant<value_float = 0.25>()
     number = Cast<to = 1>(limit)
     factor = Mul(number, quarter)
     first = Constant<value_ints = [0]>()
     scales = Unsqueeze(factor, first)
     up = Resize<mode = "linear", axes = [1], coordinate_transformation_mode = "half_pixel_symmetric">(x, , scales)
     size = Unsqueeze(limit, first)
     seven = Constant<value_ints = [7]>()
     sizes = Concat<axis = 0>(size, seven)
     kept = Resize<mode = "linear", axes = [1, 2], keep_aspect_ratio_policy = "not_smaller">(x, , , sizes)
     within = Resize<mode = "linear", axes = [1, 2], keep_aspect_ratio_policy = "not_larger">(x, , , sizes)
     """,
     [(dict(n=1), 2), (dict(n=2), 4), (dict(n=2), 13)]),
    ("regions_of_any_size",
     "(float[4, 3, 6, 7] x, float[r, 4] raw, int64[r] image, int64 limit)"
     " => (float[r, 3, 2, 3] mean, float[r, 3, 2, 3] largest, float[r, 3, 1, 2] shifted, float[r, 3, 3, 1] most)",
     """
     scale = Cast<to = 1>(limit)
     begins, sizes = Split<axis = 1, num_outputs = 2>(raw)
     extents = Abs(sizes)
     ends = Add(begins, extents)
     unscaled = Concat<axis = 1>(begins, ends)
     rois = Mul(unscaled, scale)
     mean = RoiAlign<output_height = 2, output_width = 3>(x, rois, image)
     largest = RoiAlign<output_height = 2, output_width = 3, mode = "max">(x, rois, image)
     shifted = RoiAlign<output_height = 1, output_width = 2, spatial_scale = 0.7,
                        coordinate_transformation_mode = "output_half_pixel">(x, rois, image)
     most = RoiAlign<output_height = 3, output_width = 1, mode = "max",
                     coordinate_transformation_mode = "output_half_pixel">(x, rois, image)
     """,
     [(dict(r=1), 1), (dict(r=9), 4), (dict(r=17), 12), (dict(r=3), 40), (dict(r=2), 0)]),
    ("sequences_of_any_length",
     "(float[n, m, 3] x, float[n, m, 3] z, float[n, 3] start, int64[n] raw, int64 limit)"
     " => (float[n, 3] last, float[n, m, 3] sums, float[n, m, 3] products, float[n, 3] all)",
     """
     one = Constant<value = int64 {1}>()
     lengths = Add(raw, one)
     last, sums, products = Scan<num_scan_inputs = 2, directions = [0, 1], body = step
         (float[3] s, float[3] a, float[3] b) => (float[3] next, float[3] sum, float[3] product) {
             product = Mul(a, b)
             next = Add(s, product)
             sum = Identity(next)
         }>(lengths, start, x, z)
     all, every = Scan<num_scan_inputs = 1, body = step
         (float[3] s, float[3] a) => (float[3] next, float[3] same) {
             next = Sub(s, a)
             same = Identity(a)
         }>( , start, z)
     """,
     [(dict(n=1, m=4), 0), (dict(n=5, m=4), 0), (dict(n=3, m=7), 0)]),
]

# What is not of opset 17.
OPSETS = {"scaled": 18, "scaled_along_axes": 18, "regions_of_any_size": 18, "sequences_of_any_length": 8}

RNG = np.random.default_rng(23)
INITIALIZERS = {
    "weights": RNG.standard_normal((8, 5)).astype(np.float32),
    "last": np.array([1], np.int64),
    "unit": np.array([1], np.int64),
}


def network(name, interface, body):
    """A model from ONNX's text form; initializers are those of `INITIALIZERS` that it reads."""
    text = f'<ir_version: 8, opset_import: ["" : {OPSETS.get(name, 17)}]> {name} {interface} {{ {body} }}'
    model = parser.parse_model(text)
    read = {i for node in model.graph.node for i in node.input}
    stored = [onnx.numpy_helper.from_array(x, n) for n, x in INITIALIZERS.items() if n in read]
    model.graph.initializer.extend(stored)
    return model


def draw(value, sizes, limit):
    kind = value.type.tensor_type
    shape = [d.dim_value or sizes[d.dim_param] for d in kind.shape.dim]
    if value.name == "limit":
        return np.array(limit, np.int64)
    if kind.elem_type == onnx.TensorProto.INT64:
        return RNG.integers(0, 4, shape)
    return RNG.standard_normal(shape).astype(np.float32)


def main(out):
    for name, interface, body, trials in NETWORKS:
        model = network(name, interface, body)
        folder = out / name
        folder.mkdir(parents=True)
        onnx.save(model, folder / "model.onnx")
        running = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"])
        names = [o.name for o in running.get_outputs()]
        for sizes, limit in trials:
            feeds = {value.name: draw(value, sizes, limit) for value in model.graph.input}
            arrays = {f"in.{key}": value for key, value in feeds.items()}
            arrays |= {f"out.{k}": x for k, x in zip(names, running.run(names, feeds))}
            label = [f"{k}{v}" for k, v in sizes.items()] + ([] if limit is None else [f"limit{limit}"])
            np.savez(folder / f"{'-'.join(label)}.npz", **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
