"""Three silent mistakes of data-parallel training, caught while it runs.

1. A group was made, but the model was never wrapped: each rank trains a separate model. The check warns after a few
   optimizer steps without any collective, or after more steps if there was a collective before the first step.
2. Parameters diverge. Every 50 steps the ranks compare a digest of the parameters whose gradients are averaged. Buffers
   (BatchNorm's) and parameters that only one rank has (model parallelism) are not checked: only those under
   DistributedDataParallel, or whose gradients the program itself all-reduced.
3. Every rank reads the same samples: the digests of the batch before a step are equal on all ranks, several times.

Digests travel through the group's store, never through its collectives: no rank waits, the order of calls does not
change, and ranks may make different numbers of steps. MUSTER_CHECKS=0 turns off all three. bench/training/run measures
their cost.
"""
import importlib
import os
import warnings
import weakref
from collections.abc import Mapping

import torch
import torch.distributed.distributed_c10d as c10d

from muster import _muster

EVERY_STEPS = 50
SILENT_STEPS = 5          # optimizer steps without any collective before the warning of mistake 1; otherwise EVERY_STEPS
SAMPLE_STEPS = (2, 3, 4)  # the first steps whose batches are compared; then every EVERY_STEPS
EQUAL_BATCHES = 3         # this number of equal batches is not a coincidence
DIGEST_BYTES = 1 << 18    # each parameter check reads a window of this size, which moves on from check to check
MAX_REDUCED = 4096        # tensors that are recorded per step
MAX_TENSORS = 64          # a batch with more tensors is not checked
BATCH_PIECES = 8          # the number of places at which a large tensor is read
_MASK = (1 << 62) - 1     # stores add signed 64-bit numbers

SILENT = ('muster: during %d optimizer steps no collective was called: each of the %d ranks trains a model '
          'of its own. Wrap the model in torch.nn.parallel.DistributedDataParallel, or average the gradients. '
          '(MUSTER_CHECKS=0 turns this check off.)')
DIVERGED = ('muster: after %d optimizer steps the parameters of rank %s differ from those of rank 0, though their '
            'gradients are averaged. Start from equal parameters, and let every rank make the same updates. '
            '(MUSTER_CHECKS=0 turns this check off.)')
SAME_SAMPLES = ('muster: every rank trains on the same samples (equal batches before steps %s): %d ranks do the work of '
                'one. Give the DataLoader sampler=torch.utils.data.distributed.DistributedSampler(dataset). '
                '(MUSTER_CHECKS=0 turns this check off.)')


def enabled():
    return os.environ.get('MUSTER_CHECKS', '1').lower() not in ('0', 'off', 'no', 'false')


def attach(group):
    """Returns the object to which the group reports its calls, or None if nothing is checked."""
    if not enabled() or group._size < 2:
        return None
    _watch.add(group)
    return Reductions()


class Reductions:
    """Records whose gradients the program averages by hand: the tensors that a group has all-reduced since the last step."""

    def __init__(self):
        self.counts = {}  # the number of elements by address

    def on_all_reduce(self, address, count):
        if len(self.counts) < MAX_REDUCED:
            self.counts[address] = count

    def covers(self, gradient):
        count = gradient.numel() * (2 if gradient.is_complex() else 1)
        return self.counts.get(gradient.data_ptr()) == count


class Exchange:
    """Publishes numbers of all ranks and compares them, without waiting."""

    def __init__(self, group, kind):
        self._group = weakref.ref(group)
        self._rank, self.size = group._rank, group._size
        # Several groups may use a store in turn: each group publishes its numbers under its own name.
        self._prefix = f'{group._meeting}/check/{kind}'
        self._open = []  # (label, own value): published, not yet compared (rank 0)

    def over(self):
        """Whether the group, and so the exchange of numbers, has ended."""
        return _living(self._group) is None

    def publish(self, label, value):
        value = value & _MASK or 1  # 0 is what a store returns for a number that no rank has written
        if self._add(label, self._rank, value) and self._rank == 0:
            self._open.append((label, value))

    def compare(self):
        """On rank 0, yields (label, [ranks whose value differs]) for each label that all ranks have published by now."""
        still_open = []
        for label, value in self._open[-4:]:
            values = [self._add(label, peer, 0) for peer in range(1, self.size)]
            if 0 in values:
                still_open.append((label, value))
            else:
                yield label, [peer for peer, other in enumerate(values, 1) if other != value]
        self._open = still_open

    def _add(self, label, rank, value):
        group = _living(self._group)
        try:
            return group._store.add(f'{self._prefix}/{label}/{rank}', value) if group is not None else 0
        except RuntimeError:  # the store has ended with its rank: this rank trains on alone
            self._group = _nobody
            return 0


class Course:
    """The data that the checks have about one optimizer's training."""

    def __init__(self):
        self.steps = 0
        self.moved = None     # (number of groups, their collectives) before the first step
        self.parameters = []  # the parameters that are averaged over the group of the exchanges
        self.exchange = None
        self.samples = None   # None if ranks may share their samples
        self.equal_steps = []


