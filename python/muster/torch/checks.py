"""Three silent mistakes of data-parallel training, caught while it runs.

1. A group was made but the model never wrapped: separate models train. Warned of after a few optimizer steps without
   any collective; after more of them where there was one before the first step.
2. Parameters diverge. Every 50 steps a digest of the parameters whose gradients are averaged is compared. Buffers
   (BatchNorm's) and parameters that each rank has of its own (model parallelism) are not looked at: only those under
   DistributedDataParallel, or whose gradients the program itself all-reduced.
3. Every rank reads the same samples: digests of the batch before a step are equal on all ranks, several times.

Digests travel through the group's store, never through its collectives: nothing waits, no order changes, and ranks
that make different numbers of steps are no trouble. MUSTER_CHECKS=0 turns all off. What it costs is measured by
bench/training/run.
"""
import importlib
import os
import warnings
import weakref

import torch

from muster import _muster

EVERY_STEPS = 50
SILENT_STEPS = 5          # optimizer steps without a collective ever until mistake 1 is warned of; else EVERY_STEPS
SAMPLE_STEPS = (2, 3, 4)  # batches compared early; then every EVERY_STEPS
EQUAL_BATCHES = 3         # that many batches in common are no accident
DIGEST_BYTES = 1 << 18    # looked at per parameter check: a window that moves on from check to check
MAX_REDUCED = 4096        # tensors per step
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
    """The process's watch, told of a new group; None when there is nothing to watch."""
    if not enabled() or group._size < 2:
        return None
    _watch.add(group)
    return _watch


class Exchange:
    """Numbers of all ranks, published and compared without waiting."""

    def __init__(self, group, kind):
        self._group = weakref.ref(group)
        self._kind = kind
        self._open = []  # (label, own value): published, not yet compared (rank 0)

    def publish(self, label, value):
        group = self._group()
        value = value & _MASK or 1  # 0 is what a store says of a number nobody wrote
        group._store.add(f'muster/check/{self._kind}/{label}/{group._rank}', value)
        if group._rank == 0:
            self._open.append((label, value))

    def compare(self):
        """On rank 0: (label, [ranks whose value differs]) for each label that all ranks have published by now."""
        group = self._group()
        still_open = []
        for label, value in self._open[-4:]:
            values = [group._store.add(f'muster/check/{self._kind}/{label}/{peer}', 0)
                      for peer in range(1, group._size)]
            if 0 in values:
                still_open.append((label, value))
            else:
                yield label, [peer for peer, other in enumerate(values, 1) if other != value]
        self._open = still_open


class Course:
    """What is known of one optimizer's training."""

    def __init__(self, ordinal):
        self.ordinal = ordinal
        self.steps = 0
        self.moved = 0        # collectives before the first step
        self.parameters = []  # averaged over `group`
        self.exchange = None
        self.samples = None
        self.equal_steps = []


