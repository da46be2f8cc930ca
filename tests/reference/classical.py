"""Cases of classical machine learning (domain ai.onnx.ml), in the layout of ONNX's backend tests.

    classical.py OUT

What is expected is what onnxruntime answers, but that maps from labels to scores are the scores.
"""
import sys
from pathlib import Path

import numpy as np

import microsoft

RNG = np.random.default_rng(29)
CASES = {}
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def case(name, op, inputs, outputs=1, **attributes):
    microsoft.case(name, op, inputs, outputs, domain="ai.onnx.ml", cases=CASES, **attributes)


def rows(count=23, features=5, missing=0.0):
    x = RNG.integers(-3, 4, (count, features)).astype(np.float32) / 2
    x[RNG.random(x.shape) < missing] = np.nan
    return x


def forest(kind, trees, targets, depth=4, modes=MODES[:1], tracks=False, positive=False, in_turn=False):
    """Random trees; every leaf gives all of `targets`, or where these take turns, that of its tree. Nodes of a tree
    stand in any order."""
    a = {key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                             "falsenodeids", "missing_value_tracks_true")}
    given = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree, left, names):
        name = names.pop()
        at = len(a["nodeids"])
        leaf = left == 0 or (left < depth - 1 and RNG.random() < 0.3)
        entry = dict(treeids=tree, nodeids=name, featureids=0, values=0.0, modes="LEAF", truenodeids=0,
                     falsenodeids=0, missing_value_tracks_true=0)
        for key, value in entry.items():
            a[key].append(value)
        if leaf:
            for target in [targets[tree % len(targets)]] if in_turn else targets:
                weight = RNG.random() if positive else RNG.standard_normal()
                for key, value in (("treeids", tree), ("nodeids", name), ("ids", target),
                                   ("weights", float(weight) / trees)):
                    given[key].append(value)
            return name
        a["featureids"][at] = int(RNG.integers(0, 5))
        a["values"][at] = float(RNG.integers(-2, 3)) / 2
        a["modes"][at] = modes[int(RNG.integers(0, len(modes)))]
        a["missing_value_tracks_true"][at] = int(tracks and RNG.random() < 0.5)
        a["truenodeids"][at] = grow(tree, left - 1, names)
        a["falsenodeids"][at] = grow(tree, left - 1, names)
        return name

    for tree in range(trees):
        grow(tree, depth, list(RNG.permutation(np.arange(1, 1 << (depth + 1)))[::-1].tolist()))
    attributes = {f"nodes_{key}": value for key, value in a.items()}
    if not tracks:
        del attributes["nodes_missing_value_tracks_true"]
    return attributes | {f"{kind}_{key}": value for key, value in given.items()}


# Trees.
case("trees_sum", "TreeEnsembleRegressor", [rows()], n_targets=1, **forest("target", 7, [0]))
case("trees_base", "TreeEnsembleRegressor", [rows()], n_targets=1, base_values=[0.75],
     post_transform="LOGISTIC", **forest("target", 3, [0]))
case("trees_modes", "TreeEnsembleRegressor", [rows(60)], n_targets=2, **forest("target", 9, [0, 1], modes=MODES))
case("trees_missing", "TreeEnsembleRegressor", [rows(60, missing=0.3)], n_targets=1,
     **forest("target", 9, [0], tracks=True))
case("trees_average", "TreeEnsembleRegressor", [rows()], n_targets=3, aggregate_function="AVERAGE",
     base_values=[0.5, -1.0, 2.0], **forest("target", 4, [0, 1, 2]))
for function in ("MIN", "MAX"):
    case(f"trees_{function.lower()}", "TreeEnsembleRegressor", [rows()], n_targets=2,
         aggregate_function=function, **forest("target", 4, [0, 1]))
case("trees_softmax", "TreeEnsembleRegressor", [rows()], n_targets=3, post_transform="SOFTMAX",
     **forest("target", 4, [0, 1, 2]))
