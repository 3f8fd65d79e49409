# SPDX-License-Identifier: Apache-2.0
"""Predictors and transformers of scikit-learn through skl2onnx, with its default options, so that
classifiers end in ZipMap. Expected values are predict(), predict_proba(), transform()."""

import dataclasses
import importlib
import warnings

import numpy

from exported.exported_case import TOLERANCE, Case, Exported, make_generator

_EXPORTER = "skl2onnx"


class _Sklearn:
    """A module of scikit-learn that is imported when it is first used: listing cases uses none."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, member):
        return getattr(importlib.import_module(f"sklearn.{self._name}"), member)


def modules(*names):
    return [_Sklearn(name) for name in names]


@dataclasses.dataclass
class Data:
    """Rows to learn from: numbers, a class and a number to predict."""

    features: numpy.ndarray
    labels: numpy.ndarray
    target: numpy.ndarray


def make_data(name, rows=240, columns=6, classes=3):
    generator = make_generator(name)
    features = generator.standard_normal((rows, columns)).astype(numpy.float32)
    score = features @ generator.standard_normal((columns, classes))
    score += 0.5 * features[:, :1] * features[:, 1:2]
    target = numpy.sin(score[:, 0]) + 0.3 * score[:, 1]
    return Data(features, score.argmax(1), target.astype(numpy.float32))


def write(model, inputs, path, **options):
    """Converts to a file; `inputs` are the arrays of a run by name."""
    from skl2onnx import to_onnx
    from skl2onnx.common import data_types

    kinds = {"f": data_types.FloatTensorType, "i": data_types.Int64TensorType,
             "O": data_types.StringTensorType, "U": data_types.StringTensorType}  # fmt: skip
    declared = [
        (name, kinds[array.dtype.kind]([None, *array.shape[1:]])) for name, array in inputs.items()
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proto = to_onnx(model, initial_types=declared, target_opset={"": 21, "ai.onnx.ml": 3},
                        **options)  # fmt: skip
    path.write_bytes(proto.SerializeToString())


def _probabilities(model, rows):
    return [dict(zip(model.classes_.tolist(), row)) for row in model.predict_proba(rows).tolist()]


def answer(model, rows):
    """What the file's outputs have to be, in the order in which skl2onnx writes them."""
    if hasattr(model, "predict_proba") and not hasattr(model, "classes_"):  # mixtures
        return [model.predict(rows), model.predict_proba(rows)]
    if hasattr(model, "predict_proba"):
        return [model.predict(rows), _probabilities(model, rows)]
    if hasattr(model, "classes_") and hasattr(model, "decision_function"):
        return [model.predict(rows), None]
    if hasattr(model, "score_samples") and hasattr(model, "offset_"):  # outliers
        return [model.predict(rows).reshape(-1, 1), model.decision_function(rows).reshape(-1, 1)]
    if hasattr(model, "predict") and hasattr(model, "cluster_centers_"):
        return [model.predict(rows), model.transform(rows)]
    if hasattr(model, "predict"):
        predicted = model.predict(rows)
        return [predicted.reshape(len(rows), -1)]
    return [model.transform(rows)]


def _away_from_fences(model, rows):
    """Rows of which the predicted class does not hang on a rounding error."""
    if hasattr(model, "predict_proba"):
        ordered = numpy.sort(model.predict_proba(rows), 1)
        rows = rows[ordered[:, -1] - ordered[:, -2] > 1e-3]
    elif hasattr(model, "decision_function"):
        scores = model.decision_function(rows)
        scores = scores.reshape(len(rows), -1)
        if scores.shape[1] == 1:
            rows = rows[numpy.abs(scores[:, 0]) > 1e-3]
        else:
            ordered = numpy.sort(scores, 1)
            rows = rows[ordered[:, -1] - ordered[:, -2] > 1e-3]
    return rows


