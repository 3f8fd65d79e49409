# SPDX-License-Identifier: Apache-2.0
"""Pipelines of scikit-learn over text and categories, through skl2onnx: vectorizers, encoders, and
columns of several types."""

import warnings

import numpy

from exported.exported_case import TOLERANCE, Case, Exported, make_generator
from exported.sklearn_models import answer, modules, write

_WORDS = ("red green blue the a quick brown fox jumps over lazy dog again never rain sun hot cold "
          "left right far near").split()  # fmt: skip


def _sentences(name, count):
    generator = make_generator(name)
    lengths = generator.integers(3, 12, count)
    texts = [" ".join(generator.choice(_WORDS, length)) for length in lengths]
    labels = numpy.array(["warm" if "sun" in text or "hot" in text else "other" for text in texts])
    return numpy.array(texts, object), labels


def _text(name, build, tolerance=TOLERANCE):
    def make(folder):
        texts, labels = _sentences(name, 150)
        model = build().fit(texts, labels)
        later, _ = _sentences(name + " later", 23)
        path = folder / "model.onnx"
        write(model, {"text": later.reshape(-1, 1)}, path)
        runs = []
        for part in (later[:1], later):
            expected = answer(model, part)
            if not hasattr(model, "predict"):
                expected = [model.transform(part).toarray()]
            runs.append(({"text": part.reshape(-1, 1)}, expected))
        return Exported(path, runs, tolerance, is_extent_free=True)

    return Case(f"sklearn/{name}", "skl2onnx", make)


def _categories(name, build, is_text=True):
    """Two columns of categories, as text or as numbers."""

    def make(folder):
        generator = make_generator(name)
        names = numpy.array(["ape", "bee", "cat", "dog"], object)
        rows = generator.integers(0, 4, (90, 2))
        rows = names[rows] if is_text else rows.astype(numpy.int64)
        model = build().fit(rows, (rows[:, 0] == rows[:, 1]).astype(int))
        path = folder / "model.onnx"
        write(model, {"X": rows[:20]}, path)
        runs = []
        for part in (rows[:1], rows[:20]):
            expected = answer(model, part)
            expected = [e.toarray() if hasattr(e, "toarray") else e for e in expected]
            runs.append(({"X": part}, expected))
        return Exported(path, runs, is_extent_free=True)

    return Case(f"sklearn/{name}", "skl2onnx", make)


def _columns():
    """A table of numbers with holes and of text, as those of shops are."""

    def make(folder):
        import pandas
        from sklearn import compose, ensemble, impute, pipeline, preprocessing

        def table(seed, count):
            generator = numpy.random.default_rng(seed)
            price = generator.gamma(2.0, 10.0, count).astype(numpy.float32)
            price[generator.random(count) < 0.1] = numpy.nan
            return {
                "price": price.reshape(-1, 1),
                "weight": generator.standard_normal((count, 1)).astype(numpy.float32),
                "shop": generator.choice(["north", "south", "web"], (count, 1)).astype(object),
                "size": generator.integers(1, 5, (count, 1)).astype(numpy.int64),
            }

        def frame(columns):
            return pandas.DataFrame({name: values[:, 0] for name, values in columns.items()})

        learned = table(1, 200)
        labels = (numpy.nan_to_num(learned["price"][:, 0]) > 18) ^ (learned["shop"][:, 0] == "web")
        numbers = pipeline.make_pipeline(
            impute.SimpleImputer(strategy="mean"), preprocessing.StandardScaler())  # fmt: skip
        model = pipeline.make_pipeline(
            compose.ColumnTransformer([
                ("numbers", numbers, ["price", "weight"]),
                ("shop", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["shop"]),
                ("size", preprocessing.OrdinalEncoder(), ["size"])]),
            ensemble.RandomForestClassifier(21, random_state=1))  # fmt: skip
        model.fit(frame(learned), labels.astype(int))
        path = folder / "model.onnx"
        runs = []
        for seed, count in ((2, 1), (3, 31)):
            columns = table(seed, count)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                runs.append((columns, answer(model, frame(columns))))
        write(model, runs[1][0], path)
        return Exported(path, runs, is_extent_free=True)

    return Case("sklearn/columns", "skl2onnx", make)


def list_cases():
    text, linear_model, naive_bayes, pipeline, preprocessing = modules(
        "feature_extraction.text", "linear_model", "naive_bayes", "pipeline", "preprocessing")  # fmt: skip
    # skl2onnx takes words of one letter unless it is told a pattern, and another logarithm for
    # sublinear_tf.
    yield _text("tfidf", lambda: text.TfidfVectorizer(
        ngram_range=(1, 2), token_pattern="[a-zA-Z0-9_]+"))  # fmt: skip
    yield _text("count_vectorizer", lambda: text.CountVectorizer(binary=True, min_df=2))
    yield _text("characters", lambda: text.CountVectorizer(analyzer="char", ngram_range=(2, 3)))
    yield _text("text_pipeline", lambda: pipeline.make_pipeline(
        text.TfidfVectorizer(norm="l1"),
        linear_model.LogisticRegression()))  # fmt: skip
    yield _text("text_bayes", lambda: pipeline.make_pipeline(
        text.CountVectorizer(), naive_bayes.ComplementNB()), 1e-3)  # fmt: skip
    yield _categories("one_hot", lambda: preprocessing.OneHotEncoder(handle_unknown="ignore"))
    yield _categories("one_hot_numbers", lambda: preprocessing.OneHotEncoder(drop="first"), False)
    yield _categories("ordinal", lambda: preprocessing.OrdinalEncoder())
    yield _categories("target_encoder", lambda: preprocessing.TargetEncoder(), False)
    yield _columns()