class Watch:
    """One per process: hooks on optimizer steps, on DDP's construction and on batches."""

    def __init__(self):
        self._groups = []   # weak references, also those of DDP modules: in order of construction, which is the same on all ranks
        self._wrapped = []
        self._courses = weakref.WeakKeyDictionary()
        self._begun = weakref.WeakKeyDictionary()  # by group: the number of courses of each name
        self._made = 0                             # number of groups so far
        self._batch = None
        self._hooked = False
        self._warned = set()

    def add(self, group):
        self._groups = [ref for ref in self._groups if ref() is not None] + [weakref.ref(group)]
        self._made += 1
        if not self._hooked:
            self._hooked = True
            _hook_optimizers()
            _hook_ddp(self.after_wrapping)
            _hook_batches(self.after_batch)

    def after_wrapping(self, module):
        self._wrapped = [ref for ref in self._wrapped if ref() is not None] + [weakref.ref(module)]

    def after_batch(self, batch):
        self._batch = batch

    def after_step(self, optimizer):
        """Called after every optimizer step; an error in here must not stop the training."""
        try:
            groups = [group for group in map(_living, self._groups) if group is not None]
            course = self._courses.get(optimizer)
            if course is None:
                course = self._courses[optimizer] = Course()
            course.steps += 1
            self._look(course, optimizer, groups)
            for group in groups:
                group._checks.counts.clear()
        except Exception as error:
            self._warn('broken', f'muster: the checks of this training are off: {error}')
            self.after_step = _nothing
        self._batch = None

    def _look(self, course, optimizer, groups):
        step = course.steps
        if step in (1, SILENT_STEPS, EVERY_STEPS):
            self._check_silence(course, optimizer, groups)
        if step <= 3 and not course.parameters:
            self._find_parameters(course, optimizer, groups)
        if not course.parameters:
            return
        if course.exchange.over():
            course.parameters = []
            return
        if course.samples and (step in SAMPLE_STEPS or step % EVERY_STEPS == 0):
            value = digest_of_batch(self._batch, step)
            if value is not None:
                course.samples.publish(str(step), value)
        if step % EVERY_STEPS == 0:
            course.exchange.publish(str(step), self._digest(course))
        if step == max(SAMPLE_STEPS) + 4 or step % EVERY_STEPS == 5:
            self._compare(course)

    def _check_silence(self, course, optimizer, groups):
        moved = sum(group._moved for group in groups)
        if course.steps == 1:
            course.moved = self._made, moved
        since_first = course.steps == EVERY_STEPS and course.moved == (self._made, moved)
        cpu = all(p.is_cpu for part in optimizer.param_groups for p in part['params'])
        if groups and cpu and (since_first or moved == 0 and course.steps == SILENT_STEPS) and _all_groups_are_ours():
            self._warn('silent', SILENT % (course.steps, max(group._size for group in groups)))

    def _find_parameters(self, course, optimizer, groups):
        """Finds the optimizer's parameters under DDP, or else those whose gradients were all-reduced before this step."""
        ours = [p for part in optimizer.param_groups for p in part['params'] if p.is_cpu and p.requires_grad]
        modules = [module for module in (ref() for ref in self._wrapped) if module is not None]
        under_ddp = {id(p) for module in modules for p in module.parameters()}
        if any(id(p) in under_ddp for p in ours):
            group, places, averaged = _averaged_by_ddp(modules, {id(p) for p in ours}, groups)
            batches_differ = True
        else:
            group, places, averaged = _averaged_by_hand(ours, groups)
            # If each rank has its own part of the model, the ranks may share their samples.
            batches_differ = len(averaged) == sum(p.grad is not None for p in ours)
        if averaged:
            self._begin(course, group, places, averaged, batches_differ)

    def _begin(self, course, group, places, parameters, batches_differ):
        """Begins an exchange, which has the same name on all ranks only for the same parameters, and the same course of them."""
        name = f'{hash(places) & 0xffffffff:x}'
        begun = self._begun.setdefault(group, {})
        begun[name] = begun.get(name, 0) + 1
        course.parameters = parameters
        course.exchange = Exchange(group, f'parameters/{name}/{begun[name]}')
        course.samples = Exchange(group, f'samples/{name}/{begun[name]}') if batches_differ else None

    def _digest(self, course):
        """Returns the digest of a window of DIGEST_BYTES over the parameters, laid end to end; the window moves on with each check."""
        sizes = [p.numel() * p.element_size() for p in course.parameters]
        total = sum(sizes)
        start = (course.steps // EVERY_STEPS - 1) * DIGEST_BYTES % total if total > DIGEST_BYTES else 0
        left, at, value = DIGEST_BYTES, 0, course.steps
        for parameter, size in zip(course.parameters, sizes):
            begin = min(max(start - at, 0), size)
            length = min(size - begin, left)
            at += size
            if length > 0 and parameter.is_contiguous():
                value = _muster.digest(parameter.data_ptr() + begin, length, value)
                left -= length
        return value

    def _compare(self, course):
        for step, different in course.exchange.compare():
            if different:
                self._warn('diverged', DIVERGED % (int(step), ', '.join(map(str, different))))
        if course.samples is None:
            return
        for step, different in course.samples.compare():
            course.equal_steps = [] if different else [*course.equal_steps, step]
        if len(course.equal_steps) >= EQUAL_BATCHES:
            self._warn('samples', SAME_SAMPLES % (', '.join(course.equal_steps), course.samples.size))

    def _warn(self, kind, text):
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(text, RuntimeWarning, stacklevel=4)


_watch = Watch()


def _nothing(optimizer):
    pass


def _nobody():
    return None


def _living(reference):
    """Returns the group, or None if it has been destroyed."""
    group = reference()
    return group if group is not None and group._checks is not None else None


def _backends(group):
    """Returns the objects that move a torch group's data: in torch 1.13 the group itself, in 2.x one backend per device inside it."""
    if not hasattr(group, '_get_backend'):
        return [group]
    try:
        return [group._get_backend(device) for device in group._device_types]
    except RuntimeError:  # a device without a backend
        return [None]


def _all_groups_are_ours():
    """Whether all groups use muster. Collectives of other backends are not counted, so with them it is not known which group had no call."""
    world = getattr(c10d, '_world', None)
    groups = world.pg_map if world is not None else c10d._pg_map
    return all(hasattr(backend, '_moved') for group in groups for backend in _backends(group))


def _averaged_by_ddp(modules, ids, groups):
    """Returns (group, their places in the modules, the parameters) for the parameters with these ids, for the first
    group found.

    They are comparable only if all ranks average the same parameters: each inner optimizer of a ZeroRedundancyOptimizer
    has another part.
    """
    chosen, places, averaged = None, [], []
    for number, module in enumerate(module for module in modules if any(id(p) in ids for p in module.parameters())):
        group = next((b for b in _backends(module.process_group) if any(b is g for g in groups)), None)
        # A communication hook of the user may average anything at any time.
        if group is None or chosen not in (None, group) or module._get_ddp_logging_data().get('comm_hook'):
            continue
        chosen = group
        for index, (name, parameter) in enumerate(module.module.named_parameters()):
            if id(parameter) in ids and not {name, f'.{name}'} & set(module.parameters_to_ignore):
                places.append((number, index, parameter.numel()))
                averaged.append(parameter)
    return chosen, tuple(places), averaged


def _averaged_by_hand(ours, groups):
    """Returns the same for the parameters whose gradients a group has all-reduced: for the group with most of these parameters."""
    best = None, (), []
    for group in groups:
        found = [(i, p) for i, p in enumerate(ours) if p.grad is not None and group._checks.covers(p.grad)]
        if len(found) > len(best[2]):
            best = group, tuple((i, p.numel()) for i, p in found), [p for _, p in found]
    return best


def digest_of_batch(batch, seed):
    """Returns the digest of a bounded part of every tensor, or None if the batch has a part that cannot be read."""
    tensors = []
    if not _collect(batch, tensors) or sum(t.numel() for t in tensors) < 2:
        return None
    value, share = seed, DIGEST_BYTES // len(tensors)
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        length, pieces = (size, 1) if size <= share else (share // BATCH_PIECES, BATCH_PIECES)
        for piece in range(pieces):  # the last one ends at the end of the tensor
            at = (size - length) * piece // max(pieces - 1, 1)
            value = _muster.digest(tensor.data_ptr() + at, length, value)
    return value


def _collect(batch, tensors, depth=4):
    """Appends all tensors of a batch; returns False if the batch may have other data that distinguishes it."""
    if isinstance(batch, torch.Tensor):
        tensors.append(batch)
        return batch.is_cpu and batch.layout is torch.strided and batch.is_contiguous() and len(tensors) <= MAX_TENSORS
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if depth == 0 or not isinstance(batch, (list, tuple)):
        return batch is None
    return all(_collect(item, tensors, depth - 1) for item in batch)


def _hook_optimizers():
    module = importlib.import_module('torch.optim.optimizer')
    register = getattr(module, 'register_optimizer_step_post_hook', None)
    if register is not None:
        register(lambda optimizer, args, kwargs: _watch.after_step(optimizer))
        return
    original = torch.optim.Optimizer._optimizer_step_code  # torch 1.13 calls it at the end of every step

    def step_code(self):
        original(self)
        _watch.after_step(self)
    torch.optim.Optimizer._optimizer_step_code = step_code


def _hook_ddp(made):
    kind = torch.nn.parallel.DistributedDataParallel
    original = kind.__init__

    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        made(self)
    __init__.__wrapped__ = original
    kind.__init__ = __init__


def _hook_batches(after_batch):
    from torch.utils.data import dataloader
    kind = dataloader._BaseDataLoaderIter
    original = kind.__next__

    def __next__(self):
        batch = original(self)
        after_batch(batch)
        return batch
    __next__.__wrapped__ = original
    kind.__next__ = __next__
