# SPDX-License-Identifier: Apache-2.0
"""Session: a model on a device, and its runs on numpy's arrays. run, get_inputs and get_outputs are those of
ONNX Runtime's InferenceSession."""

import ctypes
import dataclasses
import mmap
import os
import threading

import numpy

from . import arrays, element_types, interface, options, reports
from .arrays import address_of
from .binding import Binding
from .errors import Error, MismatchError, UnsupportedError, make_error
from .graph import Graph, as_address, describe
from .library import Library, default_library
from .model_outline import ModelOutline
from .open_inputs import OpenInputs, declare
from .prepared_run import PreparedShape
from .value_run import ValueRun

# More shapes than this are prepared anew: an input whose extents never come again would fill memory.
_MOST_SHAPES = 64
_MOST_VARIANTS = 16
_addressof, _from_buffer, _empty, _ndarray = ctypes.addressof, ctypes.c_char.from_buffer, numpy.empty, numpy.ndarray


def _read_model(model):
    """The bytes of a model, its folder, and whether they are a mapping of a file, or never change."""
    if isinstance(model, (str, os.PathLike)):
        path = os.path.abspath(os.fspath(model))
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
        except OSError as fault:
            raise make_error("INVALID_MODEL", f"The model '{path}' cannot be read: {fault.strerror}.") from fault
        return content, os.path.dirname(path), bool(size), True
    if hasattr(model, "SerializeToString"):
        return model.SerializeToString(), None, False, True
    if isinstance(model, bytes):
        return model, None, False, True
    try:
        return bytearray(memoryview(model).cast("B")), None, False, True
    except TypeError:
        raise make_error(
            "INVALID_MODEL", f"A model is a path, bytes or an onnx.ModelProto, and not a {type(model).__name__}."
        ) from None


