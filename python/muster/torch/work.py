"""Implements torch's Work for calls under way.

There are three kinds of callers. A caller that waits at once (``dist.all_reduce(x)``) gets the call run on its own
thread: nothing is handed over, and Ctrl-C works. Python code that asked for ``async_op`` gets an Operation, whose ``wait`` waits for the
request itself; on torch 2.x, where every Work is returned through C++ and loses most of its methods, the Operation is passed beside it
(handing.hand). C++ code (DDP's reducer, functional collectives) gets the Operation, too: its wait raises errors. Only torch 1.13's C++, which
would lose the Python half, gets a C++ Work made from a Future, whose wait raises nothing; its DDP asks the Future itself. Futures are set by
the completion threads, or, at the end of a backward pass, by the thread that ran it.
"""
import os
import sys
import threading

import torch
import torch.distributed.distributed_c10d as c10d
from torch._C._distributed_c10d import Work, _create_work_from_future
from torch.futures import Future

from muster import _muster
from muster.torch.handing import hand, torch_needs_a_work
from muster.torch.meeting import milliseconds
from muster.torch.tensors import OPS_BY_IDENTITY, reduce_op

SYNC, PYTHON, FUTURE, AWAITED = range(4)

# torch 1.13 passes groups to Python unchanged; from 2.0 on every Work passes through C++.
WORKS_ARE_PYTHON = not hasattr(c10d.ProcessGroup, '_register_backend')
_C10D = c10d.__dict__
_WAITING = frozenset(('send', 'recv'))
_DDP = frozenset(('torch.nn.parallel.distributed', 'torch.distributed.utils'))
_engine = torch.autograd.Variable._execution_engine
_graph_task = getattr(torch._C, '_current_graph_task_id', None)


def wanted(opts, depth=2):
    """Returns what the caller of a collective will do with its Work.

    Newer options say whether the caller waits at once (asyncOp). For older ones this function reads the calling frame
    of torch.distributed, which takes 0.3 us and saves the hand-over to another thread. Any other caller gets a Work to
    wait for.
    """
    async_op = getattr(opts, 'asyncOp', None)
    if async_op is False:
        return SYNC
    if async_op is None:
        frame = sys._getframe(depth)
        if frame.f_globals is not _C10D:
            return PYTHON if WORKS_ARE_PYTHON and not _in_torch(frame) else FUTURE
        if frame.f_code.co_name in _WAITING or frame.f_locals.get('async_op') is False:
            return SYNC
        if WORKS_ARE_PYTHON and torch_needs_a_work(frame.f_back):
            return FUTURE
    return PYTHON if WORKS_ARE_PYTHON or hand.reaching else FUTURE


def _in_torch(frame):
    """Whether C++, which has no frame of its own, may be the caller."""
    return frame.f_globals.get('__name__', '').startswith('torch.')


def wanted_at_once(opts):
    """Like wanted, but returns AWAITED for calls for which DDP's C++ waits at once: on its own thread Ctrl-C works."""
    mode = wanted(opts, 3)
    if mode is FUTURE and sys._getframe(2).f_globals.get('__name__') in _DDP:
        return AWAITED
    return mode


def wanted_reduction(opts):
    """Returns (wanted(opts), libmuster's operation). One frame answers both."""
    frame = sys._getframe(2)
    if frame.f_globals is _C10D:
        local = frame.f_locals
        op = OPS_BY_IDENTITY.get(id(local.get('op')))
        if op is not None and local.get('async_op') is False:
            return SYNC, op
    return wanted(opts, 3), reduce_op(opts)


def at_end_of_backward(callback):
    """Has the callback called when the backward pass that this thread is running has computed everything; returns False if there is no such
    pass."""
    if _graph_task and _graph_task() == -1:
        return False
    try:
        _engine.queue_callback(callback)
    except RuntimeError:  # torch 1.13's way to report that there is no backward pass
        return False
    return True


def hand_over(mode, operation):
    """Returns the object to return to torch for an operation that has been started."""
    if operation.unpacks:
        operation.see_to()  # its result is unpacked even if no caller waits
    if mode is FUTURE:
        return operation.as_work()
    return operation if WORKS_ARE_PYTHON else _beside(operation)


def _beside(work):
    """Returns the Work for C++, while Python gets `work` itself (wrapping.py)."""
    hand.operation = work
    return DONE


def _tensors(result):
    """Returns the value of a Future: a flat list of tensors, also if the result has lists of them."""
    return [tensor for item in result for tensor in ((item,) if isinstance(item, torch.Tensor) else item)]


class Done:
    """The Work of a call that has ended without an error."""

    def __init__(self, result=(), source=-1):
        self._result = result
        self._source = source

    def wait(self, timeout=None):
        return True

    synchronize = wait

    def is_completed(self):
        return True

    is_success = is_completed

    def exception(self):
        return None

    def result(self):
        return _tensors(self._result)

    def source_rank(self):
        return self._source

    _source_rank = source_rank

    def get_future(self):
        future = Future()
        future.set_result(_tensors(self._result))
        return future


