"""Small models as exporters write them: layouts turned around every convolution, `:0` in names, shapes
computed with tensors, weights as nodes, old and new operator sets, expressions as dims.

    exporters.py OUT

fills OUT with
    <model>/model.onnx
    <model>/<n>.npz      arrays `in.<input name>` and `out.<output name>`, as onnxruntime answers
"""
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(3)
F32, I64, BOOL, U8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8
MODELS = {}
N = helper.make_node


def f(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def scalar(value, dtype=np.int64):
    return np.array(value, dtype)


def stored(value):
    return numpy_helper.from_array(value)


def model(name, opset, inputs, nodes, outputs, weights=(), feeds=(), imports=(), ir=8):
    """`inputs` and `outputs` are (name, type, shape); `weights` and each of `feeds` are arrays by name."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "exported", [value(*i) for i in inputs], [value(*o) for o in outputs],
        [numpy_helper.from_array(np.asarray(x), n) for n, x in dict(weights).items()])
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, v) for d, v in imports]
    MODELS[name] = (helper.make_model(graph, opset_imports=opsets, ir_version=ir), list(feeds))


def body(name, nodes, inputs, outputs, weights=()):
    value = helper.make_tensor_value_info
    return helper.make_graph(
        nodes, name, [value(*i) for i in inputs], [value(*o) for o in outputs],
        [numpy_helper.from_array(np.asarray(x), n) for n, x in dict(weights).items()])


# From TensorFlow: channels last, `:0`, shapes through 32-bit integers, attributes where inputs are today.
model("tf_convolution", 9, [("input:0", F32, ["unk__1", 8, 10, 3])], [
    N("Transpose", ["input:0"], ["t:0"], perm=[0, 3, 1, 2]),
    N("Pad", ["t:0"], ["p:0"], mode="constant", pads=[0, 0, 0, 0, 0, 0, 1, 1]),
    N("Conv", ["p:0", "W"], ["c:0"], strides=[2, 2], kernel_shape=[3, 3]),
    N("BatchNormalization", ["c:0", "g", "b", "m", "v"], ["n:0"], epsilon=1e-3),
    N("Clip", ["n:0"], ["r:0"], min=0.0, max=6.0),
    N("MaxPool", ["r:0"], ["mp:0"], kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
    N("Transpose", ["mp:0"], ["u:0"], perm=[0, 2, 3, 1]),
    N("Shape", ["u:0"], ["s:0"]),
    N("Cast", ["s:0"], ["si:0"], to=TensorProto.INT32),
    N("Cast", ["si:0"], ["sl:0"], to=I64),
    N("Slice", ["sl:0"], ["s0:0"], axes=[0], starts=[0], ends=[1]),
    N("Concat", ["s0:0", "rest"], ["sh:0"], axis=0),
    N("Reshape", ["u:0", "sh:0"], ["fl:0"]),
    N("MatMul", ["fl:0", "D"], ["mm:0"]),
    N("Add", ["mm:0", "db"], ["z:0"]),
    N("Softmax", ["z:0"], ["prob:0"], axis=1),
], [("prob:0", F32, ["unk__2", 4])],
    {"W": f(5, 3, 3, 3), "g": f(5), "b": f(5), "m": f(5), "v": np.abs(f(5)), "rest": ints(-1),
     "D": f(30, 4), "db": f(4)}, [{"input:0": f(n, 8, 10, 3)} for n in (1, 3)], ir=4)
model("tf_depthwise", 13, [("x", F32, ["b", 6, 6, 4])], [
    N("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
    N("Conv", ["t", "w"], ["c"], group=4, auto_pad="SAME_UPPER", strides=[2, 2], kernel_shape=[3, 3]),
    N("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1]),
], [("y", F32, None)], {"w": f(4, 1, 3, 3)}, [{"x": f(n, 6, 6, 4)} for n in (1, 2)])
model("keras_lstm", 13, [("x", F32, ["b", 5, 4])], [
    N("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
    N("LSTM", ["t", "w", "r", "bb"], ["", "yh", ""], hidden_size=3),
    N("Squeeze", ["yh", "axes"], ["s"]),
    N("MatMul", ["s", "d"], ["o"]),
], [("o", F32, None)], {"w": f(1, 12, 4), "r": f(1, 12, 3), "bb": f(1, 24), "axes": ints(0),
                        "d": f(3, 2)}, [{"x": f(n, 5, 4)} for n in (1, 3)])
model("upsample_9", 9, [("x", F32, ["n", 2, "h", "w"])],
      [N("Upsample", ["x", "s"], ["y"], mode="nearest")], [("y", F32, None)],
      {"s": np.array([1, 1, 2, 2], np.float32)}, [{"x": f(1, 2, 3, 4)}, {"x": f(2, 2, 5, 4)}])
model("split_9", 9, [("x", F32, ["n", 6, 4])], [
    N("Split", ["x"], ["a", "b"], axis=1, split=[2, 4]),
    N("ReduceMean", ["b"], ["c"], axes=[1], keepdims=1),
    N("Squeeze", ["c"], ["d"], axes=[1]),
    N("Unsqueeze", ["d"], ["e"], axes=[1]),
    N("Sub", ["a", "e"], ["y"]),
], [("y", F32, None)], (), [{"x": f(n, 6, 4)} for n in (2, 3)])
model("scatter_9", 9, [("x", F32, ["n", 5]), ("i", I64, ["n", 2]), ("u", F32, ["n", 2])],
      [N("Scatter", ["x", "i", "u"], ["y"], axis=1)], [("y", F32, None)], (),
      [{"x": f(3, 5), "i": np.array([[0, 1], [2, 1], [4, 0]]), "u": f(3, 2)}])

# From PaddlePaddle: weights and sizes as Constant nodes, resizes to a shape that is put together.
model("paddle_resize", 11, [("x", F32, [-1, 3, "h", "w"])], [
    N("Constant", [], ["w0"], value=stored(f(4, 3, 3, 3))),
    N("Conv", ["x", "w0"], ["c"], pads=[1, 1, 1, 1]),
    N("Shape", ["c"], ["s"]),
    N("Constant", [], ["two"], value=stored(ints(2))),
    N("Constant", [], ["four"], value=stored(ints(4))),
    N("Constant", [], ["zero"], value=stored(ints(0))),
    N("Slice", ["s", "two", "four", "zero"], ["hw"]),
    N("Add", ["hw", "hw"], ["twice"]),
    N("Slice", ["s", "zero", "two", "zero"], ["nc"]),
    N("Concat", ["nc", "twice"], ["size"], axis=0),
    N("Constant", [], ["roi"], value=stored(np.array([], np.float32))),
    N("Resize", ["c", "roi", "roi", "size"], ["y"], mode="nearest", nearest_mode="floor",
      coordinate_transformation_mode="asymmetric"),
], [("y", F32, ["a", "b", "c", "d"])], (), [{"x": f(1, 3, 5, 6)}, {"x": f(2, 3, 4, 7)}])
model("paddle_swish", 11, [("x", F32, ["n", 4, 6, 6])], [
    N("Add", ["x", "three"], ["a"]),
    N("Clip", ["a", "zero", "six"], ["c"]),
    N("Mul", ["x", "c"], ["m"]),
    N("Div", ["m", "six"], ["y"]),
], [("y", F32, None)], {k: scalar(v, np.float32) for k, v in (("three", 3), ("zero", 0), ("six", 6))},
    [{"x": f(2, 4, 6, 6)}])

# From PyTorch: sizes taken apart and put together, positions counted, rows picked.
model("torch_sizes", 13, [("x", F32, ["b", "s", 4])], [
    N("Shape", ["x"], ["shape"]),
    N("Gather", ["shape", "i0"], ["b"]),
    N("Gather", ["shape", "i1"], ["s"]),
    N("Mul", ["b", "s"], ["bs"]),
    N("Unsqueeze", ["bs", "axes"], ["bs1"]),
    N("Concat", ["bs1", "rest"], ["flat"], axis=0),
    N("Reshape", ["x", "flat"], ["r"]),
    N("MatMul", ["r", "w"], ["m"]),
    N("Unsqueeze", ["b", "axes"], ["b1"]),
    N("Unsqueeze", ["s", "axes"], ["s1"]),
    N("Concat", ["b1", "s1", "rest"], ["back"], axis=0),
    N("Reshape", ["m", "back"], ["y"]),
], [("y", F32, None)], {"i0": scalar(0), "i1": scalar(1), "axes": ints(0), "rest": ints(-1), "w": f(4, 5)},
    [{"x": f(2, 3, 4)}, {"x": f(1, 5, 4)}])
model("torch_positions", 12, [("ids", I64, ["b", "s"])], [
    N("Shape", ["ids"], ["shape"]),
    N("ConstantOfShape", ["shape"], ["ones"], value=stored(ints(1))),
    N("CumSum", ["ones", "axis"], ["counted"]),
    N("Sub", ["counted", "one"], ["at"]),
    N("Gather", ["table", "at"], ["places"]),
    N("Gather", ["table", "ids"], ["words"]),
    N("Add", ["places", "words"], ["y"]),
], [("y", F32, None)], {"axis": scalar(1), "one": scalar(1), "table": f(40, 4)},
    [{"ids": RNG.integers(0, 40, (2, 6))}, {"ids": RNG.integers(0, 40, (3, 4))}])
model("torch_last_tokens", 13, [("m", I64, ["b", "s"]), ("x", F32, ["b", "s", 3])], [
    N("ReduceSum", ["m", "axes"], ["l"], keepdims=0),
    N("Sub", ["l", "one"], ["last"]),
    N("Shape", ["m"], ["shape"]),
    N("Gather", ["shape", "zero"], ["count"]),
    N("Range", ["zero", "count", "one"], ["rows"]),
    N("Unsqueeze", ["rows", "axes"], ["rows1"]),
    N("Unsqueeze", ["last", "axes"], ["last1"]),
    N("Concat", ["rows1", "last1"], ["at"], axis=1),
    N("GatherND", ["x", "at"], ["y"]),
], [("y", F32, None)], {"axes": ints(1), "one": scalar(1), "zero": scalar(0)},
    [{"m": np.array([[1, 1, 0], [1, 1, 1]]), "x": f(2, 3, 3)},
     {"m": np.ones((3, 2), np.int64), "x": f(3, 2, 3)}])
model("torch_loop", 13, [("x", F32, ["b", 4])], [
    N("Loop", ["trip", "go", "x"], ["out", "all"], body=body(
        "body", [N("Identity", ["c"], ["co"]), N("Mul", ["v", "k"], ["vo"]), N("Identity", ["vo"], ["scan"])],
        [("i", I64, []), ("c", BOOL, []), ("v", F32, None)],
        [("co", BOOL, []), ("vo", F32, None), ("scan", F32, None)], {"k": scalar(1.5, np.float32)})),
], [("out", F32, None), ("all", F32, None)], {"trip": scalar(3), "go": scalar(True, np.bool_)},
    [{"x": f(2, 4)}])
model("torch_dims", 18, [("x", F32, ["batch", "seq"]), ("y", F32, ["2*batch", "seq"])],
      [N("Concat", ["x", "x"], ["xx"], axis=0), N("Add", ["xx", "y"], ["z"])],
      [("z", F32, ["2*batch", "seq"])], (),
      [{"x": f(2, 3), "y": f(4, 3)}, {"x": f(1, 5), "y": f(2, 5)}])
model("torch_sequence", 13, [("x", F32, ["b", 4])], [
    N("SplitToSequence", ["x", "two"], ["s"], axis=1),
    N("SequenceAt", ["s", "one"], ["a"]),
    N("ConcatFromSequence", ["s"], ["c"], axis=0),
], [("a", F32, None), ("c", F32, None)], {"two": scalar(2), "one": scalar(1)}, [{"x": f(2, 4)}])
model("torch_attention", 23, [(n, F32, ["b", h, "s", 8]) for n, h in (("q", 4), ("k", 2), ("v", 2))]
      + [(n, F32, ["b", 2, "p", 8]) for n in ("pk", "pv")],
      [N("Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "nk", "nv"], is_causal=1)],
      [("y", F32, None), ("nk", F32, None), ("nv", F32, None)], (),
      [{"q": f(2, 4, s, 8), "k": f(2, 2, s, 8), "v": f(2, 2, s, 8), "pk": f(2, 2, p, 8),
        "pv": f(2, 2, p, 8)} for s, p in ((3, 5), (1, 7))], ir=11)
model("torch_masked_rows", 23, [(n, F32, ["b", 2, "s", 8]) for n in "qkv"] + [("m", BOOL, ["b", 1, "s", "s"])],
      [N("Attention", ["q", "k", "v", "m"], ["y"])], [("y", F32, None)], (),
      [{"q": f(2, 2, 3, 8), "k": f(2, 2, 3, 8), "v": f(2, 2, 3, 8),
        "m": np.broadcast_to(np.tril(np.ones((3, 3), bool), -1), (2, 1, 3, 3)).copy()}], ir=11)
# A step of a decoder whose keys and values are shared by groups of heads: written out as at opset 20 and whole as at 23.
GROUPED = [
    N("Concat", ["past_k", "k"], ["present_k"], axis=2),
    N("Concat", ["past_v", "v"], ["present_v"], axis=2),
    N("Shape", ["past_k"], ["b1"], start=0, end=1),
    N("Shape", ["present_k"], ["t1"], start=2, end=3),
    N("Concat", ["b1", "two", "three", "t1", "eight"], ["wide"], axis=0),
    N("Concat", ["b1", "six", "t1", "eight"], ["merged"], axis=0),
    *[node for x in "kv" for node in (
        N("Unsqueeze", [f"present_{x}", "two"], [f"{x}1"]),
        N("Expand", [f"{x}1", "wide"], [f"{x}2"]),
        N("Reshape", [f"{x}2", "merged"], [f"{x}3"]))],
]
WRITTEN_OUT = [
    N("Concat", ["all", "t1", "eight"], ["flat"], axis=0),
    N("Reshape", ["k3", "flat"], ["k4"]),
    N("Transpose", ["k4"], ["k5"], perm=[0, 2, 1]),
    N("Concat", ["b1", "six", "eight", "t1"], ["back"], axis=0),
    N("Reshape", ["k5", "back"], ["kt"]),
    N("Mul", ["q", "root"], ["qs"]),
    N("Mul", ["kt", "root"], ["ks"]),
    N("MatMul", ["qs", "ks"], ["scores"]),
    N("Where", ["allowed", "zero", "never"], ["mask"]),
    N("Add", ["scores", "mask"], ["masked"]),
    N("Softmax", ["masked"], ["p"], axis=-1),
    N("IsNaN", ["p"], ["nan"]),
    N("Where", ["nan", "zero", "p"], ["weights"]),
    N("MatMul", ["weights", "v3"], ["y"]),
]
DECODER_INPUTS = [("q", F32, ["b", 6, 1, 8])] + [(n, F32, ["b", 2, 1, 8]) for n in "kv"] + [
    (n, F32, ["b", 2, "past", 8]) for n in ("past_k", "past_v")]
DECODER_SIZES = {"one": ints(1), "two": ints(2), "three": ints(3), "six": ints(6), "eight": ints(8), "all": ints(-1),
                 "root": scalar(8**-0.25, np.float32), "zero": scalar(0, np.float32),
                 "never": scalar(-np.inf, np.float32)}
DECODER_OUTPUTS = [(n, F32, None) for n in ("y", "present_k", "present_v")]
for opset, rest, extra in (
        (20, WRITTEN_OUT, [("allowed", BOOL, ["b", 1, 1, "past + 1"])]),
        (23, [N("Concat", ["b1", "one", "one", "t1"], ["shape"], axis=0),
              N("ConstantOfShape", ["shape"], ["on"], value=stored(np.array([True]))),
              N("Attention", ["q", "k3", "v3", "on"], ["y"])], [])):
    model(f"torch_decoder_{opset}", opset, DECODER_INPUTS + extra, GROUPED + rest, DECODER_OUTPUTS, DECODER_SIZES,
          [{n: f(b, *(p if d == "past" else d for d in shape[1:])) if kind == F32 else RNG.random((b, 1, 1, p + 1)) < 0.8
            for n, kind, shape in DECODER_INPUTS + extra} for b, p in ((1, 1), (3, 9))], ir=11 if opset > 21 else 9)
model("torch_norms", 23, [("x", F32, ["b", "s", 8])], [
    N("RMSNormalization", ["x", "w"], ["a"], axis=-1, epsilon=1e-6),
    N("LayerNormalization", ["a", "w", "w"], ["c"], axis=-1),
    N("Transpose", ["c"], ["t"], perm=[0, 2, 1]),
    N("GroupNormalization", ["t", "w", "w"], ["y"], num_groups=4),
], [("y", F32, None)], {"w": f(8)}, [{"x": f(2, 3, 8)}, {"x": f(1, 6, 8)}], ir=11)
model("torch_rotary", 23, [("x", F32, ["b", 4, "s", 8]), ("p", I64, ["b", "s"])],
      [N("RotaryEmbedding", ["x", "c", "n", "p"], ["y"])], [("y", F32, None)],
      {"c": np.cos(f(30, 4)), "n": np.sin(f(30, 4))},
      [{"x": f(2, 4, 3, 8), "p": RNG.integers(0, 30, (2, 3))}], ir=11)
model("torch_spectrum", 17, [("x", F32, ["n", 64])],
      [N("STFT", ["x", "step", "window", "length"], ["y"], onesided=1)], [("y", F32, None)],
      {"step": scalar(8), "length": scalar(16), "window": np.hanning(16).astype(np.float32)},
      [{"x": f(n, 64)} for n in (1, 3)])

# From quantisers.
model("integers", 13, [("x", F32, ["n", 3, 6, 6])], [
    N("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
    N("ConvInteger", ["q", "w", "z", "wz"], ["c"], pads=[1, 1, 1, 1]),
    N("Cast", ["c"], ["cf"], to=F32),
    N("Mul", ["s", "ws"], ["sc"]),
    N("Mul", ["cf", "sc"], ["y"]),
], [("y", F32, None)], {"w": RNG.integers(0, 127, (4, 3, 3, 3)).astype(np.uint8), "wz": scalar(60, np.uint8),
                        "ws": scalar(0.01, np.float32)}, [{"x": f(2, 3, 6, 6)}])

# Weights of 16 bits, with inputs and outputs of 32 bits or of 16. onnxruntime computes in 32 bits.
for name, kind in (("half_inside", F32), ("half_throughout", TensorProto.FLOAT16)):
    dtype = np.float32 if kind == F32 else np.float16
    model(name, 13, [("x", kind, ["n", 8])], [
        N("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
        N("MatMul", ["h", "w"], ["m"]),
        N("Add", ["m", "b"], ["a"]),
        N("Softmax", ["a"], ["s"], axis=-1),
        N("Mul", ["s", "two"], ["p"]),
        N("Cast", ["p"], ["y"], to=kind),
    ], [("y", kind, None)],
        {"w": f(8, 6).astype(np.float16), "b": f(6).astype(np.float16), "two": scalar(2, np.float16)},
        [{"x": f(n, 8).astype(dtype)} for n in (2, 5)])

# Whatever else is met: many inputs, names left out, domains that nothing uses, defaults of inputs.
model("many_inputs", 13, [(f"in_{i}", F32, ["batch", i % 3 + 1]) for i in range(19)], [
    N("Concat", [f"in_{i}" for i in range(19)], ["c"], axis=1),
    N("Gemm", ["c", "w", "b"], ["g"], transB=1),
    N("Tanh", ["g"], ["y"]),
], [("y", F32, ["batch", 3])], {"w": f(3, 37), "b": f(3)},
    [{f"in_{i}": f(n, i % 3 + 1) for i in range(19)} for n in (1, 4)])
model("no_names", 11, [("x", F32, ["b", 4])],
      [N("Relu", ["x"], ["a"]), N("Dropout", ["a"], ["y", ""])], [("y", F32, None)], (), [{"x": f(2, 4)}])
model("unused_domains", 12, [("x", F32, ["b", 4])], [N("Relu", ["x"], ["y"])], [("y", F32, None)], (),
      [{"x": f(2, 4)}], [("ai.onnx.ml", 2), ("com.microsoft.nchwc", 1), ("ai.onnx.training", 1)])
model("input_defaults", 8, [("x", F32, ["b", 3]), ("w", F32, [3, 2])], [N("MatMul", ["x", "w"], ["y"])],
      [("y", F32, None)], {"w": f(3, 2)}, [{"x": f(2, 3)}], ir=3)


def main(out):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    for name, (made, feeds) in MODELS.items():
        folder = out / name
        folder.mkdir(parents=True)
        onnx.save(made, folder / "model.onnx")
        session = onnxruntime.InferenceSession(
            made.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        for n, feed in enumerate(feeds):
            arrays = {f"in.{key}": value for key, value in feed.items()}
            arrays |= {f"out.{key}": value for key, value in zip(names, session.run(names, feed))}
            np.savez(folder / f"{n}.npz", **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