class Session:
    """A model on a device.

    `model` is a path, bytes or an onnx.ModelProto; `device` a key ("cpu:0"), a plugin ("opencl") or a Device,
    by default the auto device; `library` a Library or its path; further options are fields of GraphOptions.
    Several threads may run one session at once. close(), a `with` block or the garbage collector releases it.
    """

    def __init__(self, model, device=None, *, library=None, **graph_options):
        if getattr(device, "library", None) is not None:
            self._device = device
        else:
            if not isinstance(library, Library):
                library = default_library() if library is None else Library(library)
            self._device = library.device(device)
        try:
            chosen = options.GraphOptions(**graph_options)
        except TypeError:
            known = {field.name for field in dataclasses.fields(options.GraphOptions)}
            unknown = ", ".join(f"'{name}'" for name in graph_options if name not in known)
            raise TypeError(f"Session has no option {unknown}; there are {', '.join(sorted(known))}.") from None
        content, folder, is_mapped, is_lasting = _read_model(model)
        outline = ModelOutline(content)
        self.inputs, self.outputs = outline.inputs, outline.outputs
        self._weights = self._take_weights(chosen.weights or {})
        if chosen.base_folder is None and folder is not None and self._device.takes("BASE_FOLDER"):
            chosen.base_folder = folder
        if chosen.lasting_model is None:
            chosen.lasting_model = is_lasting and self._device.takes("LASTING_MODEL")
        if chosen.mapped_model is None:
            chosen.mapped_model = is_mapped and self._device.takes("MAPPED_MODEL")
        self._options, self._content, self._size_bytes = chosen, as_address(content), len(content)
        self._variant_options = {**graph_options, "base_folder": chosen.base_folder}
        self._nodes = outline.nodes() if chosen.pins else []
        outline.release()
        self._library = self._device.library
        self._bind_lock = threading.Lock()
        self._prepare_lock = threading.Lock()
        self._prepared, self._value_runs = {}, []
        self._is_closed = False
        self._output_names = [value.name for value in self.outputs]
        self._bytes_of = {name: name.encode() for name in self._output_names}
        self._output_bytes = list(self._bytes_of.values())
        self._given = tuple((value.name, self._dtype_of(value)) for value in self.inputs)
        self._is_of_numbers = all(value.element_type for value in (*self.inputs, *self.outputs))
        # Sessions of the model with inputs of the ranks and lengths that runs gave, where it leaves those open.
        self._variants, self._compiling, self._open_inputs, self._latest = {}, {}, None, None
        try:
            self._graph = self._open_graph()
        except UnsupportedError as error:
            self._open_variants(error, content)

    @staticmethod
    def _dtype_of(value):
        return value.dtype if value.element_type else None

    def _make_graph(self, takes_values):
        properties, _kept = options.make_properties(self._options, self._device, self._nodes, takes_values)
        weights = describe([(name, number, shape, address_of(array)) for name, number, shape, array in self._weights])
        return Graph(
            self._device, self._content, self._size_bytes, properties, takes_values, (len(self._weights), weights)
        )

    def _take_weights(self, weights):
        """(name, element type, shape, array) of the weights, whose inputs are no longer among `inputs`."""
        declared = {value.name: value.element_type for value in self.inputs}
        taken = []
        for name, given in weights.items():
            if not declared.get(name):
                names = ", ".join(f"'{known}'" for known, number in declared.items() if number) or "none"
                raise make_error("UNIDENTIFIED_NAME", f"'{name}' is no input that can become a weight; there are {names}.")
            array = arrays.as_input(name, given, declared[name])
            packed = element_types.pack(array, declared[name]) if element_types.is_packed(declared[name]) else array
            taken.append((name, declared[name], array.shape, packed))
        self.inputs = [value for value in self.inputs if value.name not in weights]
        return taken

    def _open_graph(self):
        """A graph that takes values of any kind gives outputs, too, whose extents only a run tells, and runs on
        descriptors as any other. But auto does not cut it among devices, and a plain 1.0 plugin has none."""
        if not self._is_of_numbers:
            return self._make_graph(True)
        is_placed = self._options.pins or self._options.placement
        if self._may_need_run() and not is_placed and self._device.takes("VALUES"):
            try:
                graph = self._make_graph(True)
            except UnsupportedError:
                pass
            else:
                if not (graph.is_emulated and self._device.key == "auto"):
                    return graph
        try:
            return self._make_graph(False)
        except MismatchError as error:
            if error.status != "MISMATCHING_SHAPE" or not self._device.takes("VALUES"):
                raise
            # The file declares shapes that do not follow. Values bring their own.
            try:
                return self._make_graph(True)
            except Error:
                raise error from None

    def _open_variants(self, error, content):
        """Raises the error of the whole model where no input is open, or where it is for another reason."""
        open_inputs = OpenInputs(self.inputs)
        if error.status != "UNSUPPORTED_SHAPE" or not open_inputs:
            raise error
        self._open_inputs, self._variant_content = open_inputs, content
        self._graph, self._is_of_numbers = None, False  # run looks at the second alone
        if open_inputs.has_lists:
            self._latest = self._find_probe()
            # Where lists of several lengths are open, a run may give what no probe has.
            if self._latest is None and open_inputs.has_one_length:
                raise error

    def _find_probe(self):
        """A variant for lists of some length; None where there is none."""
        for shapes in self._open_inputs.probes():
            try:
                return self._variant_of(shapes)
            except Error:
                pass
        return None

    def _variant_of(self, shapes):
        *others, last = self._open_inputs.declarations(shapes)
        for declared in (*others, last):
            found = self._find_variant(declared)
            if found is not None:
                return found
        for declared in others:
            try:
                return self._make_variant(declared)
            except UnsupportedError:
                pass
        return self._make_variant(last)

    def _find_variant(self, declared):
        key = tuple(declared.items())
        with self._prepare_lock:
            found = self._variants.pop(key, None)
            if found is not None:
                self._variants[key] = found  # the last is the one used last
        return found

    def _make_variant(self, declared):
        """Compiled outside the lock, so that runs of other shapes go on, and once for threads that ask at once."""
        key = tuple(declared.items())
        with self._prepare_lock:
            compiling = self._compiling.setdefault(key, threading.Lock())
        with compiling:
            found = self._find_variant(declared)
            if found is not None:
                return found
            content = declare(memoryview(self._variant_content).cast("B"), declared)
            made = _ClosedVariant if self._open_inputs.has_lists else Session
            try:
                found = made(content, self._device, **self._variant_options)
            finally:
                with self._prepare_lock:
                    self._compiling.pop(key, None)
                    if found is not None:
                        if len(self._variants) >= _MOST_VARIANTS:
                            self._variants.pop(next(iter(self._variants)))
                        self._variants[key] = found
            return found

    def _variant_for(self, feeds):
        if set(feeds) != {value.name for value in self.inputs}:
            raise self._name_fault(feeds)
        self._latest = variant = self._variant_of(self._open_inputs.shapes_of(feeds))
        return variant

    def _latest_variant(self):
        self._check_open()
        if self._latest is None:
            raise make_error(
                "INVALID_STATE", "The model leaves ranks or lengths of inputs open; it is compiled in the first run."
            )
        return self._latest

    def _may_need_run(self):
        """Whether an output has an extent that no input has, by what the model declares."""
        told = {extent for value in self.inputs for extent in value.shape or ()}
        return any(
            value.shape is None or any(not isinstance(extent, int) and extent not in told for extent in value.shape)
            for value in self.outputs
        )

    def _take_values(self):
        """Once more, for outputs whose extents only a run tells; runs that are under way keep the old graph."""
        with self._bind_lock:
            if not self._graph.takes_values:
                self._graph, self._prepared, self._value_runs = self._make_graph(True), {}, []

    def __repr__(self):
        return f"<onnxifi.Session on {self._device.key}: {', '.join(v.name for v in self.inputs)} -> {', '.join(self._output_names)}>"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Releases the graph; runs that are under way have to be over."""
        for variant in self._variants.values():
            variant.close()
        self._variants.clear()
        self._latest = self._variant_content = None
        if self._graph is not None:
            self._graph.release()
        self._is_closed, self._is_of_numbers = True, False  # run looks at the second alone
        self._prepared.clear()
        self._value_runs.clear()
        self._content = None

    def _check_open(self):
        if self._is_closed:
            raise make_error("INVALID_STATE", "The session is closed.")

    def get_inputs(self):
        return self.inputs

    def get_outputs(self):
        return self.outputs

    @property
    def device(self):
        return self._device

    @property
    def is_emulated(self):
        """The device has no kernels for the model and computes it by plain loops, slowly."""
        return self._latest_variant().is_emulated if self._open_inputs else self._graph.is_emulated

    # ---- Runs ----

    def __call__(self, /, **feeds):
        """{name: value} of all outputs."""
        return dict(zip(self._output_names, self.run(None, feeds)))

    def run(self, output_names, feeds, *, outputs=None):
        """The outputs of these names (None: all) as a list, for {name: input}.

        Inputs are arrays, tensors with __dlpack__, lists or numbers; dense arrays of the declared type are read
        where they lie. `outputs` are arrays of the caller's that the run fills, {name: array}.
        """
        if not self._is_of_numbers:
            return self._run_on_values(output_names, feeds, outputs)
        given, shapes = [], []
        try:
            for name, dtype in self._given:
                array = feeds[name]
                # carray: dense, aligned and writeable
                if type(array) is not _ndarray or array.dtype is not dtype or not array.flags.carray:
                    array = arrays.as_input(name, array, element_types.number_of(dtype))
                given.append(array)
                shapes.append(array.shape)
        except KeyError:
            raise self._name_fault(feeds) from None
        if len(feeds) != len(given):
            raise self._name_fault(feeds)
        key = tuple(shapes)
        free = self._prepared.get(key)
        if free is None:
            free = self._prepare_shape(key)
        try:
            prepared = free.pop()
        except IndexError:
            if free.untold is not None:
                return self._run_on_values(output_names, feeds, outputs)
            prepared = free.make()
        try:
            if outputs is None and prepared.is_plain:
                results = []
                try:
                    for descriptor, array in zip(prepared.inputs, given):
                        descriptor.buffer = _addressof(_from_buffer(array))
                    for descriptor, shape, dtype in prepared.made:
                        result = _empty(shape, dtype)
                        descriptor.buffer = _addressof(_from_buffer(result))
                        results.append(result)
                except (TypeError, ValueError, BufferError):  # as address_of says
                    results = self._run_prepared(prepared, free, given, None)
                else:
                    prepared.carry_out(self._library)
            else:
                results = self._run_prepared(prepared, free, given, outputs)
        except MismatchError as error:
            if outputs is not None:
                raise
            return self._run_undeclared(error, free, output_names, feeds)
        free.append(prepared)
        return results if output_names is None else self._choose(output_names, results)

    def _run_undeclared(self, error, free, output_names, feeds):
        """Extents of inputs were checked before: here the file gives an output a symbol that does not follow, as
        exporters do that name the height of an image before and after pooling alike. Values bring their own."""
        if error.status != "MISMATCHING_SHAPE" or not self._device.takes("VALUES"):
            raise error
        results = self._run_on_values(output_names, feeds, None)
        free.untold = self._output_names[0]
        return results

    def _run_prepared(self, prepared, free, given, outputs):
        packed = []
        for descriptor, array, number in zip(prepared.inputs, given, free.packed):
            if number:
                array = element_types.pack(array, number)
                packed.append(array)
            descriptor.buffer = address_of(array)
        results, filled = [], []
        for descriptor, (name, number, dtype, shape, size) in zip(prepared.outputs, prepared.specs):
            if size is None:
                if outputs is not None and name in outputs:
                    result = outputs[name]
                    arrays.check_output(name, result, dtype, shape)
                else:
                    result = numpy.empty(shape, dtype)
                results.append(result)
            else:
                result = numpy.zeros(size, numpy.uint8)
                filled.append((len(results), name, number, shape, result))
                results.append(result)
            descriptor.buffer = address_of(result)
        if outputs is not None:
            self._check_outputs(outputs)
        prepared.carry_out(self._library)
        for at, name, number, shape, content in filled:
            results[at] = element_types.unpack(content, number, shape)
            if outputs is not None and name in outputs:
                arrays.check_output(name, outputs[name], results[at].dtype, shape)
                outputs[name][...] = results[at]
                results[at] = outputs[name]
        return results

    def _choose(self, output_names, results):
        by_name = dict(zip(self._output_names, results))
        try:
            return [by_name[name] for name in output_names]
        except KeyError as missing:
            raise self._no_output(missing.args[0]) from None

    def _no_output(self, name):
        names = ", ".join(f"'{known}'" for known in self._output_names)
        return make_error("UNIDENTIFIED_NAME", f"The model has no output '{name}'; its outputs are {names}.")

    def _check_outputs(self, outputs):
        for name in outputs:
            if name not in self._output_names:
                raise self._no_output(name)

    def _name_fault(self, feeds):
        known = [value.name for value in self.inputs]
        names = ", ".join(f"'{name}'" for name in known) or "none"
        unknown = [name for name in feeds if name not in known]
        missing = [name for name in known if name not in feeds]
        said = [f"The model has no input '{name}'" for name in unknown] + [f"Input '{name}' is not given" for name in missing]
        return make_error("UNIDENTIFIED_NAME", f"{'; '.join(said)}; the inputs are {names}.")

    def _prepare_shape(self, key):
        prepared = self._prepared
        free = PreparedShape(self._graph, self._library, self.inputs, key)
        with self._prepare_lock:
            if len(prepared) >= _MOST_SHAPES:
                prepared.pop(next(iter(prepared)))
            return prepared.setdefault(key, free)

    def _run_on_values(self, output_names, feeds, outputs):
        """Of texts, sequences, maps and optionals, and where only the run tells the extents of an output."""
        self._check_open()
        if self._open_inputs:
            return self._variant_for(feeds).run(output_names, feeds, outputs=outputs)
        try:
            wanted = self._output_bytes if output_names is None else [self._bytes_of[name] for name in output_names]
        except KeyError as unknown:
            raise self._no_output(unknown.args[0]) from None
        if outputs:
            self._check_outputs(outputs)
            raise make_error(
                "UNSUPPORTED_SHAPE",
                f"Output '{next(iter(outputs))}' takes no array of the caller: the model has values that are no tensors "
                "of numbers, or extents that only a run tells.",
            )
        try:
            contents = [feeds[name] for name, _ in self._given]
        except KeyError:
            raise self._name_fault(feeds) from None
        if len(feeds) != len(contents):
            raise self._name_fault(feeds)
        if not self._graph.takes_values:
            self._take_values()
        free = self._value_runs
        try:
            run = free.pop()
        except IndexError:
            run = ValueRun(self._graph, self.inputs)
        found = run.carry_out(self._library, contents, wanted, self._bind_lock)
        # One whose run failed is not used again.
        free.append(run)
        return [found[name] for name in wanted]

    def infer_output_shapes(self, shapes):
        """{name: extents} of the outputs for {name: extents} of the inputs; None for what only a run tells."""
        self._check_open()
        if not self._is_of_numbers and not self._open_inputs:
            raise make_error("UNSUPPORTED_DATATYPE", "The model has inputs or outputs that are no tensors of numbers.")
        if set(shapes) != {value.name for value in self.inputs}:
            raise self._name_fault(shapes)
        if self._open_inputs:
            return self._variant_of(shapes).infer_output_shapes(shapes)
        descriptors = describe([(value.name, value.element_type, tuple(shapes[value.name]), 0) for value in self.inputs])
        status, found = self._graph.infer_output_shapes(len(self.inputs), descriptors)
        self._library.check(status, "asking for the shapes of the outputs")
        return {
            name: None if extents is None else [None if extent < 0 else extent for extent in extents]
            for name, _, extents in found
        }

    def bind(self, feeds, outputs=None):
        """A Binding: runs on the same memory again and again. Inputs and outputs are dense arrays, or Memory."""
        self._check_open()
        if self._open_inputs:
            return self._variant_for(feeds).bind(feeds, outputs)
        if not self._is_of_numbers:
            raise make_error("UNSUPPORTED_DATATYPE", "Only tensors of numbers stay bound; run() takes all others.")
        if set(feeds) != {value.name for value in self.inputs}:
            raise self._name_fault(feeds)
        self._check_outputs(outputs or {})
        return Binding(self._graph, self._library, self.inputs, feeds, outputs or {})

    # ---- Reports ----

    def placement(self):
        """The islands of the graph: which device has which nodes. Also an option, which places them so again."""
        if self._open_inputs:
            return self._latest_variant().placement()
        try:
            return self._graph.plan()
        except Error:
            # A plugin that was opened by its path has no others.
            if self._device.key == "auto":
                raise
            return [reports.Island(self._device.key, [], [], 0, 0)]

    def explain(self):
        """Where each node runs and what each device says about it; str() of it is a text."""
        self._check_open()
        if self._open_inputs:
            return self._latest_variant().explain()
        reader = reports.ExplanationReader()
        pairs, folder = [], None
        if self._options.base_folder is not None:
            folder = ctypes.create_string_buffer(os.fsencode(self._options.base_folder))
            pairs = [interface.GRAPH_PROPERTIES["BASE_FOLDER"], ctypes.addressof(folder)]
        status = self._library.find("onnxExplainModelOnDevices")(
            (ctypes.c_uint64 * (len(pairs) + 1))(*pairs, 0),
            self._size_bytes,
            self._content,
            interface.DeviceAnswerCallback(reader.add_device),
            interface.NodeAnswerCallback(reader.add_node),
            None,
        )
        self._library.check(status, "explaining the model")
        explanation = reader.result()
        islands = self.placement()
        for node in explanation.nodes:
            node.device = next((i.device for i in islands if node.index in i.nodes or not i.nodes), "")
        return explanation

    def profile(self):
        """The steps of the last run, of a session with profile=True."""
        return self._latest_variant().profile() if self._open_inputs else self._graph.profile()


class _ClosedVariant(Session):
    """A session whose lists have declared lengths; one whose length is still open is only data, or is refused."""

    def _open_variants(self, error, content):
        raise error
