# SPDX-License-Identifier: Apache-2.0
"""LightGBM and XGBoost through onnxmltools, CatBoost by its own writer."""

import warnings

import numpy

from exported.exported_case import Case, Exported
from exported.sklearn_models import make_data


def _float_rows(columns):
    from onnxmltools.convert.common.data_types import FloatTensorType

    return [("X", FloatTensorType([None, columns]))]


def _maps(classes, probabilities):
    return [dict(zip(classes, row)) for row in probabilities.tolist()]


def _finish(model, path, rows, is_classifier, name="X", rank=1, tolerance=2e-4):
    runs = []
    for part in (rows[:1], rows[:50]):
        predicted = numpy.asarray(model.predict(part)).reshape(-1, *(1,) * (rank - 1))
        if is_classifier:
            probabilities = model.predict_proba(part)
            classes = range(probabilities.shape[1])
            runs.append(({name: part}, [predicted.reshape(-1), _maps(classes, probabilities)]))
        else:
            runs.append(({name: part}, [predicted]))
    return Exported(path, runs, tolerance, is_extent_free=True)


def _light(kind, **settings):
    def make(folder):
        import lightgbm
        import onnxmltools

        data = make_data(f"lightgbm {kind} {sorted(settings.items())}", columns=8)
        if settings.pop("holes", False):
            data.features[::3, 2] = numpy.nan
        categories = {}
        if settings.pop("categories", False):
            # Splits that compare with sets of values.
            data.features[:, 1] = numpy.abs(data.features[:, 1] * 3).astype(numpy.int64) % 7
            data.labels = (data.labels + data.features[:, 1].astype(numpy.int64) // 2) % 3
            data.target = data.target + numpy.sin(data.features[:, 1] * 2)
            categories = {"categorical_feature": [1]}
        is_classifier = kind == "LGBMClassifier"
        model = getattr(lightgbm, kind)(n_estimators=40, num_leaves=12, verbose=-1, n_jobs=1,
                                        random_state=1, **settings)  # fmt: skip
        labels = data.labels if is_classifier else data.target
        if kind == "LGBMRanker":
            model.fit(data.features, data.labels, group=[60, 80, 100])
        else:
            model.fit(data.features, labels, **categories)
        proto = onnxmltools.convert_lightgbm(model, initial_types=_float_rows(8), target_opset=15)
        path = folder / "model.onnx"
        path.write_bytes(proto.SerializeToString())
        rows = data.features
        if not is_classifier:
            return _finish(model, path, rows, False, rank=2)
        exported = _finish(model, path, rows, True)
        if proto.graph.node[-1].op_type != "ZipMap":
            exported.runs = [
                (inputs, [expected[0], model.predict_proba(inputs["X"])])
                for inputs, expected in exported.runs
            ]
        return exported

    return make


def _extreme(kind, classes=3, **settings):
    def make(folder):
        import onnxmltools
        import xgboost

        data = make_data(f"xgboost {kind} {classes}", columns=8, classes=classes)
        is_classifier = kind == "XGBClassifier"
        model = getattr(xgboost, kind)(n_estimators=30, max_depth=5, n_jobs=1, random_state=1,
                                       **settings)  # fmt: skip
        target = numpy.abs(data.target) if settings.get("objective") == "count:poisson" else data.target
        model.fit(data.features, data.labels if is_classifier else target)
        proto = onnxmltools.convert_xgboost(model, initial_types=_float_rows(8), target_opset=15)
        path = folder / "model.onnx"
        path.write_bytes(proto.SerializeToString())
        exported = _finish(model, path, data.features, is_classifier, rank=2)
        if is_classifier:
            exported.runs = [
                (inputs, [expected[0], model.predict_proba(inputs["X"])])
                for inputs, expected in exported.runs
            ]
        return exported

    return make


def _cat(kind, classes=3, **settings):
    def make(folder):
        import catboost

        data = make_data(f"catboost {kind} {classes}", columns=8, classes=classes)
        is_classifier = kind == "CatBoostClassifier"
        model = getattr(catboost, kind)(iterations=30, depth=5, verbose=0, thread_count=1,
                                        random_seed=1, allow_writing_files=False,
                                        **settings)  # fmt: skip
        model.fit(data.features, data.labels if is_classifier else data.target)
        path = folder / "model.onnx"
        model.save_model(str(path), format="onnx")
        return _finish(model, path, data.features, is_classifier, "features", rank=2)

    return make


_MODELS = (
    ("lightgbm/classifier", "onnxmltools", _light("LGBMClassifier")),
    ("lightgbm/regressor", "onnxmltools", _light("LGBMRegressor", holes=True)),
    ("lightgbm/dart", "onnxmltools", _light(
        "LGBMRegressor", boosting_type="dart", drop_rate=0.3)),
    ("lightgbm/ranker", "onnxmltools", _light("LGBMRanker")),
    ("lightgbm/quantile", "onnxmltools", _light("LGBMRegressor", objective="quantile", alpha=0.7)),
    ("lightgbm/categories", "onnxmltools", _light("LGBMRegressor", categories=True)),
    ("lightgbm/category_classes", "onnxmltools", _light("LGBMClassifier", categories=True)),
    ("lightgbm/small_leaves", "onnxmltools", _light("LGBMRegressor", min_child_samples=2, max_depth=-1)),
    ("xgboost/logistic", "onnxmltools", _extreme("XGBClassifier", 2, objective="binary:logistic", base_score=0.3)),
    ("xgboost/hinge", "onnxmltools", _extreme("XGBClassifier", 2, objective="binary:hinge")),
    ("xgboost/absolute_error", "onnxmltools", _extreme("XGBRegressor", objective="reg:absoluteerror")),
    ("xgboost/lossguide", "onnxmltools", _extreme("XGBRegressor", grow_policy="lossguide", max_leaves=9)),
    ("catboost/ordered", "catboost", _cat("CatBoostRegressor", boosting_type="Ordered")),
    ("catboost/quantile", "catboost", _cat("CatBoostRegressor", loss_function="Quantile:alpha=0.7")),
    ("xgboost/classifier", "onnxmltools", _extreme("XGBClassifier")),
    ("xgboost/binary", "onnxmltools", _extreme("XGBClassifier", 2)),
    ("xgboost/regressor", "onnxmltools", _extreme("XGBRegressor")),
    ("xgboost/poisson", "onnxmltools", _extreme("XGBRegressor", objective="count:poisson")),
    ("xgboost/forest", "onnxmltools", _extreme("XGBRFRegressor")),
    ("catboost/classifier", "catboost", _cat("CatBoostClassifier")),
    ("catboost/binary", "catboost", _cat("CatBoostClassifier", 2)),
    ("catboost/regressor", "catboost", _cat("CatBoostRegressor")),
)  # fmt: skip


def _quietly(make):
    def run(folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(folder)

    return run


def list_cases():
    for name, exporter, make in _MODELS:
        yield Case(name, exporter, _quietly(make))