case("tree_of_one_leaf", "TreeEnsembleRegressor", [rows()], n_targets=1, **forest("target", 2, [0], depth=0))
for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
    name = transform.lower()
    case(f"classes_{name}", "TreeEnsembleClassifier", [rows()], 2, classlabels_int64s=[4, 2, 9, 0],
         post_transform=transform, base_values=[0.1, 0.2, -0.3, 0.0], **forest("class", 6, [0, 1, 2, 3]))
    for base in ((), (0.25,)):
        for positive in (True, False):
            extra = dict(base_values=list(base)) if base else {}
            case(f"two_classes_{name}_{len(base)}_{'positive' if positive else 'any'}", "TreeEnsembleClassifier",
                 [rows()], 2, classlabels_int64s=[0, 1], post_transform=transform, **extra,
                 **forest("class", 6, [0], positive=positive))
# Trees of one target each, not as many for every target, and none for the last one.
for function in ("SUM", "AVERAGE", "MIN", "MAX"):
    case(f"trees_in_turn_{function.lower()}", "TreeEnsembleRegressor", [rows()], n_targets=4,
         aggregate_function=function, **forest("target", 8, [2, 0, 1], in_turn=True))
case("classes_in_turn", "TreeEnsembleClassifier", [rows()], 2, classlabels_int64s=[4, 2, 9],
     post_transform="SOFTMAX", base_values=[0.1, 0.2, -0.3], **forest("class", 7, [0, 1, 2], in_turn=True))
case("trees_of_one_target", "TreeEnsembleRegressor", [rows()], n_targets=9, **forest("target", 4, [5], in_turn=True))
case("two_classes_both", "TreeEnsembleClassifier", [rows()], 2, classlabels_int64s=[0, 1],
     **forest("class", 6, [0, 1], positive=True))
for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
    case(f"two_classes_second_{transform.lower()}", "TreeEnsembleClassifier", [rows()], 2, classlabels_int64s=[7, 5],
         post_transform=transform, **forest("class", 6, [1], positive=transform == "NONE"))

# Linear models.
case("linear", "LinearRegressor", [rows()], coefficients=RNG.standard_normal(10).tolist(), targets=2,
     intercepts=[0.5, -0.25])
case("linear_plain", "LinearRegressor", [rows()], coefficients=RNG.standard_normal(5).tolist())
for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
    case(f"linear_classes_{transform.lower()}", "LinearClassifier", [rows()], 2, post_transform=transform,
         coefficients=RNG.standard_normal(15).tolist(), intercepts=[0.1, 0.0, -0.2], classlabels_ints=[3, 1, 2])
case("linear_two_classes", "LinearClassifier", [rows()], 2, coefficients=RNG.standard_normal(5).tolist(),
     intercepts=[0.1], classlabels_ints=[0, 1])
case("linear_both_classes", "LinearClassifier", [rows()], 2, coefficients=RNG.standard_normal(10).tolist(),
     intercepts=[0.1, -0.1], classlabels_ints=[0, 1], post_transform="LOGISTIC")

# Support vector machines.
KERNELS = {"LINEAR": [0.0, 0.0, 0.0], "POLY": [0.5, 1.0, 3.0], "RBF": [0.3, 0.0, 0.0], "SIGMOID": [0.2, -0.1, 0.0]}


def vectors(kernel, count, features=5):
    return dict(kernel_type=kernel, kernel_params=KERNELS[kernel],
                support_vectors=RNG.standard_normal(count * features).tolist())


def machine(per_class, kernel="RBF", probabilities=False, **attributes):
    """Random decisions between each two of some classes."""
    classes, count = len(per_class), sum(per_class)
    pairs = classes * (classes - 1) // 2
    if probabilities:
        attributes |= dict(prob_a=(-RNG.random(pairs) - 0.5).tolist(), prob_b=(0.3 * RNG.standard_normal(pairs)).tolist())
    return dict(coefficients=RNG.standard_normal((classes - 1) * count).tolist(), vectors_per_class=per_class,
                rho=RNG.standard_normal(pairs).tolist(), classlabels_ints=list(range(3, 3 + classes)),
                **vectors(kernel, count), **attributes)


