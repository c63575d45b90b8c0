"""A job's worker: the user's loop as a sequence of passes, and its optimizer's step as a transaction.

One call of the user's step function is a pass over one micro-batch. When its backward ends, the pass's gradient is taken and summed with the
others'; the last pass of a step finds the mean over all records of the step in .grad, and its optimizer.step() updates the model. Earlier
passes find zeros, and their optimizer.step() has no effect.
"""
import atexit
import faulthandler
import functools
import os
import signal
import sys
import threading
import weakref

import torch

from muster import _muster
from muster.elastic import keyed, refusals, wrapping
from muster.elastic.arguments import I64_MAX, whole
from muster.elastic.buffers import Buffers
from muster.elastic.ending import EXPELLED, FAILED, LEFT_BY_SIGTERM, Expelled, Failed, Left, came_late, has_failed, left_early, note_done, say_no_gradient, \
    say_unused, tell_error, tell_exit, tell_of_errors
from muster.elastic.finite import Losses
from muster.elastic.gradient import BackwardWatch, Gradient
from muster.elastic.loader import Loader
from muster.elastic.passes import Pass, Plan, check_micro_batches, rest_of_share
from muster.elastic.slots import params_of
from muster.elastic.state import State
from muster.elastic.transaction import Transaction


class Job:
    """An elastic job's worker. Create it after the model and the optimizer; then use job.loader(…) and job.epochs().

    optimizer: any of torch.optim, or a list of optimizers that all step in each pass; transaction() is for several updates in one pass.
    scheduler: one or a list: their step() counts committed steps; pass others (a GradScaler, an exponential moving average) to register().
    deterministic: True or a seed: the result has the same bits for any number of workers and any faults (None: MUSTER_DETERMINISTIC).
    reduction: 'mean' over the step's records, or 'sum' where the loss is a sum. backwards: how often a pass calls backward.
    micro_batches: the number in a step, of all workers together (None: MUSTER_MICRO_BATCHES, or the number that the first worker gave, or 1).
    micro_batches_per_worker: use this in place of micro_batches if a step has this number for each worker, and the global batch follows the
    number of workers (weak scaling): global_batch and micro_batches return its size. It cannot be used with deterministic. (If neither is
    given: MUSTER_MICRO_BATCHES_PER_WORKER.)
    set_aside: a record that has crashed three workers, one after the other, is left out and listed by the coordinator, and the job does not
    fail (None: MUSTER_SET_ASIDE, or False); not with transaction().
    digest_steps: the number of steps after which the workers compare digests of their states (0: MUSTER_DIGEST_STEPS, or never).
    checkpoint: a folder that all workers can read and write: if all of them die, training goes on from the checkpoint in it (None:
    MUSTER_CHECKPOINT).
    The other options are those of struct muster_elastic_options in muster/elastic.h. Only one thread uses a job.
    """

    def __init__(self, model, optimizer, scheduler=None, *, deterministic=None, threads=1, reduction='mean', backwards=1,
                 micro_batches=None, micro_batches_per_worker=None, coordinator=None, token=None, host=None, name=None, connect_ms=60_000, peer_ms=0,
                 set_aside=None, digest_steps=0, checkpoint=None, checkpoint_steps=0, checkpoint_seconds=0, checkpoint_keep=0):
        self.model = refusals.replace_ddp(model)
        refusals.check_model(self.model)
        self.optimizers = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]
        for one in self.optimizers:
            refusals.check_optimizer(one)
        if reduction not in ('mean', 'sum'):
            raise ValueError(f"reduction is 'mean' or 'sum', not {reduction!r}")
        self.sum, self.backwards = reduction == 'sum', backwards
        self.seed = keyed.seed_of(deterministic)
        counts = dict(micro_batches=micro_batches or 0, micro_batches_per_worker=micro_batches_per_worker or 0, checkpoint_steps=checkpoint_steps,
                      checkpoint_seconds=checkpoint_seconds, checkpoint_keep=checkpoint_keep, digest_steps=digest_steps)
        times = dict(connect_ms=connect_ms, peer_ms=peer_ms)
        numbers = {**{name: whole(name, value) for name, value in counts.items()}, **{name: whole(name, value, I64_MAX) for name, value in times.items()}}
        check_micro_batches(micro_batches, micro_batches_per_worker, self.seed)
        if self.seed is not None:
            keyed.pin(threads)
        self.options = dict(coordinator=coordinator, token=token, host=host, name=name, checkpoint=checkpoint and os.fspath(checkpoint),
                            **numbers, set_aside=int(bool(set_aside)),
                            digest_skip=1,  # the text, which has the stamp of the worker that wrote it
                            environment=0 if self.seed is None else keyed.environment_digest())
        self.plan, self.native, self.others, self.pass_ = None, None, {}, None
        self.pending = None  # the next pass; its batch was not handed out yet
        self.share = []  # this worker's passes; it has others than the current one only with a step function
        self.transaction_, self.took = None, False
        self.finished = self.terminated = self.warned = False
        self.on_sigterm = None  # the handler, if this job has set one
        self.losses = Losses(self.model)
        self.param_counts = {}  # of each optimizer, when training began
        self.exited = None  # the SystemExit raised by the data set's code, which ends this process
        self.joined_at = None  # {'epoch', 'version'} of the first pass after others' state was taken, until it has been read
        self.before_publish = None  # called before the state is published to the others
        self.info = {}
        for one in self.optimizers:
            wrapping.wrap_optimizer(self, one)
        for i, one in enumerate(scheduler if isinstance(scheduler, (list, tuple)) else [scheduler] if scheduler else []):
            self.register(f'scheduler {i}', one)

    # ---- before training

    def register(self, name, other):
        """Registers other state that changes with the steps: a module, or anything with state_dict and load_state_dict.
        Its step, update and update_parameters take effect once per committed step."""
        if self.native is not None:
            raise RuntimeError('register() comes before the first batch: the others count on the state that they were told of')
        if not isinstance(other, torch.nn.Module) and not (hasattr(other, 'state_dict') and hasattr(other, 'load_state_dict')):
            raise TypeError(f'{name}: {type(other).__name__} has neither tensors nor state_dict and load_state_dict')
        if name in self.others:
            raise ValueError(f'{name!r} is registered already')
        self.others[name] = other
        advancing = ('step', 'update', 'update_parameters')
        if hasattr(other, 'unscale_'):
            advancing = ('update',)  # a GradScaler's step calls the optimizer's step
        wrapping.once_per_step(self, other, [name for name in advancing if callable(getattr(type(other), name, None))])
        return other

    def loader(self, dataset, batch_size, epochs=1, shuffle=True, seed=0, name='', **options):
        """Returns an object like a DataLoader over dataset: an iteration of it is an epoch, a batch of it has the
        records of one pass.

        shuffle: True, False, or a number n: blocks of n records are shuffled, and the records in each block. The seed
        determines the order. options: those of torch.utils.data.DataLoader except sampler, batch_sampler and drop_last.
        """
        loader = Loader(self, dataset, batch_size, **options)
        self.plan_for(Plan(len(dataset), batch_size, epochs, shuffle, seed, name))
        return loader

    def plan_for(self, plan):
        if self.plan is not None:
            raise NotImplementedError('a job trains one data set: for validation take a DataLoader of torch, or muster.elastic.Shards')
        self.plan = plan

    # ---- the loop

    def epochs(self):
        """Yields the numbers of the epochs, from the job's current epoch, until all are committed."""
        while self.peek() is not None:
            yield self.pending.epoch

    def open(self):
        if self.native is not None:
            return
        if self.plan is None:
            raise RuntimeError('nothing to train yet: job.loader(dataset, batch_size) comes first')
        known = {}
        for param in [p for one in self.optimizers for p in params_of(one)] + list(self.model.parameters()):
            known[param] = None
        refusals.check_closures(self.optimizers, self.transaction_)
        if self.before_publish is None:  # ElasticDL's scripts set their scheduler from the epoch's number
            refusals.say_unknown_schedulers(self)
        self.param_counts = {optimizer: refusals.count_params(optimizer) for optimizer in self.optimizers}
        self.gradient, self.buffers = Gradient(list(known)), Buffers(self.model)
        self.state = State(self.model, self.optimizers, self.others, [buffer for _, buffer in self.buffers.sent],
                           with_random=self.seed is None and bool(self._checkpoints()))
        plan = self.plan
        try:
            self.native = _muster.Elastic(
                plan.records, plan.batch, plan.epochs, dataset=plan.name, seed=plan.seed, shuffle=plan.shuffle,
                extra_bytes=self.buffers.extra_bytes, whole_passes=self.transaction_ is not None, **self.options)
        except _muster.Error as error:
            if error.name in ('EGONE', 'EFAILED'):
                raise (came_late(self.options['coordinator']) if error.name == 'EGONE' else has_failed(error)) from None
            raise
        self.watch = BackwardWatch(self._backward_ended)
        self.watch.start()
        self.hooks = self.gradient.watch() + refusals.watch_optimizers(self)
        if not faulthandler.is_enabled():
            faulthandler.enable()  # a crash, and a hang that is ended, print where the code was
        atexit.register(_close, weakref.ref(self))
        tell_of_errors(weakref.ref(self))
        self._hear_sigterm()

    def _hear_sigterm(self):
        if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            return
        mine, own = weakref.ref(self), os.getpid()

        def leave(number, frame):
            if os.getpid() != own:  # a process that the script has forked, for example one of a multiprocessing.Pool
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGTERM)
                return
            job = mine()
            if job is None or job.native is None or job.finished or job.terminated:
                raise Left(LEFT_BY_SIGTERM)
            job.terminated = True
            job.native.leave()
        signal.signal(signal.SIGTERM, leave)
        self.on_sigterm = leave

    def transaction(self, function):
        """Returns the function, which must be the whole pass, as one that may step optimizers several times, with separate gradients, and
        evaluate closures (LBFGS): its changes are undone when its step must run again."""
        if self.native is not None:
            raise RuntimeError('transaction() comes before the first batch')
        if self.transaction_ is None:
            self.transaction_ = Transaction(self)

        @functools.wraps(function)
        def run(*args, **kwargs):
            return self.transaction_.call(function, args, kwargs)
        return run

    def leave(self):
        """Hands this worker's work to the others at the end of the step; the loop then ends with Left, a SystemExit."""
        self.open()
        self.native.leave()

    def fail(self, error):
        """Ends the job for all workers because of the exception. An exception that the program does not catch does this by itself."""
        tell_error(self, error)

    def close(self):
        """Leaves the job, if it is not done. At the end of the process this happens by itself."""
        if self.native is None:
            return
        if self.exited is not None and not self.finished:
            tell_exit(self.native, self.exited)
        self.native.close()
        self.watch.stop()
        for hook in self.hooks:
            hook.remove()
        self.buffers.close()
        if self.transaction_ is not None and self.transaction_.undo is not None:
            self.transaction_.undo.tell(at_end=True)
        self.pass_ = None
        self.finished = True

    def at_epoch_end(self):
        """Whether the committed steps are whole epochs: then the user's code after the loop runs before the next pass."""
        return self.pass_ is not None and self.pending is None and self.pass_.committed \
            and self.info['records_done'] % self.plan.records == 0

    def peek(self):
        """Returns the next pass, as pending, or None when the job is done. It becomes the current pass only when begin() is called."""
        if self.pending is None and not self.finished:
            self.open()
            self._end_pass()
            self.pending = self._next_of_share()
            if self.pending is not None:
                return self.pending if self.transaction_.is_current(self.pending) else self.transaction_.look_again()
            if self.before_publish is not None:
                self.before_publish()
            self.state.publish(self.native)
            if self.fetch() is None:
                return None
        return self.pending

    def fetch(self):
        """Asks the library what this worker computes next: sets pending and share."""
        found = self.ask(self.native.next)
        if found is None:
            self._done()
            return None
        if self.pass_ is None and found['version'] == 1 and found['rank'] == 0 and self._checkpoints():
            refusals.say_other_checkpoints(self._checkpoints())
        self.share = [Pass(found)]
        if self.transaction_ is not None:
            self.share += rest_of_share(self.native, self.plan, found)
        self.took = self.state.take()
        if self.took and self.state.random is not None and self.native.query()['restored'] == found['version'] - 1:
            keyed.restore_shown(self.state.random)
        if self.took:
            self.joined_at = {'epoch': found['epoch'], 'version': found['version']}
        self.pending = self._next_of_share() or self.share[0]
        return self.pending

    def _checkpoints(self):
        """Returns the folder of checkpoints, or a false value."""
        return self.options['checkpoint'] or os.environ.get('MUSTER_CHECKPOINT')

    def _next_of_share(self):
        """Returns the next pass of this step whose batch has not been handed out."""
        calls = self.transaction_.calls if self.transaction_ is not None and self.transaction_.version else {}
        of_step = [one for one in self.share if one.version == self.transaction_.version] if calls else []
        return next((one for one in of_step if one.micro_batch not in calls), None)

    def _end_pass(self):
        pass_ = self.pass_
        if pass_ is None:
            return
        if not pass_.given:
            raise RuntimeError(f'micro-batch {pass_.micro_batch} of step {pass_.version} was skipped: backward() has not reached the model\'s parameters '
                               'since its batch was handed out, and its records would be lost. To look at a batch, take one from the data set itself')
        if self.transaction_ is None and pass_.is_unused():
            self._warn_once_of_no_step(pass_)
        self.buffers.stop()
        if self.seed is not None:
            keyed.seed_all(keyed.key(self.seed, 'after', pass_.version))
        elif not pass_.records:
            keyed.restore_random_state(self.random_state)

    def _warn_once_of_no_step(self, pass_):
        if not self.warned and not any(hasattr(other, 'unscale_') for other in self.others.values()):  # a GradScaler may skip a step
            self.warned = True
            say_unused(pass_.version)

    def _done(self):
        info = self.info = self.native.query()
        self.finished = True
        self.close()
        if info['left']:
            raise Left(LEFT_BY_SIGTERM if self.terminated else 0)
        if info['records_done'] < info['records_all']:
            raise came_late(self.options['coordinator'])
        note_done(self.options['coordinator'])

    def begin(self):
        """Begins the pending pass: its batch is handed out."""
        pass_ = self.pass_ = self.pending
        self.pending = None
        self.gradient.clear()
        self.buffers.begin()
        if self.seed is not None:
            keyed.seed_all(keyed.key(self.seed, pass_.epoch, pass_.version, pass_.micro_batch))
        elif not pass_.records:
            self.random_state = keyed.random_state()
        return pass_

    def doubles(self, pass_):
        """Whether the batch has its record twice, because BatchNorm cannot train on a batch of one. The gradient of the mean is the same."""
        return pass_.is_part and len(pass_.records) == 1 and bool(self.buffers.statistics) and not self.sum

    def skip(self):
        """Ends the current pass without a gradient, if nobody used its batch. The caller must be sure of that."""
        self._bring(False)

    @property
    def micro_batches(self):
        """The micro-batches of the current step, of all workers together; the last step of an epoch has fewer. The number is the same on all
        workers, and whenever the step is tried again. Returns None before the first step and after the last one."""
        pass_ = self.pass_ or self.pending
        return None if pass_ is None else pass_.micro_batches

    @property
    def global_batch(self):
        """The number of records in the current step, without those that are set aside: the gradient is a mean over these."""
        pass_ = self.pass_ or self.pending
        return None if pass_ is None else pass_.step_records

    @property
    def incomplete(self):
        """Whether the current pass has not completed its step: then the model must not change."""
        if self.transaction_ is not None and self.transaction_.running:
            return self.transaction_.dry
        return self.pass_ is not None and not self.pass_.committed

    # ---- the transaction

    def ask(self, call, *args):
        try:
            return call(*args)
        except _muster.Error as error:
            if error.name not in ('EGONE', 'EFAILED'):
                raise
            ending = Failed(FAILED) if error.name == 'EFAILED' else Expelled(EXPELLED)
            why = str(error)
        self.close()
        print(f'muster.elastic: {why}', flush=True)
        raise ending

    def _note_info(self):
        before, self.info = self.info, self.native.query()
        if self.info['diverged'] > before.get('diverged', 0):
            print(f"muster.elastic: after step {self.info['diverged_version']} the state of rank {self.info['diverged_rank']} was not that of the "
                  'others: a bit of it had changed by itself, and it has the state from them now', flush=True)

    def _backward_ended(self, roots):
        pass_ = self.pass_
        if pass_ is None or not self.gradient.touched or self.finished:
            return
        self.gradient.touched = False
        pass_.backwards += 1
        if self.transaction_ is not None:
            self.transaction_.backward_ended(roots)
            return
        self.losses.note(pass_, roots)
        if pass_.given:
            raise NotImplementedError(
                f'backward() has reached the parameters {pass_.backwards} times in a pass: add the losses up and call it once, or '
                f'say Job(…, backwards={pass_.backwards}); several optimizer steps with gradients of their own are for a function '
                'that job.transaction() has wrapped')
        if pass_.backwards == self.backwards:
            self._bring(True)

    def _bring(self, found):
        """Hands in the pass's gradient; if that completes the step, the mean is written to the parameters. Blocks during recovery."""
        pass_, gradient = self.pass_, self.gradient
        extra = self.buffers.end(len(pass_.records) if found else 0)
        mine = None
        if pass_.records:
            if found:
                gradient.gather()
            else:
                gradient.flat.zero_()
            if self.sum:
                gradient.scale(1 / pass_.share)
            mine = gradient.buffer
        pass_.committed = self.ask(self.native.step, mine, gradient.count, gradient.type, gradient.buffer,
                                    extra if mine is not None else None)
        pass_.given = True
        self._note_info()
        if not pass_.committed:
            gradient.zero()
            return
        gradient.put_back()
        if found and not self.warned and gradient.is_absent():
            self.warned = True
            say_no_gradient(pass_.version)
        self.buffers.apply(self.native.extras())
        if self.seed is not None:
            keyed.seed_all(keyed.key(self.seed, 'commit', pass_.version))

    def optimizer_step(self, optimizer, inner, closure, args, kwargs):
        pass_, loss = self.pass_, None
        if pass_ is None or self.finished:
            return inner(closure, *args, **kwargs) if closure is not None else inner(*args, **kwargs)
        refusals.check_params(optimizer, self.param_counts.get(optimizer))
        if self.transaction_ is not None:
            return self.transaction_.step(optimizer, inner, closure, args, kwargs)
        if optimizer in pass_.stepped:
            raise NotImplementedError('step() of an optimizer came twice in a pass: a pass is one update, but in a function that '
                                      'job.transaction() has wrapped')
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if not pass_.given:  # for a caller that computes gradients without backward()
            self._bring(True)
        if not pass_.committed:
            return loss
        pass_.stepped.add(optimizer)
        self.losses.check(pass_, optimizer, kwargs)
        result = inner(*args, **kwargs)
        return result if loss is None else loss


def _close(reference):
    job = reference()
    if job is None:
        return
    if job.native is not None and not job.finished and job.exited is None:
        if job.terminated or hasattr(sys, 'last_value'):
            job.native.leave()  # the process was ended, and did not leave its loop: another one may replace it
        else:
            left_early(job.native.query())
    job.close()
    if job.on_sigterm and signal.getsignal(signal.SIGTERM) is job.on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the process ends, with its own exit code
