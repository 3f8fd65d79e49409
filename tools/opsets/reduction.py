# SPDX-License-Identifier: Apache-2.0
"""Reductions, products and norms of rows."""

import numpy

from opsets.case import SHAPE, covers, narrow, widen

_REDUCTIONS = {
    "ReduceL1": lambda x, axes: numpy.abs(x).sum(axes, keepdims=True),
    "ReduceL2": lambda x, axes: numpy.sqrt((x * x).sum(axes, keepdims=True)),
    "ReduceLogSum": lambda x, axes: numpy.log(x.sum(axes, keepdims=True)),
    "ReduceLogSumExp": lambda x, axes: numpy.log(numpy.exp(x).sum(axes, keepdims=True)),
    "ReduceMax": lambda x, axes: x.max(axes, keepdims=True),
    "ReduceMean": lambda x, axes: x.mean(axes, keepdims=True),
    "ReduceMin": lambda x, axes: x.min(axes, keepdims=True),
    "ReduceProd": lambda x, axes: x.prod(axes, keepdims=True),
    "ReduceSum": lambda x, axes: x.sum(axes, keepdims=True),
    "ReduceSumSquare": lambda x, axes: (x * x).sum(axes, keepdims=True),
}


@covers(*_REDUCTIONS)
def make_reduction(request):
    op_type = request.op_type
    takes_axes = request.version >= (13 if op_type == "ReduceSum" else 18)
    low, high = {"ReduceLogSum": (1, 4), "ReduceProd": (1, 1.25)}.get(op_type, (-4, 4))
    for name in request.types():
        x = request.values(name, (3, 37, 5), low, high)
        for axes, keepdims in (((1,), 1), ((0, 2), 0), (None, 1), ((-1, -2), 1)):
            if axes is not None and axes[0] < 0 and request.version < 11:
                continue
            y = narrow(_REDUCTIONS[op_type](widen(x), axes), name)
            if not keepdims:
                y = y.squeeze(axes)
            suffix = f"{name}_{'all' if axes is None else '_'.join(map(str, axes))}"
            attributes = {} if keepdims else {"keepdims": 0}
            if axes is None:
                yield request.case(suffix, [x], [y], **attributes)
            elif takes_axes:
                inputs = [x, numpy.array(axes, numpy.int64)]
                yield request.case(suffix, inputs, [y], constants=[1], **attributes)
            else:
                yield request.case(suffix, [x], [y], axes=list(axes), **attributes)
        if takes_axes:
            inputs = [x, numpy.zeros(0, numpy.int64)]
            attributes = {"constants": [1], "noop_with_empty_axes": 1}
            # Only the reduction is left out, not what is done to each element.
            y = narrow(_REDUCTIONS[op_type](widen(x)[..., None], -1)[..., 0], name)
            if op_type in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"):
                yield request.case(f"{name}_noop", inputs, [y], **attributes)


@covers("MatMul")
def make_matmul(request):
    for name in request.types():
        a, b = request.values(name, (2, 1, 7, 19)), request.values(name, (3, 19, 5))
        yield request.case(name, [a, b], [narrow(widen(a) @ widen(b), name)])
        a = request.values(name, (19,))
        yield request.case(f"{name}_vector", [a, b], [narrow(widen(a) @ widen(b), name)])
        b = request.values(name, (19, 37))
        yield request.case(f"{name}_constant", [a, b], [narrow(widen(a) @ widen(b), name)], [1])


@covers("Gemm")
def make_gemm(request):
    for name in request.types():
        is_whole = "int" in name
        alpha, beta = (2.0, 3.0) if is_whole else (0.625, 1.75)
        for turned in (0, 1):
            a = request.values(name, (19, 7) if turned else (7, 19))
            b = request.values(name, (37, 19) if turned else (19, 37))
            product = (widen(a).T if turned else widen(a)) @ (widen(b).T if turned else widen(b))
            for suffix, shape in (("matrix", (7, 37)), ("row", (37,)), ("column", (7, 1))):
                c = request.values(name, shape)
                attributes = {"alpha": alpha, "beta": beta, "transA": turned, "transB": turned}
                if request.version < 7 and suffix != "matrix":
                    attributes["broadcast"] = 1
                y = narrow(alpha * product + beta * widen(c), name)
                yield request.case(f"{name}_{suffix}_{turned}", [a, b, c], [y], **attributes)
        if request.version >= 11:
            yield request.case(f"{name}_no_c", [a, b], [narrow(product, name)], transA=1, transB=1)


