# SPDX-License-Identifier: Apache-2.0
"""Processes that answer questions, so that a crash or a hang costs one answer.

They are forked: a parent that has loaded no library has none in its children either.
"""

import multiprocessing
import os
import traceback

_CONTEXT = multiprocessing.get_context("fork")


class Lost(Exception):
    """The process crashed or hung; (kind, sentence)."""


def _serve(connection, make_server):
    status = 1
    try:
        server = make_server()
        while True:
            connection.send(server.answer(connection.recv()))
    except EOFError:  # the parent is gone or has no more questions
        status = 0
    except Exception:  # of every kind
        traceback.print_exc()
    os._exit(status)  # without the destructors of a library that may be broken, and without waiting for children


class Isolated:
    """What `make_server` makes, in another process; it has a method answer(question)."""

    def __init__(self, make_server, timeout_s):
        self._make_server, self._timeout_s = make_server, timeout_s
        self._process = None

    def _start(self):
        self._connection, other = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=self._become, args=(other,))
        self._process.start()
        other.close()

    def _become(self, connection):
        self._connection.close()
        _serve(connection, self._make_server)

    def ask(self, question):
        """The answer; raises Lost."""
        if self._process is None:
            self._start()
        try:
            self._connection.send(question)
            if not self._connection.poll(self._timeout_s):
                self.close()
                raise Lost("hung", f"No answer comes within {self._timeout_s:g} s.")
            return self._connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode
            self.close()
            raise Lost("crashed", f"The process ends with {f'signal {-code}' if code < 0 else f'status {code}'}.") from None

    def close(self):
        if self._process is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            self._process = None
