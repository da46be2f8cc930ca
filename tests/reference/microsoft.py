"""Cases of onnxruntime's own operators (domain com.microsoft), in the layout of ONNX's backend tests.

    microsoft.py OUT

fills OUT with
    <case>/model.onnx
    <case>/test_data_set_0/{input,output}_<n>.pb
What is expected is what onnxruntime answers; where it has no kernel for CPUs, what NumPy computes
(the cases that give `expected`).
"""
import math
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(5)
CASES = {}

TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.bool_): TensorProto.BOOL,
    np.dtype(ml_dtypes.uint4): TensorProto.UINT4,
    np.dtype(ml_dtypes.int4): TensorProto.INT4,
}


def f(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def u8(*shape):
    return RNG.integers(0, 256, shape).astype(np.uint8)


def i8(*shape):
    # Seven bits: onnxruntime's kernels for some CPUs saturate sums of two products of eight bits.
    return RNG.integers(-64, 64, shape).astype(np.int8)


def i32(high, *shape):
    return RNG.integers(0, high, shape).astype(np.int32)


def i64(high, *shape):
    return RNG.integers(0, high, shape).astype(np.int64)


def s(value, dtype=np.float32):
    return np.array(value, dtype)


def case(name, op, inputs, outputs=1, constants=(), expected=None, domain="com.microsoft", cases=CASES,
         **attributes):
    """A model of one node. `inputs` may hold None for what is left out; those whose positions are in
    `constants` become initializers. `outputs` is their number or a list with '' for unused ones."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    out = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
    given = [(n, x) for i, (n, x) in enumerate(zip(names, inputs)) if n and i not in constants]
    stored = [(n, x) for i, (n, x) in enumerate(zip(names, inputs)) if n and i in constants]
    node = helper.make_node(op, names, out, name=op.lower(), domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "case",
        [helper.make_tensor_value_info(n, TYPES[x.dtype], x.shape) for n, x in given],
        [helper.make_empty_tensor_value_info(n) for n in out if n],
        [numpy_helper.from_array(x, n) for n, x in stored])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1 if domain != "ai.onnx.ml" else 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    cases[name] = (model, given, expected)


# Activations and sums.
case("gelu", "Gelu", [f(2, 7, 16)])
case("bias_gelu", "BiasGelu", [f(2, 7, 16), f(16)])
case("fast_gelu", "FastGelu", [f(2, 7, 16)])
case("fast_gelu_bias", "FastGelu", [f(2, 7, 16), f(16)])
case("quick_gelu", "QuickGelu", [f(2, 7, 16)])
case("quick_gelu_alpha", "QuickGelu", [f(2, 7, 16)], alpha=1.0)
x, bias, skip = f(2, 9, 8), f(8), f(2, 9, 8)
case("bias_add", "BiasAdd", [x, bias, skip], expected=[x + bias + skip])
x, bias = f(2, 9, 8), f(8)
erf = np.vectorize(math.erf)
half = (x + bias)[..., 4:].astype(np.float64)
case("bias_split_gelu", "BiasSplitGelu", [x, bias],
     expected=[((x + bias)[..., :4] * half * (1 + erf(half / math.sqrt(2))) / 2).astype(np.float32)])
a, b = f(2, 3, 5), f(3, 5)
e = np.exp(a + b)
case("bias_softmax", "BiasSoftmax", [a, b], axis=2, is_inner_broadcast=1,
     expected=[e / e.sum(-1, keepdims=True)])

# Products and convolutions.
case("fused_matmul", "FusedMatMul", [f(2, 5, 7), f(2, 7, 4)], alpha=0.5)
case("fused_matmul_trans", "FusedMatMul", [f(2, 7, 5), f(2, 4, 7)], alpha=2.0, transA=1, transB=1)
case("fused_matmul_batch_a", "FusedMatMul", [f(5, 2, 7), f(2, 7, 4)], transBatchA=1)
case("fused_matmul_batch_b", "FusedMatMul", [f(2, 5, 7), f(7, 2, 4)], transBatchB=1)
case("fused_matmul_batch_both", "FusedMatMul", [f(7, 3, 2, 5), f(7, 3, 2, 4)],
     transBatchA=1, transA=1, transBatchB=1)
case("transpose_matmul", "TransposeMatMul", [f(7, 5), f(7, 4)], transA=1)
case("fused_gemm_relu", "FusedGemm", [f(5, 7), f(7, 4), f(4)], activation="Relu")
case("fused_gemm_leaky", "FusedGemm", [f(5, 7), f(4, 7), f(5, 1)], activation="LeakyRelu",
     activation_alpha=0.2, transB=1, alpha=0.5, beta=2.0)
a, b, bias = f(3, 6), f(6, 4), f(4)
z = (a @ b + bias).astype(np.float64)
case("gemm_fast_gelu", "GemmFastGelu", [a, b, bias],
     expected=[(z * (1 + np.tanh(0.7978845608028654 * (z + 0.044715 * z ** 3))) / 2)
               .astype(np.float32)])
case("fused_conv_relu", "FusedConv", [f(2, 3, 8, 8), f(4, 3, 3, 3), f(4)], activation="Relu",
     pads=[1, 1, 1, 1], kernel_shape=[3, 3])
case("fused_conv_clip", "FusedConv", [f(1, 4, 8, 8), f(4, 2, 3, 3)], activation="Clip",
     activation_params=[-0.5, 1.0], group=2, strides=[2, 2], kernel_shape=[3, 3])
case("fused_conv_sum", "FusedConv", [f(1, 4, 6, 6), f(4, 4, 1, 1), f(4), f(1, 4, 6, 6)],
     activation="HardSigmoid", activation_params=[0.25, 0.5], kernel_shape=[1, 1])


def conv_last(x, w, bias):
    """A 3×3 convolution with a margin of 1 over [n, h, w, c]."""
    n, h, wide, _ = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    y = np.zeros((n, h, wide, w.shape[0]), np.float64)
    for i in range(3):
        for j in range(3):
            y += np.einsum("nhwc,oc->nhwo", padded[:, i:i + h, j:j + wide], w[:, :, i, j])
    return (y + bias).astype(np.float32)


x, w, bias = f(1, 5, 6, 3), f(4, 3, 3, 3), f(4)
case("nhwc_conv", "NhwcConv", [x, w, bias], pads=[1, 1, 1, 1], expected=[conv_last(x, w, bias)])
x, w, bias, z = f(1, 5, 6, 3), f(4, 3, 3, 3), f(4), f(1, 5, 6, 4)
case("nhwc_fused_conv", "NhwcFusedConv", [x, w, bias, z], pads=[1, 1, 1, 1], activation="Relu",
     expected=[np.maximum(conv_last(x, w, bias) + z, 0)])
case("nhwc_max_pool", "NhwcMaxPool", [u8(1, 7, 6, 4)], kernel_shape=[2, 2], strides=[2, 2])

# Norms.
case("skip_layer_norm", "SkipLayerNormalization",
     [f(2, 5, 16), f(2, 5, 16), f(16), f(16), f(16)], ["y", "", "", "s"], epsilon=1e-5)
case("skip_layer_norm_plain", "SkipLayerNormalization", [f(2, 5, 16), f(2, 5, 16), f(16)])
case("skip_rms_norm", "SkipSimplifiedLayerNormalization", [f(2, 5, 16), f(2, 5, 16), f(16)],
     ["y", "", "", "s"], epsilon=1e-6)
case("skip_rms_norm_bias", "SkipSimplifiedLayerNormalization",
     [f(2, 5, 16), f(2, 5, 16), f(16), f(16)])
case("rms_norm", "SimplifiedLayerNormalization", [f(2, 5, 16), f(16)], domain="", axis=-1,
     epsilon=1e-6)
tables = [f(30, 16), f(12, 16), f(2, 16), f(16), f(16)]
mask = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]], np.int32)
case("embed_layer_norm", "EmbedLayerNormalization", [i32(30, 2, 6), i32(2, 2, 6), *tables], 2)
case("embed_layer_norm_mask", "EmbedLayerNormalization",
     [i32(30, 2, 6), i32(2, 2, 6), *tables, mask], 3)
case("embed_layer_norm_positions", "EmbedLayerNormalization",
     [i32(30, 2, 6), None, *tables[:2], None, *tables[3:], None, i32(12, 2, 6)], 2)


def group_norm(x, gamma, beta, groups, swish):
    n, h, w, ch = x.shape
    y = x.reshape(n, h, w, groups, ch // groups).astype(np.float64)
    y -= y.mean((1, 2, 4), keepdims=True)
    y /= np.sqrt((y * y).mean((1, 2, 4), keepdims=True) + 1e-5)
    y = y.reshape(x.shape) * gamma + beta
    return (y / (1 + np.exp(-y)) if swish else y).astype(np.float32)


x, gamma, beta = f(2, 4, 5, 8), f(8), f(8)
case("group_norm", "GroupNorm", [x, gamma, beta], groups=4, activation=1, channels_last=1,
     expected=[group_norm(x, gamma, beta, 4, True)])
case("group_norm_second", "GroupNorm", [np.ascontiguousarray(x.transpose(0, 3, 1, 2)), gamma, beta],
     groups=2, activation=0, channels_last=0,
     expected=[group_norm(x, gamma, beta, 2, False).transpose(0, 3, 1, 2)])
skip, bias = f(2, 8), f(8)
total = x + skip[:, None, None] + bias
case("skip_group_norm", "SkipGroupNorm", [x, gamma, beta, skip, bias], 2, groups=4, activation=1,
     expected=[group_norm(total, gamma, beta, 4, True), total])

quantised = [u8(30, 16), u8(12, 16), u8(2, 16), u8(16), u8(16)]
case("embed_layer_norm_quantised", "QEmbedLayerNormalization",
     [i32(30, 2, 6), i32(2, 2, 6), *quantised, mask, *(s(v) for v in (0.02, 0.03, 0.01, 0.05, 0.04)),
      *(s(v, np.uint8) for v in (120, 130, 125, 100, 128))], 2)

# Attention.
hidden, heads = 32, 4
weights = [f(hidden, 3 * hidden) * 0.3, f(3 * hidden)]
case("attention", "Attention", [f(2, 6, hidden), *weights], num_heads=heads)
case("attention_mask", "Attention", [f(2, 6, hidden), *weights, mask], num_heads=heads)
case("attention_lengths", "Attention", [f(2, 6, hidden), *weights, np.array([6, 3], np.int32)],
     num_heads=heads)
case("attention_ends_and_starts", "Attention",
     [f(2, 6, hidden), *weights, np.array([6, 5, 0, 2], np.int32)], num_heads=heads)
case("attention_mask3", "Attention",
     [f(2, 6, hidden), *weights, np.tril(np.ones((2, 6, 6), np.int32))], num_heads=heads)
case("attention_causal", "Attention", [f(2, 6, hidden), *weights], num_heads=heads, unidirectional=1)
case("attention_past", "Attention",
     [f(2, 3, hidden), *weights, None, f(2, 2, heads, 5, hidden // heads)], 2, num_heads=heads,
     unidirectional=1)
case("attention_bias", "Attention",
     [f(2, 6, hidden), *weights, None, None, f(2, heads, 6, 6)], num_heads=heads)
case("attention_sizes", "Attention", [f(2, 6, hidden), f(hidden, 80) * 0.3, f(80)],
     num_heads=heads, qkv_hidden_sizes=[24, 24, 32])
case("qattention", "QAttention",
     [u8(2, 6, hidden), i8(hidden, 3 * hidden), f(3 * hidden), s(0.02), s(0.01), mask, s(120, np.uint8),
      s(3, np.int8)], num_heads=heads)
qkv = [f(2, 6, hidden), f(2, 6, hidden), f(2, 6, hidden)]
case("multi_head", "MultiHeadAttention", qkv, num_heads=heads)
case("multi_head_bias", "MultiHeadAttention", [*qkv, f(3 * hidden)], num_heads=heads)
case("multi_head_mask", "MultiHeadAttention", [*qkv, None, mask], num_heads=heads)
case("multi_head_cross", "MultiHeadAttention", [f(2, 3, hidden), *qkv[1:]], num_heads=heads, scale=0.3)
case("multi_head_added", "MultiHeadAttention", [*qkv, None, None, f(2, heads, 6, 6)], num_heads=heads)
case("multi_head_past", "MultiHeadAttention",
     [f(2, 3, hidden), f(2, 3, hidden), f(2, 3, hidden), None, None, None,
      f(2, heads, 5, 8), f(2, heads, 5, 8)], 3, num_heads=heads)
case("multi_head_causal", "MultiHeadAttention", qkv, num_heads=heads, unidirectional=1)
case("multi_head_split_keys", "MultiHeadAttention",
     [f(2, 3, hidden), f(2, heads, 6, 8), f(2, heads, 6, 8)], num_heads=heads)
q, k, v = (f(2, 5, 4, 8).astype(np.float64) for _ in range(3))
scores = np.einsum("nshd,nthd->nhst", q, k) / math.sqrt(8)
share = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
y = np.einsum("nhst,nthd->nshd", share, v).reshape(2, 5, 32).astype(np.float32)
case("multi_head_packed", "MultiHeadAttention", [np.stack([q, k, v], 3).astype(np.float32)],
     num_heads=4, expected=[y])
case("multi_head_packed_keys", "MultiHeadAttention",
     [q.reshape(2, 5, 32).astype(np.float32), np.stack([k, v], 3).astype(np.float32)], num_heads=4,
     expected=[y])
angles = np.outer(np.arange(20), 100.0 ** (-np.arange(4) / 4))
caches = [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)]
case("rotary", "RotaryEmbedding", [f(2, 5, 32), i64(20, 2, 5), *caches])
case("rotary_first", "RotaryEmbedding", [f(2, 5, 32), np.array([3], np.int64), *caches])
case("rotary_heads", "RotaryEmbedding", [f(2, 4, 5, 8), i64(20, 2, 5), *caches], interleaved=1)
case("rotary_part", "RotaryEmbedding", [f(2, 5, 32), i64(20, 2, 5), caches[0][:, :2].copy(),
                                        caches[1][:, :2].copy()],
     num_heads=4, rotary_embedding_dim=4)

angles = np.outer(np.arange(20), 100.0 ** (-np.arange(8) / 8))
caches = [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)]


def grouped(name, n, new, past, lengths, total, outputs=3, extra=(), shared=2, packed=False, **attributes):
    """Queries of 4 heads of 16 over `shared` heads; `lengths` count the tokens of each row."""
    sides = [f(n, new, 64), f(n, new, 16 * shared), f(n, new, 16 * shared)]
    if packed:
        sides = [np.concatenate(sides, 2), None, None]
    cache = [f(n, shared, past, 16), f(n, shared, past, 16)]
    inputs = [*sides, *cache, np.array(lengths, np.int32) - 1, s(total, np.int32), *extra]
    case(name, "GroupQueryAttention", inputs, outputs, constants=[6], num_heads=4,
         kv_num_heads=shared, **attributes)


grouped("grouped_prompt", 2, 5, 0, [5, 5], 5)
grouped("grouped_prompt_rotary", 2, 5, 0, [5, 5], 5, extra=caches, do_rotary=1)
grouped("grouped_step", 2, 1, 6, [7, 7], 7, extra=caches, do_rotary=1)
grouped("grouped_uneven", 2, 1, 6, [7, 4], 7, extra=caches, do_rotary=1)
grouped("grouped_shared_buffer", 2, 1, 12, [7, 4], 7, extra=caches, do_rotary=1, rotary_interleaved=1)
grouped("grouped_packed", 2, 1, 6, [7, 7], 7, extra=caches, packed=True, do_rotary=1)
grouped("grouped_window", 2, 5, 0, [5, 5], 5, local_window_size=2)
grouped("grouped_softcap", 2, 1, 6, [7, 7], 7, softcap=5.0)
grouped("grouped_smooth", 2, 1, 6, [7, 5], 7, smooth_softmax=1)
grouped("grouped_bias", 2, 1, 6, [7, 7], 7, extra=[None, None, None, f(1, 1, 1, 7)])
grouped("grouped_chunk", 1, 3, 6, [9], 9, extra=caches, do_rotary=1)
grouped("grouped_one", 1, 1, 6, [7], 7, shared=4)

# Weights of few bits.


def nbits(name, n, k, bits, block, zero=None, bias=False, lead=(2, 3)):
    blocks = -(-k // block)
    inputs = [f(*lead, k), u8(n, blocks, block * bits // 8), np.abs(f(n * blocks)) * 0.1]
    if zero == "packed":
        inputs.append(u8(n * -(-blocks * bits // 8)))
    elif zero == "float":
        inputs.append(f(n * blocks))
    if bias:
        inputs += [None] * (5 - len(inputs)) + [f(n)]
    case(name, "MatMulNBits", inputs, constants=[1, 2, 3], N=n, K=k, bits=bits, block_size=block)


nbits("matmul_4bits", 8, 64, 4, 32)
nbits("matmul_4bits_zero", 8, 80, 4, 16, "packed")
nbits("matmul_4bits_odd", 8, 96, 4, 32, "packed")
nbits("matmul_4bits_bias", 6, 64, 4, 32, None, True)
# onnxruntime leaves out zero points where columns have an order of their own; the operator's text does not.
order = RNG.permutation(np.arange(64) // 32).astype(np.int32)
a, packed, scales, zeros = f(2, 3, 64), u8(8, 2, 16), np.abs(f(16)) * 0.1, u8(8)
halves = np.stack([packed & 15, packed >> 4], -1).reshape(8, 64).astype(np.float32)
zero = np.stack([zeros & 15, zeros >> 4], -1).astype(np.float32)
case("matmul_4bits_ordered", "MatMulNBits", [a, packed, scales, zeros, order], constants=[1, 2, 3, 4], N=8, K=64,
     bits=4, block_size=32, expected=[a @ ((halves - zero[:, order]) * scales.reshape(8, 2)[:, order]).T])
order = np.arange(64)[::-1].astype(np.int32) // 32
case("matmul_4bits_ordered_plain", "MatMulNBits", [f(5, 64), u8(8, 2, 16), np.abs(f(16)) * 0.1, None, order],
     constants=[1, 2, 4], N=8, K=64, bits=4, block_size=32)
nbits("matmul_8bits", 8, 64, 8, 32)
for kind, quantized in ((0, "fp4"), (1, "nf4")):
    # Blocks that end within rows, and an odd number of elements.
    for n, k, block in ((8, 64, 16), (6, 40, 32), (3, 33, 16)):
        case(f"matmul_{quantized}_{n}_{k}", "MatMulBnb4",
             [f(2, 3, k), u8((n * k + 1) // 2), np.abs(f(-(-n * k // block)))], constants=[1, 2], N=n, K=k,
             block_size=block, quant_type=kind)
nbits("matmul_8bits_zero", 8, 64, 8, 32, "packed")
nbits("matmul_2bits", 8, 128, 2, 64, "packed")
case("gather_u4", "GatherBlockQuantized",
     [RNG.integers(0, 16, (10, 64)).astype(ml_dtypes.uint4), i64(10, 2, 3), np.abs(f(10, 4)),
      RNG.integers(0, 16, (10, 4)).astype(ml_dtypes.uint4)], constants=[0, 2, 3], block_size=16,
     gather_axis=0, quantize_axis=1)
case("gather_i4", "GatherBlockQuantized",
     [RNG.integers(-8, 8, (10, 64)).astype(ml_dtypes.int4), i64(10, 5), np.abs(f(10, 2))],
     constants=[0, 2], block_size=32, gather_axis=0, quantize_axis=1)
case("gather_bytes", "GatherBlockQuantized",
     [u8(10, 32), i64(10, 2, 3), np.abs(f(10, 4)), u8(10, 2)], constants=[0, 2, 3], block_size=16,
     gather_axis=0, quantize_axis=1, bits=4)
case("gather_bytes_plain", "GatherBlockQuantized", [u8(10, 64), i64(10, 2, 3), np.abs(f(10, 4))],
     constants=[0, 2], block_size=16, gather_axis=0, quantize_axis=1, bits=8)

# Quantised operators.


def q(x, scale, zero, dtype=np.uint8):
    return [x, s(scale), s(zero, dtype)]


case("qlinear_add", "QLinearAdd",
     [*q(u8(2, 3, 8), 0.03, 120), *q(u8(1, 8), 0.05, 7), s(0.11), s(130, np.uint8)])
case("qlinear_mul", "QLinearMul",
     [*q(i8(2, 3, 8), 0.03, 5, np.int8), *q(i8(8), 0.05, -7, np.int8), s(0.0213), s(3, np.int8)])
case("qlinear_sigmoid", "QLinearSigmoid", [*q(u8(2, 40), 0.05, 120), s(1 / 256), s(0, np.uint8)])
case("qlinear_leaky", "QLinearLeakyRelu", [*q(u8(2, 40), 0.05, 120), s(0.04), s(70, np.uint8)],
     alpha=0.2)
case("qlinear_softmax", "QLinearSoftmax", [*q(u8(3, 12), 0.02, 120), s(1 / 256), s(0, np.uint8)],
     axis=-1, opset=13)
case("qlinear_average_pool", "QLinearAveragePool",
     [*q(u8(1, 3, 8, 8), 0.05, 120), s(0.0417), s(110, np.uint8)], kernel_shape=[3, 3],
     strides=[2, 2], pads=[1, 1, 1, 1])
case("qlinear_average_pool_last", "QLinearAveragePool",
     [*q(u8(1, 8, 8, 3), 0.05, 120), s(0.0417), s(110, np.uint8)], kernel_shape=[2, 2],
     strides=[2, 2], channels_last=1)
case("qlinear_global_pool", "QLinearGlobalAveragePool",
     [*q(u8(2, 3, 5, 5), 0.05, 120), s(0.031), s(110, np.uint8)])
case("qlinear_global_pool_last", "QLinearGlobalAveragePool",
     [*q(u8(2, 5, 5, 3), 0.05, 120), s(0.031), s(110, np.uint8)], channels_last=1)
case("qlinear_concat", "QLinearConcat",
     [s(0.06), s(100, np.uint8), *q(u8(2, 3, 4), 0.05, 120), *q(u8(2, 2, 4), 0.07, 80)], axis=1)
case("qlinear_where", "QLinearWhere",
     [RNG.integers(0, 2, (2, 8)).astype(bool), *q(u8(2, 8), 0.05, 120), *q(u8(2, 8), 0.07, 80),
      s(0.06), s(100, np.uint8)])
case("qlinear_conv_last", "QLinearConv",
     [*q(u8(1, 6, 6, 4), 0.05, 120), *q(i8(8, 4, 3, 3), 0.02, 0, np.int8), s(0.3), s(120, np.uint8)],
     channels_last=1, pads=[1, 1, 1, 1], constants=[3, 4, 5])
case("qgemm", "QGemm", [*q(u8(3, 8), 0.05, 120), *q(i8(8, 5), 0.02, 3, np.int8)])
case("qgemm_columns", "QGemm",
     [*q(u8(3, 8), 0.05, 120), i8(5, 8), np.abs(f(5)) * 0.02, i8(5), i32(1000, 5), s(0.1),
      s(128, np.uint8)], transB=1, alpha=0.5, constants=[3, 4, 5])
case("matmul_integer_to_float", "MatMulIntegerToFloat",
     [u8(3, 8), i8(8, 5), s(0.05), np.abs(f(5)) * 0.02, s(120, np.uint8), i8(5), f(5)],
     constants=[1, 3, 5])
case("dynamic_quantize_matmul", "DynamicQuantizeMatMul",
     [f(3, 8), i8(8, 5), np.abs(f(5)) * 0.02, i8(5), f(5)], constants=[1, 2, 3])
case("dequantize", "DequantizeLinear", [u8(2, 3, 4), np.abs(f(3)), u8(3)], axis=1)
case("quantize", "QuantizeLinear", [f(2, 3, 4), s(0.05), s(120, np.uint8)])



def quantised_lstm(name, directions, batch, **attributes):
    case(name, "DynamicQuantizeLSTM",
         [f(5, batch, 6), i8(directions, 6, 16), i8(directions, 4, 16), f(directions, 32), None, None,
          None, None, np.abs(f(directions)) * 0.02, i8(directions) * 0, np.abs(f(directions)) * 0.02,
          i8(directions) * 0], 3, constants=[1, 2, 8, 9, 10, 11], hidden_size=4, **attributes)


quantised_lstm("quantised_lstm", 1, 2)
quantised_lstm("quantised_lstm_both", 2, 1, direction="bidirectional")

# Early operators, linear algebra, transforms.
case("pad", "Pad", [f(2, 3), np.array([1, 0, 0, 2], np.int64), np.array([0.5], np.float32)],
     constants=[1], mode="constant")
case("range", "Range", [s(2, np.int64), s(11, np.int64), s(3, np.int64)], constants=[0, 1, 2])
case("trilu", "Trilu", [f(2, 4, 5)], upper=0)
case("gather_nd", "GatherND", [f(3, 4, 5), i64(3, 2, 2)])
case("expand_dims", "ExpandDims", [f(3, 4), s(-1, np.int32)], constants=[1])
case("cdist", "CDist", [f(5, 7), f(3, 7)], metric="euclidean")
case("cdist_squares", "CDist", [f(5, 7), f(3, 7)], metric="sqeuclidean")
case("inverse", "Inverse", [f(2, 3, 3) + 2 * np.eye(3, dtype=np.float32)])
case("inverse4", "Inverse", [f(4, 4) + 2 * np.eye(4, dtype=np.float32)])
case("grid_sample", "GridSample", [f(1, 2, 5, 6), (f(1, 4, 4, 2) * 0.5)], mode="bilinear",
     padding_mode="border", align_corners=1)
x = f(2, 16)
parts = np.fft.rfft(x)
parts = np.stack([parts.real, parts.imag], -1).astype(np.float32)
case("rfft", "Rfft", [x], signal_ndim=1, onesided=1, normalized=0, expected=[parts])
case("irfft", "Irfft", [parts], signal_ndim=1, onesided=1, normalized=0, expected=[x])


def answer(model, given):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(given))


def main(out, cases=CASES):
    failed = []
    for name, (model, given, expected) in cases.items():
        try:
            expected = expected or answer(model, given)
        except Exception as error:  # noqa: BLE001
            failed.append(f"{name}: {error}")
            continue
        for value, result in zip(model.graph.output, expected):
            value.CopyFrom(helper.make_tensor_value_info(value.name, TYPES[result.dtype], result.shape))
        folder = out / name / "test_data_set_0"
        folder.mkdir(parents=True)
        onnx.save(model, out / name / "model.onnx")
        for kind, values in (("input", [x for _, x in given]), ("output", expected)):
            for n, x in enumerate(values):
                tensor = numpy_helper.from_array(np.array(x, order="C"), f"{kind}{n}")
                (folder / f"{kind}_{n}.pb").write_bytes(tensor.SerializeToString())
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
