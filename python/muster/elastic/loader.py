"""Batches of the passes as the job's plan has them, fetched ahead by a DataLoader.

While no worker joins or leaves, the next batches are known: the DataLoader, with the user's workers, gets the records
of one micro-batch for each fetch. After a change, fetched batches that still belong to this worker are used, others are
dropped, and a batch that was not fetched (one of a lost worker) is read at once, before the others.
"""
import collections
import copy
import inspect
import sys

import torch
from torch.utils.data import DataLoader, IterableDataset, default_collate

from muster.elastic import children, keyed
from muster.elastic.ending import add_note, is_by_the_data
from muster.elastic.passes import listed

_REFUSED = ('sampler', 'batch_sampler', 'drop_last', 'shuffle', 'batch_size')


class Items:
    """The dataset for the DataLoader's workers: an index is a record, and the key of its random numbers or None."""

    def __init__(self, read, dataset, records):
        self.read, self.dataset, self.records = read, dataset, records

    def __getitem__(self, index):
        record, key = index
        if key is not None:
            keyed.seed_all(keyed.key(*key, record))
        try:
            return self.read(record)
        except (Exception, SystemExit) as error:
            self._name(error, record)
            raise

    def _name(self, error, record):
        """Adds to an error which record caused it."""
        note = f'record {record} of {self.records} cannot be read'
        now = len(self.dataset) if hasattr(self.dataset, '__len__') else self.records
        if now < self.records:
            note += f': the data set has {now} records now, and had {self.records} when training began'
        add_note(error, note)

    def __len__(self):
        return sys.maxsize


class Collate:
    """The user's collate function, except for empty fetches."""

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, items):
        return self.inner(items) if items else None


class Feed:
    """The DataLoader's batch sampler: yields the micro-batches that are needed next and that no worker process is reading."""

    def __init__(self, loader):
        self.loader = loader
        self.issued = collections.deque()  # tuples of records with their epoch, in the order in which batches come back

    def __iter__(self):
        while True:
            wanted = self.loader.next_wanted(self.issued)
            self.issued.append(wanted)
            epoch, records = wanted
            key = self.loader.key(epoch)
            yield [(record, key) for record in records]


_NOTHING = (0, ())