def _numeric(name, build, learns="labels", tolerance=TOLERANCE, data=make_data, **options):
    def make(folder):
        learned = data(name)
        model = build()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if learns is None:
                model.fit(learned.features)
            else:
                model.fit(learned.features, getattr(learned, learns))
        fresh = data(name + " later").features
        rows = _away_from_fences(model, fresh)
        path = folder / "model.onnx"
        write(model, {"X": rows}, path, **options)
        runs = [({"X": part}, answer(model, part)) for part in (rows[:1], rows[:37], rows)]
        if options.get("options") == {"zipmap": "columns"}:
            runs = [
                (inputs, [expected[0], *model.predict_proba(inputs["X"]).T])
                for inputs, expected in runs
            ]
        return Exported(path, runs, tolerance, is_extent_free=True)

    return Case(f"sklearn/{name}", _EXPORTER, make)


def _positive(name):
    data = make_data(name)
    data.features = numpy.abs(data.features)
    return data


def _holes(name):
    data = make_data(name)
    mask = make_generator(name + " holes").random(data.features.shape) < 0.2
    data.features[mask] = numpy.nan
    return data


def _two_classes(name):
    data = make_data(name)
    data.labels = numpy.where(data.labels == 1, 1, 0)
    return data


def _words(name):
    data = make_data(name)
    data.labels = numpy.array(["none", "some", "many"])[data.labels]
    return data


def _several_targets(name):
    data = make_data(name)
    data.target = numpy.stack([data.target, data.features[:, 0] ** 2], 1)
    return data


def _list_linear():
    discriminant_analysis, linear_model, naive_bayes, neural_network, svm = modules(
        "discriminant_analysis", "linear_model", "naive_bayes", "neural_network", "svm")  # fmt: skip

    yield _numeric("logistic_regression", lambda: linear_model.LogisticRegression())
    yield _numeric("logistic_regression_words", lambda: linear_model.LogisticRegression(),
                   data=_words)  # fmt: skip
    yield _numeric("logistic_regression_columns", lambda: linear_model.LogisticRegression(),
                   data=_two_classes, options={"zipmap": "columns"})  # fmt: skip
    yield _numeric("linear_regression", lambda: linear_model.LinearRegression(), "target",
                   data=_several_targets)  # fmt: skip
    yield _numeric("elastic_net", lambda: linear_model.ElasticNet(0.05), "target")
    yield _numeric("bayesian_ridge", lambda: linear_model.BayesianRidge(), "target")
    yield _numeric("huber", lambda: linear_model.HuberRegressor(), "target")
    yield _numeric("poisson", lambda: linear_model.PoissonRegressor(), "target", data=_counts)
    yield _numeric("sgd_classifier", lambda: linear_model.SGDClassifier(
        loss="modified_huber", random_state=1))  # fmt: skip
    yield _numeric("ridge_classifier", lambda: linear_model.RidgeClassifier())
    yield _numeric("lda", lambda: discriminant_analysis.LinearDiscriminantAnalysis())
    yield _numeric("qda", lambda: discriminant_analysis.QuadraticDiscriminantAnalysis(),
                   tolerance=1e-3)  # fmt: skip
    yield _numeric("gaussian_nb", lambda: naive_bayes.GaussianNB(), tolerance=1e-3)
    yield _numeric("multinomial_nb", lambda: naive_bayes.MultinomialNB(), data=_positive)
    yield _numeric("mlp_classifier", lambda: neural_network.MLPClassifier(
        (12, 8), activation="tanh", max_iter=60, random_state=1))  # fmt: skip
    yield _numeric("mlp_regressor", lambda: neural_network.MLPRegressor(
        hidden_layer_sizes=(12,), activation="logistic", max_iter=60, random_state=1), "target")  # fmt: skip
    yield _numeric("svc_rbf", lambda: svm.SVC(probability=True, random_state=1), tolerance=1e-3)
    yield _numeric("svc_poly", lambda: svm.SVC(kernel="poly", degree=2, coef0=0.5), tolerance=1e-3)
    yield _numeric("svr", lambda: svm.SVR(kernel="sigmoid", gamma=0.05), "target", 1e-3)
    yield _numeric("nu_svr", lambda: svm.NuSVR(), "target", 1e-3)
    yield _numeric("linear_svc", lambda: svm.LinearSVC())
    yield _numeric("one_class_svm", lambda: svm.OneClassSVM(nu=0.2), None, 1e-3)


