# SPDX-License-Identifier: Apache-2.0
"""The engines that compare.py compares, each in a process of its own.

A process per engine, model and thread count keeps thread pools, allocators and peak memory apart.
It obeys commands over a pipe: compare.py says when to run, so that engines take turns.
"""

import contextlib
import json
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

import numpy

import cuda_memory
import ncnn_models

# What a process is asked for; longer means that it hangs.
_TIMEOUT_S = 600
# Threads of Mesa's lavapipe, a Vulkan device that is a processor. GPUs do not look at it.
_LAVAPIPE_THREADS = "LP_NUM_THREADS"
# Sets of instructions that --cpu-isa names, as our plugin calls them, and as oneDNN does, which OpenVINO
# is built on. limited_peers.py says what that setting leaves out.
CPU_ISAS = {"sse4": "SSE41", "avx2": "AVX2", "avx512": "AVX512_CORE"}
# Of which the first two warm up.
_PROFILED_RUNS = 9
# Where the system looks for libraries.
_LIBRARY_PATH = "LD_LIBRARY_PATH"


class EngineError(Exception):
    """An engine that cannot do what it was asked, in a sentence."""


def _find_peer(package, options):
    """Has the import of a peer find its copy of limited_peers.py, where options have one."""
    if folder := options.get("peer_folders", {}).get(package):
        sys.path.insert(0, folder)


class _Onnxifi:
    @staticmethod
    def prepare():
        """Imports what is this benchmark's and not the engine's."""
        sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))
        import onnxifi  # noqa: F401

    def __init__(self, threads, options):
        import onnxifi

        self._onnxifi = onnxifi
        # Read by the plugin when the device is opened, which is after this.
        os.environ["ONNXIFI_NUM_THREADS"] = str(threads)
        os.environ[_LAVAPIPE_THREADS] = str(threads)
        if isa := options.get("cpu_isa"):
            os.environ["ONNXIFI_CPU_ISA"] = isa
        # The device's plugin alone, as the peers have no other: to list OpenCL's devices loads their
        # drivers, some with compilers of 60 MB.
        plugin = options["device"].split(":")[0]
        path = pathlib.Path(self._find_library(options)).parent / f"libonnxifi-{plugin}.so"
        if path.exists():
            os.environ["ONNXIFI_BACKENDS"] = str(path)
        device = options["device"]
        try:
            self._device = onnxifi.Library(self._find_library(options)).device(device)
        except onnxifi.Error:
            if path.exists():
                onnxifi.Library(path).device(device)  # Fails too, with the plugin's reason.
            raise
        self._backend = self._device.backend()
        self._place = None
        if cuda_memory.is_on_device(device):
            self._place = cuda_memory.Device(cuda_memory.index_of(device))

    @staticmethod
    def _find_library(options):
        return options["library"]

    def load(self, path):
        self._session = self._onnxifi.Session(path, self._device)

    def bind(self, inputs):
        outputs = {}
        if self._place is not None:
            extents = self._session.infer_output_shapes({name: array.shape for name, array in inputs.items()})
            self._taken = {
                value.name: numpy.zeros(extents[value.name], value.dtype) for value in self._session.outputs
            }
            inputs, outputs = self._put(inputs), self._put(self._taken)
        self._last = self._session.bind(inputs, outputs)
        return self._last.run

    def _put(self, arrays):
        """Copies of arrays in the device's memory."""
        return {
            name: self._onnxifi.Memory(self._place.put(array), array.shape, self._place.memory_type)
            for name, array in arrays.items()
        }

    # A run of the same model for another thread; read_outputs reads those of the last one.
    bind_caller = bind

    def read_outputs(self):
        if self._place is None:
            return self._last.outputs
        for name, memory in self._last.outputs.items():
            self._place.take(memory.address, self._taken[name])
        return self._taken

    def describe(self):
        return {"device": self._device.name}

    def profile(self, path, inputs):
        """The steps of a run of a second graph of the model, each with its median time of several runs."""
        session = self._onnxifi.Session(path, self._device, profile=True)
        binding = session.bind(inputs)
        profiles = []
        for _ in range(_PROFILED_RUNS):
            binding.run()
            profiles.append(session.profile())
        steps = profiles[-1]
        # The number of steps of loops may depend on what they compute.
        profiles = [profile for profile in profiles[2:] if len(profile) == len(steps)]
        return [
            {
                "implementation": step.implementation,
                "detail": step.detail,
                "family": step.family,
                "extents": step.extents,
                "flops": step.flops,
                "bytes": step.read_bytes + step.written_bytes,
                "ns": statistics.median(profile[number].duration_ns for profile in profiles),
            }
            for number, step in enumerate(steps)
        ]