class Loader:
    """Iterates over one epoch, from the job's current position; if endless, over all epochs."""

    def __init__(self, job, dataset, batch_size, endless=False, read=None, num_workers=0, collate_fn=None,
                 worker_init_fn=None, prefetch_factor=None, **options):
        given = {name: options.pop(name) for name in _REFUSED if name in options}
        refused = [name for name, value in given.items() if value]
        if refused:
            raise ValueError(f'{refused[0]} is not this loader\'s: which records come in which batch is the job\'s plan, and each record counts '
                             'once in an epoch')
        for name in options.keys() - inspect.signature(DataLoader).parameters.keys():
            raise TypeError(f'{name} is no option of torch.utils.data.DataLoader')  # without processes DataLoader would not check
        if isinstance(dataset, DataLoader):
            raise TypeError('job.loader() takes a data set, and this is a DataLoader: give it the DataLoader\'s data set and options (batch_size=, '
                            'num_workers=, collate_fn=)')
        if isinstance(dataset, IterableDataset):
            raise NotImplementedError('an IterableDataset cannot be asked for a record by its number; make it a Dataset with '
                                      '__getitem__ and __len__')
        self.job, self.dataset, self.batch_size, self.endless = job, dataset, batch_size, endless
        self.collate = Collate(collate_fn or default_collate)
        self.items = Items(read or dataset.__getitem__, dataset, len(dataset) if read is None else job.plan.records)
        self.options = dict(options, num_workers=num_workers, worker_init_fn=worker_init_fn)
        if prefetch_factor is not None:
            self.options['prefetch_factor'] = prefetch_factor
        self.depth = num_workers * (prefetch_factor or 2)
        self.feed, self.fetched, self.current, self.missed = Feed(self), None, None, False
        self.last, self.form = None, None  # the last batch, as _make() takes it; what _batch_for_form() copies
        self.micro_batches, self.broken_off = 1, False
        self.children, self.alone = children.Watch(), 0  # passes whose records this process reads itself

    def __len__(self):
        """The number of batches in an epoch, of all workers together."""
        return -(-self.job.plan.records // self.batch_size)

    def __iter__(self):
        pass_ = self.job.pass_
        if self.broken_off and (pass_ is None or pass_.given):
            raise RuntimeError('a loop over this loader ended before its epoch did: each record counts once in an epoch, and what comes after it would '
                               'come at another step on each worker. To train less, ask for fewer epochs; to end this worker, end the loop over '
                               'job.epochs(), too')
        self.broken_off = not self.endless
        yield from self._rest_of_epoch()
        self.broken_off = False

    def _rest_of_epoch(self):
        job = self.job
        while not job.at_epoch_end() or self.endless or job.info['records_done'] >= job.info['records_all']:
            pass_ = job.peek()
            if pass_ is None:  # the last step of the job is committed, and the coordinator has recorded it
                return
            batch = self._batch_of(pass_)
            job.begin()
            yield batch

    # ---- one pass

    def _batch_of(self, pass_):
        if not pass_.records:
            return self._batch_for_form(pass_)
        wanted = self.current = (0 if self.job.seed is None else pass_.epoch, tuple(pass_.records))
        if self.job.doubles(pass_):
            self.current = None
            return self._make((wanted[0], 2 * wanted[1]))
        try:
            batch = self._take(wanted) if self.depth and not self.alone else None
        except children.Died as died:
            self._forget(died)
            batch = None
        self.current, self.alone = None, max(0, self.alone - 1)
        if batch is None:
            batch = self._make(wanted)
        self.last = wanted
        return batch

    def _batch_for_form(self, pass_):
        """Returns a batch for a worker that has no records in the step: that of its last records, or of the first records of the dataset. It is
        a new one each time, because the code in the loop may change a batch that it is given."""
        records = self.last or (pass_.epoch, tuple(range(min(self.batch_size, self.job.plan.records))))
        if self.form is None:
            self.form = self._make(records)
        try:
            return copy.deepcopy(self.form)
        except (TypeError, RuntimeError, copy.Error):  # something in the batch cannot be copied
            return self._make(records)

    def key(self, epoch):
        return None if self.job.seed is None else (self.job.seed, 'record', epoch)

    def _make(self, wanted):
        epoch, records = wanted
        key = self.key(epoch)
        try:
            items = [self.items[record, key] for record in records]
            return self._put_together(items, records)
        except SystemExit as error:
            if is_by_the_data(error):
                self.job.exited = error
            raise

    def _put_together(self, items, records):
        try:
            return self.collate(items)
        except (Exception, SystemExit) as error:
            add_note(error, f"the batch of {listed(records)} cannot be put together")
            raise

    # ---- batches that are fetched ahead

    def _forget(self, died):
        """Lets this process itself read the records that were fetched ahead, one pass after the other: if a record is the cause, this process
        crashes on it, too."""
        print(f'muster.elastic: {died}; what it read is read in the training process now', file=sys.stderr, flush=True)
        self.alone = len(self.feed.issued) + 1
        self.fetched = None
        self.feed.issued.clear()

    def _take(self, wanted):
        """Returns the fetched batch, or None if it was not requested. Batches before it that are no longer needed are dropped."""
        if self.fetched is None:
            self.children.begin()
            self.fetched = self._start()
        issued = self.feed.issued
        if wanted not in issued:
            if self.missed:  # the second time in a row: the fetched batches were meant for another generation
                self._drop_stale()
            self.missed = True
            return None
        self.missed = False
        while issued[0] != wanted:
            self._pop()
        return self._pop()

    def _start(self):
        """Starts the DataLoader and restores the state of the random generator: a DataLoader draws a number when it starts, which may be at
        any point of the training."""
        state = torch.get_rng_state()
        fetched = iter(DataLoader(self.items, batch_sampler=self.feed, collate_fn=self.collate, **children.ending_with_parent(self.options)))
        torch.set_rng_state(state)
        return fetched

    def _drop_stale(self):
        issued, self.current = self.feed.issued, None
        coming = set(self._coming())
        for _ in range(len(issued)):
            if issued[0] in coming:
                break
            self._pop()

    def _pop(self):
        """Returns the oldest fetched batch. The DataLoader meanwhile asks the feed for another one."""
        try:
            batch = self.children.fetch(self.fetched)
        except children.Died:
            raise
        except Exception as error:
            add_note(error, f"the loader's processes were reading {listed(self.feed.issued[0][1])}")
            raise
        self.feed.issued.popleft()
        return batch

    def _coming(self):
        """Returns the batches that this worker trains after the current pass, as long as no worker joins or leaves. The library counts from the
        first pass for which it has no gradient."""
        job, plan = self.job, self.job.plan
        pass_ = job.pending or job.pass_
        passed = pass_.micro_batch - job.share[0].micro_batch + 1 if pass_.records else 0
        passes = self.depth + 1 + passed
        lists = job.native.ahead(passes, passes * plan.batch)[passed:]
        return [(self._epoch_of(pass_, number), tuple(records)) for number, records in enumerate(lists, 1) if records]

    def _epoch_of(self, pass_, number):
        """Returns the epoch of the number-th pass from now. It matters only if random numbers are keyed; a batch of a wrong epoch is not
        used."""
        if self.job.seed is None:
            return 0
        self.micro_batches = max(self.micro_batches, pass_.micro_batches)  # the last step of an epoch has fewer
        steps = -(-self.job.plan.records // (self.batch_size * self.micro_batches))
        mine = max(1, -(-self.micro_batches // pass_.size))
        return (pass_.version - 1 + (number + mine - 1) // mine) // steps

    def next_wanted(self, issued):
        have = collections.Counter(issued)
        current = [self.current] if self.current is not None else []
        for wanted in current + self._coming():
            if have[wanted]:
                have[wanted] -= 1
            else:
                return wanted
        return _NOTHING