def _counts(name):
    data = make_data(name)
    data.target = numpy.floor(numpy.exp(data.target))
    return data


def _positive_target(name):
    data = make_data(name)
    data.target = numpy.exp(data.target)
    return data


def _list_trees():
    ensemble, tree = modules("ensemble", "tree")

    yield _numeric("decision_tree", lambda: tree.DecisionTreeClassifier(max_depth=6))
    yield _numeric("decision_tree_regressor", lambda: tree.DecisionTreeRegressor(max_depth=7),
                   "target", data=_several_targets)  # fmt: skip
    yield _numeric("random_forest", lambda: ensemble.RandomForestClassifier(60, random_state=1))
    yield _numeric("random_forest_regressor", lambda: ensemble.RandomForestRegressor(
        50, max_depth=8, random_state=1), "target")  # fmt: skip
    yield _numeric("extra_trees", lambda: ensemble.ExtraTreesClassifier(40, random_state=1),
                   data=_words)  # fmt: skip
    yield _numeric("gradient_boosting", lambda: ensemble.GradientBoostingClassifier(n_estimators=20))
    yield _numeric("gradient_boosting_regressor",
                   lambda: ensemble.GradientBoostingRegressor(n_estimators=30), "target")  # fmt: skip
    yield _numeric("hist_gradient_boosting", lambda: ensemble.HistGradientBoostingClassifier(
        max_iter=20), data=_holes)  # fmt: skip
    yield _numeric("hist_gradient_boosting_regressor",
                   lambda: ensemble.HistGradientBoostingRegressor(max_iter=20), "target",
                   data=_holes)  # fmt: skip
    yield _numeric("ada_boost", lambda: ensemble.AdaBoostClassifier(n_estimators=10),
                   tolerance=1e-3)  # fmt: skip
    yield _numeric("bagging", lambda: ensemble.BaggingClassifier(n_estimators=6, random_state=1))
    yield _numeric("isolation_forest", lambda: ensemble.IsolationForest(n_estimators=30, random_state=1), None,
                   1e-3)  # fmt: skip