class Watch:
    """One per process: hooks on optimizer steps, on DDP's construction and on batches."""

    def __init__(self):
        self._groups = weakref.WeakSet()
        self._courses = weakref.WeakKeyDictionary()
        self._wrapped = weakref.WeakSet()  # DDP modules
        self._reduced = set()              # addresses of tensors all-reduced since the last step
        self._batch = None
        self._hooked = False
        self._warned = set()

    def add(self, group):
        self._groups.add(group)
        if not self._hooked:
            self._hooked = True
            _hook_optimizers()
            _hook_ddp(self._wrapped.add)
            _hook_batches(self.after_batch)

    def on_all_reduce(self, address):
        """Remembers whose gradients the program averages by hand."""
        if len(self._reduced) < MAX_REDUCED:
            self._reduced.add(address)

    def after_batch(self, batch):
        self._batch = batch

    def after_step(self, optimizer):
        """Called after every optimizer step; whatever goes wrong in here must not stop the training."""
        try:
            course = self._courses.get(optimizer)
            if course is None:
                course = self._courses[optimizer] = Course(len(self._courses))
            course.steps += 1
            self._look(course, optimizer)
        except Exception as error:
            self._warn('broken', f'muster: the checks of this training are off: {error}')
            self.after_step = _nothing
        self._batch = None
        self._reduced.clear()

    def _look(self, course, optimizer):
        step = course.steps
        if step in (1, SILENT_STEPS, EVERY_STEPS):
            self._check_silence(course, optimizer)
        if step <= 3 and not course.parameters:
            self._find_parameters(course, optimizer)
        if not course.parameters:
            return
        if step in SAMPLE_STEPS or step % EVERY_STEPS == 0:
            self._publish_batch(course, step)
        if step % EVERY_STEPS == 0:
            course.exchange.publish(f'{course.ordinal}/{step}', self._digest(course))
        if step == max(SAMPLE_STEPS) + 4 or step % EVERY_STEPS == 5:
            self._compare(course)

    def _check_silence(self, course, optimizer):
        groups = [group for group in self._groups if group._size > 1]
        moved = sum(group._moved for group in groups)
        if course.steps == 1:
            course.moved = moved
        silent = moved == course.moved if course.steps == EVERY_STEPS else moved == 0 and course.steps == SILENT_STEPS
        cpu = all(p.is_cpu for part in optimizer.param_groups for p in part['params'])
        if groups and cpu and silent:
            self._warn('silent', SILENT % (course.steps, max(group._size for group in groups)))

    def _find_parameters(self, course, optimizer):
        """The optimizer's parameters under DDP, else those whose gradients were all-reduced before this step."""
        ours = [p for part in optimizer.param_groups for p in part['params'] if p.is_cpu and p.requires_grad]
        ids = {id(p) for p in ours}
        for module in self._wrapped:
            group = _group_of(module, self._groups)
            averaged = [p for p in module.parameters() if id(p) in ids]
            if group is not None and averaged:
                self._begin(course, group, averaged)
                return
        averaged = [p for p in ours if p.grad is not None and p.grad.data_ptr() in self._reduced]
        world = next((g for g in self._groups if g._size == torch.distributed.get_world_size()), None)
        if averaged and world is not None:
            self._begin(course, world, averaged)

    @staticmethod
    def _begin(course, group, parameters):
        course.parameters = parameters
        shape = hash(tuple(p.numel() for p in parameters)) & 0xffffffff
        course.exchange = Exchange(group, f'parameters/{shape:x}')
        course.samples = Exchange(group, 'samples')

    def _digest(self, course):
        """Of a window of DIGEST_BYTES over the parameters laid end to end, which moves on with each check."""
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

    def _publish_batch(self, course, step):
        tensor = _first_tensor(self._batch)
        if tensor is not None and tensor.is_cpu and tensor.is_contiguous() and tensor.numel() > 1:
            length = min(tensor.numel() * tensor.element_size(), DIGEST_BYTES)
            course.samples.publish(f'{course.ordinal}/{step}', _muster.digest(tensor.data_ptr(), length, step))

    def _compare(self, course):
        for label, different in course.exchange.compare():
            if different:
                self._warn('diverged', DIVERGED % (int(label.split('/')[1]), ', '.join(map(str, different))))
        for label, different in course.samples.compare():
            course.equal_steps = [] if different else [*course.equal_steps, label.split('/')[1]]
        if len(course.equal_steps) >= EQUAL_BATCHES:
            size = course.samples._group()._size
            self._warn('samples', SAME_SAMPLES % (', '.join(course.equal_steps), size))

    def _warn(self, kind, text):
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(text, RuntimeWarning, stacklevel=4)


_watch = Watch()


def _nothing(optimizer):
    pass


def _group_of(module, groups):
    """Which of our groups a DDP module averages over: torch 1.13 has the group itself, 2.x one around it."""
    theirs = module.process_group
    for group in groups:
        if group is theirs:
            return group
    return next((g for g in groups if g._size == theirs.size() and g._rank == theirs.rank()), None)


def _first_tensor(batch, depth=3):
    if isinstance(batch, torch.Tensor):
        return batch
    if depth == 0:
        return None
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        return next(filter(lambda t: t is not None, (_first_tensor(item, depth - 1) for item in batch)), None)
    return None


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
