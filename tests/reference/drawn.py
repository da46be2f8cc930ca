"""Models that draw random numbers, as cases: what docs/import.md says that they draw, computed once more.

    drawn.py OUT

fills OUT with cases as microsoft.py does. The seed is the last input, which the model does not declare.
"""
import math
import sys
from pathlib import Path

import numpy as np
from onnx import helper, parser

import microsoft

CASES = {}
RNG = np.random.default_rng(41)
STEP = 0x9E3779B97F4A7C15
BITS = 2**64 - 1


def mix(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & BITS
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & BITS
    return x ^ (x >> 31)


def step(key, at):
    return mix((key + (at + 1) * STEP) & BITS)


def key(seed, ordinal):
    """Of the drawing of this number, counted from 1, for the input `seed`."""
    return mix((seed + ordinal * STEP) & BITS)


def bits(key, shape):
    return np.array([step(key, i) for i in range(math.prod(shape))], np.uint64).reshape(shape)


def uniform(key, shape, dtype=np.float32):
    digits = 53 if dtype == np.float64 else 24
    return ((bits(key, shape) >> np.uint64(64 - digits)).astype(dtype) * dtype(0.5**digits)).astype(dtype)


def normal(key, shape, mean=0.0, scale=1.0, dtype=np.float32):
    digits = 32 if dtype == np.float64 else 24
    drawn = bits(key, shape)
    u = ((drawn >> np.uint64(64 - digits)).astype(np.float64) + 0.5) * 0.5**digits
    v = (drawn & np.uint64(2**digits - 1)).astype(np.float64) * 0.5**digits
    return (np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v) * scale + mean).astype(dtype)


def case(name, interface, body, given, expected, opset=22):
    text = f'<ir_version: 10, opset_import: ["" : {opset}]> {name} {interface} {{ {body} }}'
    CASES[name] = (parser.parse_model(text), given, [np.asarray(x) for x in expected])


def seeded(given, seed):
    return [*given, ("seed", np.array(seed, np.int64))]


x = RNG.standard_normal((3, 50)).astype(np.float32)
for seed in (0, 7, -1):
    case(f"uniform_like_{seed % 10}", "(float[3, 50] x) => (y)", "y = RandomUniformLike<low = -2.0, high = 3.0>(x)",
         seeded([("x", x)], seed), [uniform(key(seed, 1), x.shape) * np.float32(5) - np.float32(2)])
case("uniform_wide", "() => (y)", "y = RandomUniform<dtype = 11, shape = [2, 3, 4]>()",
     seeded([], 3), [uniform(key(3, 1), (2, 3, 4), np.float64)])
case("normal_like", "(float[3, 50] x) => (y)", "y = RandomNormalLike<mean = 1.0, scale = 0.5>(x)",
     seeded([("x", x)], 5), [normal(key(5, 1), x.shape, 1.0, 0.5)])
case("normal_wide", "(float[3, 50] x) => (y)", "y = RandomNormalLike<dtype = 11>(x)",
     seeded([("x", x)], 5), [normal(key(5, 1), x.shape, dtype=np.float64)])
case("normal_of_a_seed", "() => (y)", "y = RandomNormal<seed = 12.0, shape = [70, 3]>()",
     [], [normal(mix(12), (70, 3))])
case("uniform_of_a_seed", "() => (y)", "y = RandomUniform<seed = 12.0, shape = [40, 3]>()",
     [], [np.random.RandomState(12).rand(40, 3).astype(np.float32)])
case("many_of_a_seed", "(float[70000] x) => (most)",
     "y = RandomUniformLike<seed = 2.0>(x) most = ReduceMax<keepdims = 0>(y)",
     [("x", np.zeros(70000, np.float32))], [uniform(mix(2), (70000,)).max()])
case("two_drawings", "(float[3, 50] x) => (y, z, w)",
     "a = RandomNormalLike(x) y = Add(x, a) z = RandomUniformLike(x) w = Mul(a, z)", seeded([("x", x)], 9),
     [x + normal(key(9, 1), x.shape), uniform(key(9, 2), x.shape), normal(key(9, 1), x.shape) * uniform(key(9, 2), x.shape)])
case("an_input_has_the_name", "(float[3, 50] seed) => (y)", "a = RandomNormalLike(seed) y = Add(seed, a)",
     [("seed", x), ("seed_2", np.array(4, np.int64))], [x + normal(key(4, 1), x.shape)])

chance = RNG.random((4, 25)).astype(np.float32)
case("bernoulli", "(float[4, 25] p) => (y, z)", "y = Bernoulli(p) z = Bernoulli<dtype = 9>(p)",
     seeded([("p", chance)], 8),
     [(uniform(key(8, 1), chance.shape) < chance).astype(np.float32), uniform(key(8, 2), chance.shape) < chance])

scores = RNG.standard_normal((3, 6)).astype(np.float32)
portions = np.exp(scores.astype(np.float64))
reached = np.cumsum(portions / portions.sum(1, keepdims=True), 1).astype(np.float32)
classes = np.minimum((reached[:, None] <= uniform(key(6, 1), (3, 40))[..., None]).sum(2), 5)
case("multinomial", "(float[3, 6] x) => (y)", "y = Multinomial<sample_size = 40, dtype = 7>(x)",
     seeded([("x", scores)], 6), [classes.astype(np.int64)])

for name, ratio, training in (("dropout_trains", 0.4, True), ("dropout_is_idle", 0.4, False), ("dropout_of_all", 1.0, True)):
    kept = uniform(key(2, 1), x.shape) >= np.float32(ratio)
    dropped = np.where(kept, x / (1 - np.float32(ratio)) if ratio < 1 else 0, 0).astype(np.float32)
    case(name, "(float[3, 50] x, float ratio, bool training) => (y, mask)", "y, mask = Dropout(x, ratio, training)",
         seeded([("x", x), ("ratio", np.float32(ratio)), ("training", np.array(training))], 2),
         [dropped if training else x, kept | (not training)])

# Every iteration draws others.
turns = [step(key(1, 1), i) for i in range(20)]
case("in_a_loop", "(float[3] x, int64 n) => (last, all)",
     """
     yes = Constant<value = bool {1}>()
     last, all = Loop (n, yes, x) <body = turn (int64 i, bool on, float[3] before) => (bool again, float[3] after, float[3] drawn) {
         again = Identity(on)
         drawn = RandomUniformLike(before)
         after = Add(before, drawn)
     }>
     """,
     seeded([("x", x[0, :3]), ("n", np.array(20, np.int64))], 1),
     [x[0, :3] + sum(uniform(t, (3,)).astype(np.float64) for t in turns).astype(np.float32),
      np.stack([uniform(t, (3,)) for t in turns])], opset=21)


def main(out):
    microsoft.main(out, CASES)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