class _Before(_Onnxifi):
    """Another build of ours, with its own plugins."""

    @staticmethod
    def _find_library(options):
        return options["against_library"]


class _Without(_Onnxifi):
    """Ours again, without a kernel."""

    def __init__(self, threads, options):
        # Read by the plugin at its first call.
        os.environ["ONNXIFI_CPU_WITHOUT"] = options["without"]
        super().__init__(threads, options)


class _Numbers(_Onnxifi):
    """Ours again, with a model of numbers where the other has symbols."""


class _OnnxRuntime:
    """On the processor, or with the CUDA provider, in float32 without TF32."""

    def __init__(self, threads, options):
        _find_peer("onnxruntime", options)
        import onnxruntime

        self._onnxruntime = onnxruntime
        onnxruntime.set_default_logger_severity(3)
        available = onnxruntime.get_available_providers()
        self._index = None
        self._provider = "CPUExecutionProvider"
        if cuda_memory.is_on_device(options["device"]):
            self._index = cuda_memory.index_of(options["device"])
            self._provider = "CUDAExecutionProvider"
        if self._provider not in available:
            raise EngineError(f"it has no {self._provider}, but {', '.join(available)}.")
        self._settings = self._make_settings(threads)
        self._threads = threads

    def _make_settings(self, threads):
        settings = self._onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        settings.inter_op_num_threads = 1
        settings.execution_mode = self._onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        return settings

    def _open(self, settings, has_graph):
        provider = self._provider
        if self._index is not None:
            options = {
                "device_id": self._index,
                "use_tf32": 0,
                "cudnn_conv_algo_search": "EXHAUSTIVE",
                "prefer_nhwc": 1,
                "enable_cuda_graph": int(has_graph),
            }
            provider = (provider, options)
        session = self._onnxruntime.InferenceSession(self._path, settings, providers=[provider])
        # Where a provider does not load, the session has another and says nothing.
        if session.get_providers()[0] != self._provider:
            raise EngineError(f"it computes with {', '.join(session.get_providers())} alone.")
        return session

    def load(self, path):
        self._path = str(path)
        self._without_graph = None
        if self._index is None:
            self._session = self._open(self._settings, has_graph=False)
            return
        try:
            self._session = self._open(self._settings, has_graph=True)
            self._find_extents()
        except EngineError:
            raise
        except Exception as fault:  # Its own refusals have no type of their own.
            self._leave_graph(fault)

    def _find_extents(self):
        """A CUDA graph writes to the same memory in every run, which is there before the first."""
        for output in self._session.get_outputs():
            if not all(isinstance(extent, int) for extent in output.shape):
                raise ValueError(f"the shape of output '{output.name}' is {output.shape}")

    def bind(self, inputs):
        self._inputs = inputs
        if self._index is not None and self._without_graph is None:
            try:
                run = self._bind()
                run()  # Records the graph.
                return run
            except Exception as fault:  # As in load.
                self._leave_graph(fault)
        return self._bind()

    def _leave_graph(self, fault):
        self._without_graph = str(fault).strip().splitlines()[0]
        self._session = self._open(self._settings, has_graph=False)

    def _bind(self):
        self._names = [output.name for output in self._session.get_outputs()]
        binding = self._session.io_binding()
        self._binding = binding
        device = "cpu" if self._index is None else "cuda"
        make_value = self._onnxruntime.OrtValue.ortvalue_from_numpy
        for name, array in self._inputs.items():
            if self._index is None:
                binding.bind_cpu_input(name, array)
            else:
                binding.bind_ortvalue_input(name, make_value(array, device, self._index))
        if self._index is not None and self._without_graph is None:
            self._values = self._make_outputs(device)
        else:
            for name in self._names:
                binding.bind_output(name, device, self._index or 0)
            self._session.run_with_iobinding(binding)
            # Memory of our own for the outputs, as the other engines have it.
            self._values = binding.get_outputs()
            binding.clear_binding_outputs()
        for name, value in zip(self._names, self._values):
            binding.bind_ortvalue_output(name, value)
        session = self._session
        return lambda: session.run_with_iobinding(binding)

    def _make_outputs(self, device):
        types = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(int64)": "int64"}
        make = self._onnxruntime.OrtValue.ortvalue_from_shape_and_type
        return [
            make(output.shape, numpy.dtype(types[output.type]).type, device, self._index)
            for output in self._session.get_outputs()
        ]

    def read_outputs(self):
        return {name: value.numpy() for name, value in zip(self._names, self._values)}

    def describe(self):
        """Of the CUDA provider, the nodes that run elsewhere, as a profiled run tells."""
        if self._index is None:
            return {}
        settings = self._make_settings(self._threads)
        settings.enable_profiling = True
        with tempfile.TemporaryDirectory() as folder:
            settings.profile_file_prefix = str(pathlib.Path(folder, "run"))
            session = self._open(settings, has_graph=False)
            session.run(None, self._inputs)
            events = json.loads(pathlib.Path(session.end_profiling()).read_text())
        return {"without_graph": self._without_graph, **find_nodes_elsewhere(events, self._provider)}