def _list_others():
    names = ("calibration", "cluster", "decomposition", "ensemble", "feature_selection",
             "gaussian_process", "impute", "linear_model", "mixture", "multiclass",
             "multioutput", "neighbors", "pipeline", "preprocessing", "random_projection",
             "tree")  # fmt: skip
    (calibration, cluster, decomposition, ensemble, feature_selection, gaussian_process, impute,
     linear_model, mixture, multiclass, multioutput, neighbors, pipeline, preprocessing,
     random_projection, tree) = modules(*names)  # fmt: skip
    (kernels,) = modules("gaussian_process.kernels")
    yield _numeric("knn_classifier", lambda: neighbors.KNeighborsClassifier(5))
    yield _numeric("knn_regressor", lambda: neighbors.KNeighborsRegressor(
        4, weights="distance", metric="manhattan"), "target", 1e-3)  # fmt: skip
    yield _numeric("gaussian_process", lambda: gaussian_process.GaussianProcessRegressor(
        kernels.ConstantKernel(1.5) * kernels.RBF(1.3) + kernels.WhiteKernel(0.3)), "target",
        1e-3)  # fmt: skip
    yield _numeric("kmeans", lambda: cluster.KMeans(4, n_init=3, random_state=1), None, 1e-3)
    yield _numeric("gaussian_mixture", lambda: mixture.GaussianMixture(3, random_state=1), None,
                   1e-3)  # fmt: skip
    yield _numeric("pca", lambda: decomposition.PCA(3, whiten=True), None)
    yield _numeric("truncated_svd", lambda: decomposition.TruncatedSVD(3, random_state=1), None)
    yield _numeric("kernel_pca", lambda: decomposition.KernelPCA(3, kernel="rbf"), None, 1e-3)
    yield _numeric("random_projection",
                   lambda: random_projection.GaussianRandomProjection(3, random_state=1),
                   None)  # fmt: skip
    yield _numeric("polynomial_features", lambda: preprocessing.PolynomialFeatures(3), None)
    yield _numeric("k_bins", lambda: preprocessing.KBinsDiscretizer(4, encode="onehot-dense"), None)
    yield _numeric("power_transformer", lambda: preprocessing.PowerTransformer(), None, 1e-3)
    yield _numeric("quantile_transformer",
                   lambda: preprocessing.QuantileTransformer(n_quantiles=20), None, 1e-3)  # fmt: skip
    yield _numeric("spline_like_scalers", lambda: pipeline.make_pipeline(
        preprocessing.RobustScaler(), preprocessing.MinMaxScaler(clip=True),
        preprocessing.Normalizer("l1"), preprocessing.MaxAbsScaler()), None)  # fmt: skip
    yield _numeric("imputer", lambda: impute.SimpleImputer(strategy="median"),
                   None, data=_holes)  # fmt: skip
    yield _numeric("knn_imputer", lambda: impute.KNNImputer(n_neighbors=3), None, data=_holes,
                   tolerance=1e-3)  # fmt: skip
    yield _numeric("feature_union", lambda: pipeline.make_pipeline(
        preprocessing.StandardScaler(),
        pipeline.make_union(decomposition.PCA(2), feature_selection.SelectKBest(k=3)),
        linear_model.LogisticRegression()))  # fmt: skip
    yield _numeric("calibrated", lambda: calibration.CalibratedClassifierCV(
        tree.DecisionTreeClassifier(max_depth=4), method="sigmoid"), tolerance=1e-3)  # fmt: skip
    yield _numeric("voting", lambda: ensemble.VotingClassifier(
        [("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=4))],
        voting="soft", flatten_transform=False))  # fmt: skip
    yield _numeric("stacking", lambda: ensemble.StackingRegressor(
        [("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=4))]),
        "target")  # fmt: skip
    yield _numeric("one_vs_rest", lambda: multiclass.OneVsRestClassifier(
        linear_model.LogisticRegression()))  # fmt: skip
    yield _numeric("one_vs_one", lambda: multiclass.OneVsOneClassifier(
        linear_model.LogisticRegression()))  # fmt: skip
    yield _numeric("chain", lambda: multioutput.MultiOutputRegressor(
        ensemble.GradientBoostingRegressor(n_estimators=8)), "target",
        data=_several_targets)  # fmt: skip


def _list_rare():
    names = ("calibration", "cluster", "compose", "cross_decomposition", "decomposition", "dummy",
             "ensemble", "feature_selection", "gaussian_process", "linear_model", "mixture",
             "model_selection", "multiclass", "naive_bayes", "neighbors", "pipeline",
             "preprocessing", "svm", "tree")  # fmt: skip
    (calibration, cluster, compose, cross_decomposition, decomposition, dummy, ensemble, feature_selection,
     gaussian_process, linear_model, mixture, model_selection, multiclass, naive_bayes,
     neighbors, pipeline, preprocessing, svm, tree) = modules(*names)  # fmt: skip
    (kernels,) = modules("gaussian_process.kernels")
    regressors = {
        "lars": lambda: linear_model.Lars(),
        "lasso_lars": lambda: linear_model.LassoLars(0.02),
        "matching_pursuit": lambda: linear_model.OrthogonalMatchingPursuit(),
        "ard": lambda: linear_model.ARDRegression(),
        "theil_sen": lambda: linear_model.TheilSenRegressor(random_state=1),
        "ransac": lambda: linear_model.RANSACRegressor(random_state=1),
        "quantile": lambda: linear_model.QuantileRegressor(alpha=0.01),
        "sgd_regressor": lambda: linear_model.SGDRegressor(random_state=1),
        "passive_aggressive": lambda: linear_model.PassiveAggressiveRegressor(random_state=1),
        "ridge_cv": lambda: linear_model.RidgeCV(),
        "pls": lambda: cross_decomposition.PLSRegression(2),
        "knn_minkowski": lambda: neighbors.KNeighborsRegressor(5, metric="minkowski", p=3),
        "linear_svr": lambda: svm.LinearSVR(random_state=1),
        "ada_boost_regressor": lambda: ensemble.AdaBoostRegressor(n_estimators=8, random_state=1),
        "extra_tree": lambda: tree.ExtraTreeRegressor(max_depth=6, random_state=1),
        "voting_regressor": lambda: ensemble.VotingRegressor(
            [("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=4))]),
        "grid_search": lambda: model_selection.GridSearchCV(linear_model.Ridge(), {"alpha": [0.1, 1.0]}),
        "gaussian_process_rational": lambda: gaussian_process.GaussianProcessRegressor(
            kernels.RationalQuadratic(1.2, 0.8), alpha=0.1, optimizer=None),
    }  # fmt: skip
    for name, build in regressors.items():
        yield _numeric(name, build, "target", 1e-3)
    yield _numeric("tweedie", lambda: linear_model.TweedieRegressor(power=1.5), "target", data=_counts)
    yield _numeric("gamma", lambda: linear_model.GammaRegressor(), "target", data=_positive_target)
    classifiers = {
        "perceptron": lambda: linear_model.Perceptron(random_state=1),
        "nu_svc": lambda: svm.NuSVC(probability=True, random_state=1),
        "bernoulli_nb": lambda: naive_bayes.BernoulliNB(binarize=0.1),
        "bagged_linear": lambda: ensemble.BaggingClassifier(
            linear_model.LogisticRegression(), n_estimators=4, random_state=1),
        "stacking_classifier": lambda: ensemble.StackingClassifier(
            [("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=4))]),
        "select_from_model": lambda: pipeline.make_pipeline(
            feature_selection.SelectFromModel(ensemble.ExtraTreesClassifier(10, random_state=1)),
            linear_model.LogisticRegression()),
        "tree_of_one_leaf": lambda: tree.DecisionTreeClassifier(max_depth=1),
    }  # fmt: skip
    for name, build in classifiers.items():
        yield _numeric(name, build, tolerance=1e-3)
    yield _numeric("complement_nb", lambda: naive_bayes.ComplementNB(), data=_positive, tolerance=1e-3)
    transformers = {
        "incremental_pca": lambda: decomposition.IncrementalPCA(3, batch_size=60),
        "mini_batch_kmeans": lambda: cluster.MiniBatchKMeans(4, n_init=3, random_state=1),
        "bayesian_mixture": lambda: mixture.BayesianGaussianMixture(n_components=3, random_state=1),
        "variance_threshold": lambda: feature_selection.VarianceThreshold(0.9),
        "binarizer": lambda: preprocessing.Binarizer(threshold=0.2),
        "function_transformer": lambda: pipeline.make_pipeline(
            preprocessing.FunctionTransformer(), preprocessing.StandardScaler()),
        "k_bins_ordinal": lambda: preprocessing.KBinsDiscretizer(5, encode="ordinal", strategy="kmeans"),
        "tree_embedding": lambda: ensemble.RandomTreesEmbedding(6, max_depth=3, sparse_output=False, random_state=1),
        "outlier_factor": lambda: neighbors.LocalOutlierFactor(8, novelty=True),
        "column_mix": lambda: compose.make_column_transformer(
            (preprocessing.PolynomialFeatures(2), [0, 3]), (preprocessing.RobustScaler(), [1, 2]),
            ("drop", [4]), remainder="passthrough"),
    }  # fmt: skip
    for name, build in transformers.items():
        yield _numeric(name, build, None, 1e-3)


def list_cases():
    yield from _list_linear()
    yield from _list_trees()
    yield from _list_others()
    yield from _list_rare()