for kernel in KERNELS:
    case(f"svm_{kernel.lower()}", "SVMRegressor", [rows()], coefficients=RNG.standard_normal(7).tolist(), rho=[0.3],
         n_supports=7, **vectors(kernel, 7))
    case(f"svm_classes_{kernel.lower()}", "SVMClassifier", [rows()], 2, **machine([4, 3, 5], kernel))
case("svm_one_class", "SVMRegressor", [rows()], coefficients=RNG.standard_normal(7).tolist(), rho=[-0.2],
     n_supports=7, one_class=1, **vectors("RBF", 7))
case("svm_plain", "SVMRegressor", [rows()], coefficients=RNG.standard_normal(5).tolist(), rho=[0.3], n_supports=0,
     kernel_type="LINEAR", kernel_params=KERNELS["LINEAR"])
for per_class in ([4, 3], [4, 3, 5], [2, 5, 1, 4, 3]):
    case(f"svm_probabilities_{len(per_class)}", "SVMClassifier", [rows(60)], 2, **machine(per_class, probabilities=True))
for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
    for per_class in ([4, 3], [4, 3, 5]):
        case(f"svm_{len(per_class)}_classes_{transform.lower()}", "SVMClassifier", [rows()], 2,
             **machine(per_class, post_transform=transform))
for classes in (2, 3):
    for positive in (True, False):
        weights = RNG.standard_normal(5 * classes)
        case(f"svm_{classes}_scores_{'positive' if positive else 'any'}", "SVMClassifier", [rows()], 2,
             coefficients=(np.abs(weights) if positive else weights).tolist(), rho=[0.1],
             classlabels_ints=list(range(classes)), kernel_type="LINEAR", kernel_params=KERNELS["LINEAR"])

# Features.
case("features_of_rows", "ArrayFeatureExtractor", [rows(), np.array([3, 0, 0], np.int64)])
case("features_of_a_vector", "ArrayFeatureExtractor", [rows()[0], np.array([[3, 0, 1]], np.int64)])
case("scaler", "Scaler", [rows()], offset=RNG.standard_normal(5).tolist(), scale=RNG.random(5).tolist())
case("scaler_of_integers", "Scaler", [microsoft.i64(9, 4, 5)], offset=[1.5], scale=[0.25])
for norm in ("MAX", "L1", "L2"):
    x = rows()
    x[3] = 0
    case(f"normalizer_{norm.lower()}", "Normalizer", [x], norm=norm)
case("imputer", "Imputer", [rows(missing=0.3)], imputed_value_floats=[1.0, 2.0, 3.0, 4.0, 5.0],
     replaced_value_float=float("nan"))
case("imputer_of_integers", "Imputer", [microsoft.i64(4, 6, 3)], imputed_value_int64s=[7], replaced_value_int64=2)
case("vectorizer", "FeatureVectorizer", [rows(4, 2), rows(4, 3)], inputdimensions=[2, 3])
case("one_hot", "OneHotEncoder", [microsoft.i64(6, 3, 7)], cats_int64s=[0, 3, 5])
x = rows(4, 3)
case("maps", "ZipMap", [x], expected=[x], classlabels_int64s=[3, 1, 2])
case("labels_to_integers", "LabelEncoder", [microsoft.i64(6, 3, 7)], keys_int64s=[1, 2, 5], values_int64s=[10, 20, 50],
     default_int64=-3)
case("labels_to_floats", "LabelEncoder", [microsoft.i64(6, 9)], keys_int64s=[0, 4], values_floats=[0.5, 1.5],
     default_float=9.0)


def main(out):
    microsoft.main(out, CASES)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
