"""Runs a step function that updates the model several times, or evaluates a closure, as one step that is committed or undone.

Each of its gradients depends on the update before, which needs the gradients of all micro-batches of the step. So the function's calls for
this worker's micro-batches run together after the last of their batches was handed out: up to the first backward, where all workers' gradients
are summed; then, with that mean, up to the second; and so on. A single micro-batch runs without a break; several begin again from the undo
copy for each sum, because a function cannot be left and entered in its middle. The calls for the earlier batches had to return something
before that: they have run without effect.
"""
import math

import torch

from muster import _muster
from muster.elastic import keyed
from muster.elastic.finite import is_finite
from muster.elastic.memory import buffer_of
from muster.elastic.undo import Undo


class _Met(BaseException):
    """Unwinds the function: this micro-batch has contributed its part of the sum."""


class _Again(BaseException):
    """Unwinds the function: workers joined or left, and the step begins again."""


class Transaction:
    """The transaction of one job; all passes of the job call the same function."""

    def __init__(self, job):
        self.job, self.undo = job, None
        self.version, self.calls = 0, {}  # the version is the step's; {micro-batch: (args, kwargs, random state)}
        self.running = self.dry = self.live = False
        self.sums, self.at, self.parts = [], 0, None

    # ---- one call

    def call(self, function, args, kwargs):
        job, pass_ = self.job, self.job.pass_
        if pass_ is None or job.finished or self.running:
            return function(*args, **kwargs)
        if pass_.given:
            raise RuntimeError('a batch was given to the step function twice: one call of it is one pass')
        self._begin(pass_)
        self.calls[pass_.micro_batch] = args, kwargs, keyed.random_state()
        while True:
            missing = [one for one in job.share if one.micro_batch not in self.calls]
            if missing or pass_.version != job.share[0].version:
                return self._run_dry(function, args, kwargs)
            try:
                return self._try(function)
            except _Again:
                self.undo.put_back()
                self._renew()

    def _begin(self, pass_):
        job = self.job
        if self.undo is None:
            self.undo = Undo(job.state.modules, job.optimizers, job.others.values())
            self.loss = torch.zeros(1, dtype=torch.float64)
        if self.version != pass_.version:
            self.version = pass_.version
            self.calls.clear()
            self.undo.keep()

    def _renew(self):
        """Begins the step again, with other workers."""
        job = self.job
        if job.fetch() is None:
            raise RuntimeError('the job has ended within a step')
        if job.took:  # the state is another worker's: what this worker has of the step is useless
            self._forget()
            self.undo.keep()

    def _forget(self):
        """Drops what this worker has of the step."""
        self.version = 0
        self.calls.clear()

    def is_current(self, one):
        """Whether the pass belongs to the current generation: sums of another generation are not used."""
        return self.job.native.query()['generation'] == one.generation

    def look_again(self):
        """Called when workers joined or left between two batches of the step: divides its other passes again, so that nothing is computed in
        vain."""
        pending = self.job.fetch()
        if self.job.took:
            self._forget()
        return pending

    def _run_dry(self, function, args, kwargs):
        """Runs the function only for its result: its step is not complete, and the model is not changed."""
        job = self.job
        self.undo.lend()
        self.running = self.dry = True
        try:
            job.buffers.begin()
            return function(*args, **kwargs)
        finally:
            self.running = self.dry = False
            job.buffers.end(0)
            self.undo.take_back()
            job.pass_.given = True
            job.gradient.clear()

    # ---- the step

    def _try(self, function):
        """Runs all of this worker's micro-batches, to the end of the function and of the step."""
        job, self.sums = self.job, []
        share = job.share
        self.live = len(share) == 1
        ended = False
        while not ended:
            results = [self._run(function, one, number) for number, one in enumerate(share)]
            ended = results[0] is not None
            if any((result is None) == ended for result in results):
                raise RuntimeError('the step function calls backward() a different number of times for different batches')
            if not ended:
                self._sum(self.parts, len(share), share[0].records)
        if not self.sums and self.at == 0:
            job.pass_.backwards = 0
            return results[-1][0]  # no gradient was handed in: the next request for a pass raises an error
        self._commit(b''.join(extra for _, extra in results))
        return results[-1][0]

    def _run(self, function, one, number):
        """Returns (the function's result, the pass's extra), or None if the function has stopped at the next sum."""
        job = self.job
        args, kwargs, random_state = self.calls[one.micro_batch]
        if number > 0 and not self.is_current(one):
            raise _Again
        if not self.live:
            self.undo.put_back()
            keyed.restore_random_state(random_state)
        self.at, self.one, self.number = 0, one, number
        job.gradient.clear()
        job.buffers.begin()
        self.running = True
        try:
            result = function(*args, **kwargs)
            return result, job.buffers.end(len(one.records))
        except _Met:
            return None
        finally:
            self.running = False

    def _commit(self, extras):
        job = self.job
        passes = len(job.share) if job.share[0].records else 0
        if not job.ask(job.native.commit, extras if passes else None, passes):
            raise _Again
        job.buffers.apply(job.native.extras())
        job.pass_.given = job.pass_.committed = True
        job.pending = None  # the pending pass belongs to this step, which has begun again: it is not needed any more
        job._note_info()
        self._forget()
        self.undo.tell()
        if job.seed is not None:
            keyed.seed_all(keyed.key(job.seed, 'commit', job.pass_.version))

    # ---- within the function

    def backward_ended(self, roots):
        if not self.running:
            raise RuntimeError('backward() has reached the parameters outside of the step function: all of a pass is in it')
        if self.dry:
            return
        gradient = self.job.gradient
        if self.at >= len(self.sums):
            self.job.losses.note(self.one, roots)
            gradient.gather()
            if self.job.sum and self.one.records:
                gradient.scale(1 / self.one.share)
        self._meet(gradient.flat)
        gradient.put_back()

    def step(self, optimizer, inner, closure, args, kwargs):
        """Runs an optimizer's step()."""
        if not self.running:
            raise RuntimeError('step() of an optimizer outside of the step function: all of a pass is in it')
        if self.dry:
            if closure is None:
                return None
            with torch.enable_grad():
                return closure()
        losses = self.job.losses
        if closure is None:
            losses.check(self.one, optimizer, kwargs)
            return inner(*args, **kwargs)
        loss = inner(lambda: self._evaluate(closure), *args, **kwargs)
        if not losses.told and not is_finite(loss):
            losses.tell(self.one)  # only the last loss: a line search may try values that are not finite, and go back
        return loss

    def _evaluate(self, closure):
        """Returns a closure's loss as the mean over all records; its gradient is a mean, too."""
        loss = closure()
        if self.at >= len(self.sums):
            self.loss.fill_(float(loss))
            if self.job.sum and self.one.records:
                self.loss.mul_(1 / self.one.share)
        self._meet(self.loss)
        mean = self.loss.item()
        if not math.isfinite(mean):
            self.job.losses.ruined = self.version
        return torch.full_like(loss.detach(), mean) if isinstance(loss, torch.Tensor) else mean

    def _meet(self, flat):
        """Sums the gradients of the step's micro-batches: flat becomes the mean."""
        if self.at < len(self.sums):  # the function runs again, and this sum is known
            flat.copy_(self.sums[self.at])
            self.at += 1
            return
        if not self.live:
            if self.number == 0:
                self.parts = torch.empty(len(self.job.share), flat.numel(), dtype=flat.dtype)
                self.flat = flat
            elif self.flat is not flat:
                raise RuntimeError('the step function does not do the same for different batches')
            self.parts[self.number].copy_(flat)
            raise _Met
        self.flat = flat
        self._sum(flat, 1, self.one.records)

    def _sum(self, parts, count, records):
        job, flat = self.job, self.flat
        kind = _muster.F64 if flat.dtype == torch.float64 else _muster.F32
        mine = buffer_of(parts) if records else None
        if not job.ask(job.native.sum, mine, count if records else 0, flat.numel(), kind, buffer_of(flat)):
            raise _Again
        self.at += 1
        if not self.live:
            self.sums.append(flat.clone())