def find_nodes_elsewhere(events, provider):
    """Of a profile of ONNX Runtime's, how many nodes ran, and those of another provider."""
    nodes = {}
    for event in events:
        by = event.get("args", {}).get("provider")
        if event.get("cat") == "Node" and by:
            name = event["name"].removesuffix("_kernel_time")
            nodes[name] = (by, event["args"].get("op_name", ""))
    elsewhere = [f"{kind} '{name}'" for name, (by, kind) in nodes.items() if by != provider]
    return {"layers": len(nodes), "layers_elsewhere": elsewhere}


class _Torch:
    """PyTorch on a CUDA device in float32 without TF32: eagerly, recorded once as a CUDA graph."""

    def __init__(self, threads, options):
        device = options["device"]
        if not cuda_memory.is_on_device(device):
            raise EngineError(f"it is compared on CUDA devices only, not on '{device}'.")
        import torch

        self._torch = torch
        if not torch.cuda.is_available():
            raise EngineError("it finds no CUDA device.")
        self._device = torch.device("cuda", cuda_memory.index_of(device))
        torch.cuda.set_device(self._device)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision("highest")

    def load(self, path):
        torch = self._torch
        # Of torch_translation.py, from this machine.
        self._model = torch.load(path, weights_only=False, map_location=self._device)
        self._module = self._model["module"].eval()
        # Keys and values of attention have four axes, too.
        functions = {getattr(node.target, "__name__", "") for node in self._module.graph.nodes}
        self._has_images = "conv2d" in functions
        if self._has_images:
            self._module = self._module.to(memory_format=torch.channels_last)

    def _place(self, array):
        tensor = self._torch.from_numpy(array.copy()).to(self._device)
        if tensor.dim() != 4 or not self._has_images:
            return tensor
        return tensor.to(memory_format=self._torch.channels_last)

    def bind(self, inputs):
        self._arguments = [self._place(inputs[name]) for name in self._model["inputs"]]
        with self._torch.inference_mode():
            return self._prepare()

    def _prepare(self):
        torch = self._torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):  # It searches for algorithms first.
                self._module(*self._arguments)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._outputs = self._module(*self._arguments)

        def run():
            graph.replay()
            torch.cuda.synchronize()

        return run

    def read_outputs(self):
        return {name: value.cpu().numpy() for name, value in zip(self._model["outputs"], self._outputs)}

    def describe(self):
        return {"device": self._torch.cuda.get_device_name(self._device)}