@covers("Einsum")
def make_einsum(request):
    for name in request.types():
        a, b = request.values(name, (3, 7, 19), -2, 2), request.values(name, (3, 19, 5), -2, 2)
        for suffix, equation, inputs in (
            ("batch", "bij,bjk->bik", [a, b]),
            ("turned", "bij, bjk -> kbi", [a, b]),
            ("sum", "bij->j", [a]),
            ("implied", "bij,bjk", [a, b]),
            ("ellipsis", "...ij,...jk->...ik", [a, b]),
        ):
            y = numpy.einsum(equation.replace(" ", ""), *(widen(each) for each in inputs))
            attributes = {"equation": equation}
            yield request.case(f"{name}_{suffix}", inputs, [narrow(y, name)], **attributes)


@covers("Det")
def make_det(request):
    for name in request.types():
        x = request.values(name, (2, 3, 5, 5), -1, 1)
        outputs = [narrow(numpy.linalg.det(widen(x)), name)]
        loose = {"rtol": 1e-3, "atol": 1e-4} if name != "bfloat16" else {"atol": 2e-2}
        yield request.case(name, [x], outputs, **loose)


def _rows(x, axis, is_coerced):
    """Version 11 and earlier make a matrix of x: all axes from `axis` on are one row."""
    if not is_coerced:
        return x, axis
    axis %= x.ndim
    return x.reshape(int(numpy.prod(x.shape[:axis])), -1), 1


def _soften(op_type, x, axis):
    if op_type == "Hardmax":
        y = numpy.zeros_like(x)
        numpy.put_along_axis(y, numpy.expand_dims(x.argmax(axis), axis), 1, axis)
        return y
    shifted = x - x.max(axis, keepdims=True)
    if op_type == "LogSoftmax":
        return shifted - numpy.log(numpy.exp(shifted).sum(axis, keepdims=True))
    return numpy.exp(shifted) / numpy.exp(shifted).sum(axis, keepdims=True)


@covers("Softmax", "LogSoftmax", "Hardmax")
def make_softmax(request):
    is_old = request.version < 13
    for name in request.types():
        x = request.values(name, SHAPE)
        for suffix, axis in (("default", None), ("0", 0), ("2", 2), ("negative", -2)):
            if suffix == "negative" and request.version < 11:
                continue
            used = (1 if is_old else -1) if axis is None else axis
            rows, along = _rows(widen(x), used, is_old)
            y = narrow(_soften(request.op_type, rows, along).reshape(x.shape), name)
            attributes = {} if axis is None else {"axis": axis}
            # LogSoftmax is defined by differences of rounded values.
            loose = {"atol": 2e-2} if name == "bfloat16" else {}
            yield request.case(f"{name}_{suffix}", [x], [y], **attributes, **loose)


@covers("LpNormalization")
def make_lp_normalization(request):
    for name in request.types():
        x = request.values(name, SHAPE, 0.5, 4)
        wide = widen(x)
        for p, axis in ((1, 1), (2, 0), (2, -1)):
            norm = (numpy.abs(wide) ** p).sum(axis, keepdims=True) ** (1 / p)
            yield request.case(
                f"{name}_{p}_{axis}", [x], [narrow(wide / norm, name)], p=p, axis=axis
            )


@covers("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def make_likelihood_loss(request):
    is_softmax = request.op_type == "SoftmaxCrossEntropyLoss"
    for name in request.types("T"):
        x = request.values(name, (3, 5, 7, 2))
        target = request.random.integers(0, 5, (3, 7, 2))
        target[0, :3] = 2
        weight = request.values(name, (5,), 0.25, 2)
        wide = widen(x)
        logs = _soften("LogSoftmax", wide, 1) if is_softmax else wide
        for reduction in ("none", "sum", "mean"):
            for ignored in (None, 2):
                picked = -numpy.take_along_axis(logs, target[:, None], 1)[:, 0]
                weights = widen(weight)[target] * (target != ignored)
                loss = picked * weights
                if reduction == "sum":
                    loss = loss.sum()
                elif reduction == "mean":
                    loss = loss.sum() / weights.sum()
                attributes = {"reduction": reduction}
                if ignored is not None:
                    attributes["ignore_index"] = ignored
                outputs = [narrow(loss, name)]
                if is_softmax:
                    outputs.append(narrow(logs, name))
                suffix = f"{name}_{reduction}{'_ignored' if ignored is not None else ''}"
                loose = {"rtol": 1e-2, "atol": 1e-2} if name == "float16" else {}
                yield request.case(suffix, [x, target, weight], outputs, **attributes, **loose)
        kind = target.astype(numpy.int32)
        outputs = [narrow(-numpy.take_along_axis(logs, target[:, None], 1)[:, 0].mean(), name)]
        loose = {"rtol": 1e-2, "atol": 1e-2} if name == "float16" else {}
        yield request.case(f"{name}_int32", [x, kind], outputs, **loose)