def _completed_work():
    future = Future()
    future.set_result([])
    return _create_work_from_future(future)


_COMPLETED = _completed_work()
DONE = Done() if WORKS_ARE_PYTHON else _COMPLETED


def finished(mode, result, source=-1):
    """Returns a Work for a call that was run on the caller's thread."""
    if mode is AWAITED:
        return _COMPLETED
    if mode is SYNC and not (WORKS_ARE_PYTHON and source >= 0):
        return DONE
    work = Done(result, source)
    if mode is FUTURE:
        return _create_work_from_future(work.get_future())
    return work if WORKS_ARE_PYTHON else _beside(work)


class Operation(Work):
    """A call under way. `finish` runs once after it has ended without an error, on the first thread that sees the end."""

    __slots__ = ('request', 'keep', '_finish', '_result', '_source', '_future', '_error', '_ended', '_lock')

    def __init__(self, keep, finish, result):
        super().__init__()
        self.request = None  # set only until the end, because the request also refers to this object
        self.keep = keep  # the tensors whose memory is in use
        self._finish = finish
        self._result = result
        self._source = -1
        self._future = None
        self._error = None
        self._ended = False
        self._lock = threading.Lock()

    @property
    def unpacks(self):
        return self._finish is not None

    def see_to(self):
        """Lets a completion thread end the call, unless another thread does before."""
        request = self.request
        _completion.ensure()
        if request is not None and not request.notify():
            self.end()

    def end(self):
        """Called when the request has ended; keeps its error for wait and the future."""
        with self._lock:
            if self._ended:
                return
            try:
                self.request.test()
                if self._finish:
                    self._finish()
            except Exception as error:
                self._error = error
            self._source = self.request.let_go()
            self.request = self._finish = self.keep = None
            self._ended = True
            future = self._future
        if future is not None:
            self._settle(future)

    def _settle(self, future):
        if self._error is None:
            future.set_result(_tensors(self._result))
        else:
            future.set_exception(self._error)

    def wait(self, timeout=None):
        request = self.request
        if request is not None:
            limit = milliseconds(timeout) if timeout else -1
            failed = None
            try:
                request.wait(limit if limit > 0 else -1)
            except _muster.Error as error:
                failed = error
            if failed and not self.is_completed():
                raise failed  # this wait's own timeout; the call goes on
            self.end()
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self):
        self.wait()

    block_current_stream = synchronize

    def is_completed(self):
        """True only when the result is in the tensors."""
        request = self.request
        if request is None:
            return True
        try:
            ended = request.test()
        except _muster.Error:
            ended = True
        if ended:
            self.end()
        return ended

    def is_success(self):
        return self.is_completed() and self._error is None

    def exception(self):
        self.is_completed()
        return self._error

    def result(self):
        self.wait()
        return _tensors(self._result)

    def source_rank(self):
        self.wait()
        return self._source

    _source_rank = source_rank

    def get_future(self):
        with self._lock:
            if self._future is not None:
                return self._future
            future = self._future = Future()
            request = self.request
        if request is None:
            self._settle(future)
            return future
        at_end_of_backward(self.wait)  # before DDP's own callback, which waits in C++ and does not react to Ctrl-C
        self.see_to()
        return future

    def as_work(self):
        return _create_work_from_future(self.get_future()) if WORKS_ARE_PYTHON else self


class _Completion:
    """The thread that completes futures. It sleeps, without the GIL, until a request ends.

    There is one, so that callbacks run in the order of the calls, until a callback makes a call itself and may wait for
    its future, as PowerSGD's do: then another thread takes the requests that end meanwhile.
    """

    def __init__(self):
        self._threads = []
        self._idle = 0
        self._lock = threading.Lock()

    def ensure(self):
        """Ensures that a thread completes the call for which this thread is about to wait."""
        if self._idle:
            return
        with self._lock:
            if self._threads and threading.current_thread() not in self._threads:
                return
            thread = threading.Thread(target=self._run, name='muster completion', daemon=True)
            self._threads.append(thread)
            self._idle += 1
        thread.start()

    def _run(self):
        while True:
            request = _muster.take_ended()
            if request is None:
                return
            self._count_idle(-1)
            operation = request.owner
            if operation is not None:
                operation.end()
            del request, operation
            self._count_idle(1)

    def _count_idle(self, change):
        with self._lock:
            self._idle += change

    def stop(self):
        """Called before the interpreter ends: a thread that wakes up after that would hang."""
        if self._threads:
            _muster.stop_taking()
            for thread in self._threads:
                if thread.is_alive():  # a thread whose start Ctrl-C interrupted cannot be joined
                    thread.join(1)
            self._threads = []

    def after_fork(self):
        self.__init__()
        _muster.after_fork()


_completion = _Completion()
start_completion, stop_completion = _completion.ensure, _completion.stop
os.register_at_fork(after_in_child=_completion.after_fork)