class _CompiledTorch(_Torch):
    """The same module, compiled by torch.compile, which makes CUDA graphs too."""

    def _prepare(self):
        torch = self._torch
        # Constants are the module's for good, so that normalisations go into convolutions.
        import torch._inductor.config

        torch._inductor.config.freezing = True
        compiled = torch.compile(self._module, mode="max-autotune")

        def run():
            with torch.inference_mode():
                self._outputs = compiled(*self._arguments)
            torch.cuda.synchronize()

        for _ in range(3):  # It records a graph in the second.
            run()
        return run


class _OpenVino:
    def __init__(self, threads, options):
        # Read as its CPU plugin is opened.
        if isa := options.get("cpu_isa"):
            os.environ["ONEDNN_MAX_CPU_ISA"] = CPU_ISAS[isa]
        _find_peer("openvino", options)
        import openvino

        self._openvino = openvino
        self._core = openvino.Core()
        # Opens the CPU plugin. Its default precision may be 16 bits; the comparison is of float32.
        self._core.set_property(
            "CPU",
            {
                "INFERENCE_NUM_THREADS": threads,
                **self._list_streams(options.get("serves_callers")),
                "INFERENCE_PRECISION_HINT": "f32",
            },
        )

    @staticmethod
    def _list_streams(serves_callers):
        if serves_callers:
            return {"PERFORMANCE_HINT": "THROUGHPUT"}
        return {"NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}

    def load(self, path):
        self._compiled = self._core.compile_model(str(path), "CPU")

    def bind(self, inputs):
        self._inputs = inputs
        self._request = self._compiled.create_infer_request()
        for name, array in inputs.items():
            tensor = self._openvino.Tensor(array, shared_memory=True)
            self._request.set_tensor(name, tensor)
        request = self._request
        # Without inputs it runs on the tensors that are set; outputs are not copied.
        return lambda: request.infer(share_inputs=True, share_outputs=True)

    def read_outputs(self):
        return {
            output.any_name: self._request.get_tensor(output).data.copy()
            for output in self._compiled.outputs
        }


@contextlib.contextmanager
def _silence_errors():
    """What C code prints to the standard error meanwhile is lost."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


class _Ncnn:
    """ncnn on a Vulkan device, in float32, with what pnnx makes of the model (ncnn_models.py)."""

    def __init__(self, threads, options):
        os.environ[_LAVAPIPE_THREADS] = str(threads)
        import ncnn

        self._ncnn = ncnn
        self._threads = threads
        with _silence_errors():  # It prints the device's features.
            self._index = self._find_device(options["device"])
            ncnn.get_gpu_device(self._index)  # Opens it.

    def _find_device(self, key):
        """Without a Vulkan device ncnn computes on the processor and says nothing."""
        plugin, _, number = key.partition(":")
        if plugin != "vulkan":
            raise EngineError(f"it is compared on Vulkan devices only, not on '{key}'.")
        index, count = int(number or 0), self._ncnn.get_gpu_count()
        if index >= count:
            raise EngineError(f"it finds {count} Vulkan devices, none of number {index}.")
        return index

    def load(self, path):
        converted = ncnn_models.find(path)
        self._net = net = self._ncnn.Net()
        settings = net.opt
        settings.num_threads = self._threads
        settings.use_vulkan_compute = True
        settings.use_winograd_convolution = True
        for name in dir(settings):
            # Some of them are on by default.
            if name.startswith(("use_fp16", "use_bf16", "use_int8")):
                setattr(settings, name, False)
        net.set_vulkan_device(self._index)
        if net.load_param(str(converted.network)) or net.load_model(str(converted.weights)):
            raise EngineError("it does not load what pnnx made.")
        if not net.opt.use_vulkan_compute or net.vulkan_device() is None:
            raise EngineError("it does not compute this model on the Vulkan device.")
        self._names = converted.outputs

    def bind(self, inputs):
        arrays = list(zip(self._net.input_names(), inputs.values(), strict=True))
        outputs = self._net.output_names()
        ncnn, net = self._ncnn, self._net

        def run():
            extractor = net.create_extractor()
            for name, array in arrays:
                if extractor.input(name, ncnn.Mat(array, batch_index=0)):
                    raise EngineError(f"it does not take input '{name}'.")
            values = []
            for name in outputs:
                status, value = extractor.extract(name)
                if status:
                    raise EngineError(f"a run ends with status {status}.")
                values.append(value)
            self._values = values

        return run

    def read_outputs(self):
        arrays = (value.numpy(batch_index=0).copy() for value in self._values)
        return dict(zip(self._names, arrays, strict=True))

    def describe(self):
        """The device, and the layers that do not run on it."""
        info = self._ncnn.get_gpu_info(self._index)
        elsewhere = [layer for layer in self._net.layers() if not layer.support_vulkan]
        return {
            "device": info.device_name(),
            "layers": len(self._net.layers()),
            "layers_elsewhere": [f"{layer.type} '{layer.name}'" for layer in elsewhere],
        }


_ENGINES = {
    "onnxifi": _Onnxifi,
    "onnxruntime": _OnnxRuntime,
    "openvino": _OpenVino,
    "ncnn": _Ncnn,
    "torch": _Torch,
    "torch-compile": _CompiledTorch,
    "before": _Before,
    "numbers": _Numbers,
    "without": _Without,
}

NAMES = tuple(_ENGINES)


def _read_memory_kib(field):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise EngineError(f"The system does not tell {field} of a process.")


class _ProcessMemory:
    """By how much the process has grown at its peak, from now on."""

    def __init__(self):
        # Sets VmHWM back to what is resident now.
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        self._before = _read_memory_kib("VmRSS")

    def peak_mib(self):
        return (_read_memory_kib("VmHWM") - self._before) / 1024


class _DeviceMemory:
    """By how much memory in use on a CUDA device has grown: what an engine took, it keeps."""

    def __init__(self, device):
        self._device = cuda_memory.Device(cuda_memory.index_of(device))
        self._before = self._device.used_bytes()

    def peak_mib(self):
        return (self._device.used_bytes() - self._before) / 2**20


def _time_runs(run, count, clock=time.perf_counter_ns):
    times = []
    for _ in range(count):
        start = clock()
        run()
        times.append((clock() - start) / 1e6)
    return times


def _time_callers(runs, seconds):
    """Each run again and again from a thread of its own: the milliseconds of all, and those they took together.
    A thread that begins late, as on a busy machine, still calls its run once."""
    times = [[] for _ in runs]
    start = time.perf_counter_ns()
    end = start + round(seconds * 1e9)

    def call(run, own):
        before = time.perf_counter_ns()
        while before < end or not own:
            run()
            after = time.perf_counter_ns()
            own.append((after - before) / 1e6)
            before = after

    threads = [threading.Thread(target=call, args=pair) for pair in zip(runs, times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [value for own in times for value in own], (time.perf_counter_ns() - start) / 1e6


def _serve(pipe, name, threads, options):
    """The process's main function: answers ("ok", result) or ("fault", sentence) per command."""
    engine = run = None
    if options.get("cache_folder"):
        os.environ["ONNXIFI_CACHE_DIR"] = options["cache_folder"]
        os.environ["MESA_SHADER_CACHE_DIR"] = options["cache_folder"]
    if hasattr(_ENGINES[name], "prepare"):
        _ENGINES[name].prepare()
    memory = _ProcessMemory()
    while True:
        command, *arguments = pipe.recv()
        try:
            if command == "open":
                if cuda_memory.is_on_device(options["device"]):
                    memory = _DeviceMemory(options["device"])
                engine = _ENGINES[name](threads, options)
                result = None
            elif command == "load":
                path, inputs = arguments
                start = time.perf_counter_ns()
                engine.load(path)
                loaded = time.perf_counter_ns()
                run = engine.bind(inputs)
                run()
                first = time.perf_counter_ns()
                peak_mib = memory.peak_mib()
                result = {
                    "load_ms": (loaded - start) / 1e6,
                    "first_result_ms": (first - start) / 1e6,
                    "peak_mib": peak_mib,
                    "process_peak_mib": _read_memory_kib("VmHWM") / 1024,
                    "outputs": engine.read_outputs(),
                    "facts": engine.describe() if hasattr(engine, "describe") else {},
                }
            elif command == "time":
                warm_up, count = arguments
                clock = time.process_time_ns if options.get("is_cpu_time") else time.perf_counter_ns
                _time_runs(run, warm_up, clock)
                result = _time_runs(run, count, clock)
            elif command == "serve":
                inputs, callers, seconds = arguments
                bind = getattr(engine, "bind_caller", engine.bind)
                copies = [{key: value.copy() for key, value in inputs.items()} for _ in range(callers)]
                runs = [bind(copy) for copy in copies]
                _time_callers(runs, seconds / 4)
                times, together_ms = _time_callers(runs, seconds)
                result = {"times_ms": times, "together_ms": together_ms, "outputs": engine.read_outputs()}
            elif command == "profile":
                result = engine.profile(*arguments)
            else:  # "end"
                pipe.send(("ok", None))
                os._exit(0)  # Destructors of the engines are not what is measured.
            pipe.send(("ok", result))
        except Exception as fault:  # Whatever an engine raises is told, not lost.
            sentence = str(fault).strip().splitlines() or [type(fault).__name__]
            pipe.send(("fault", sentence[0]))


@contextlib.contextmanager
def _library_path(folders):
    """Processes that are started meanwhile look for libraries in these folders, if there are any."""
    before = dict(os.environ)
    if folders:
        os.environ[_LIBRARY_PATH] = folders
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Engine:
    """A process with one engine. Every function raises EngineError when it fails or dies."""

    def __init__(self, name, threads, options):
        context = multiprocessing.get_context("spawn")
        self.name = name
        self._pipe, other = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(other, name, threads, options), daemon=True
        )
        folders = options.get("library_path") if issubclass(_ENGINES[name], _Onnxifi) else None
        with _library_path(folders):
            self._process.start()
        other.close()
        try:
            self._ask("open")
        except EngineError:
            self.close()
            raise

    def load(self, path, inputs):
        """Loads a model and runs it once; returns times, memory and outputs."""
        return self._ask("load", str(path), inputs)

    def time(self, warm_up, count):
        """Returns the milliseconds of `count` runs after `warm_up` that are not timed."""
        return self._ask("time", warm_up, count)

    def serve(self, inputs, callers, seconds):
        """Runs the loaded model from so many threads at once, each with tensors of its own. Returns the
        milliseconds of each run, those that all took together, and the outputs of one of the threads."""
        return self._ask("serve", inputs, callers, seconds)

    def profile(self, path, inputs):
        """Returns the steps of a run of ours."""
        return self._ask("profile", str(path), inputs)

    def close(self):
        with contextlib.suppress(EngineError):
            self._ask("end")
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _ask(self, *command):
        try:
            self._pipe.send(command)
            if not self._pipe.poll(_TIMEOUT_S):
                self._process.kill()
                raise EngineError(f"{self.name} does not answer within {_TIMEOUT_S} s.")
            state, result = self._pipe.recv()
        except (EOFError, OSError) as fault:
            self._process.join(10)
            raise EngineError(
                f"The process of {self.name} ended with status {self._process.exitcode}."
            ) from fault
        if state == "fault":
            raise EngineError(f"{self.name}: {result}")
        return result
