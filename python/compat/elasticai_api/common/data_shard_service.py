"""ElasticDL's services that hand out records. Records to train come from the plan of a muster.elastic job; records to evaluate, to predict, or
to train without a controller come by leases (muster.elastic.Shards).

A record belongs to the fetch that draws it: a DataLoader over a Dataset that asks fetch_record_index() for its records is given batches of
exactly the records of one pass, also in the loader's workers. One shard is the records of one pass.
"""
import collections
import json
import os
import sys

from elasticai_api.common.constants import TaskType
from elasticai_api.common.leased import Leased
from elasticai_api.common.master_client import MasterClient, build_master_client

Shard = collections.namedtuple('Shard', 'name start end indices')
Task = collections.namedtuple('Task', 'task_id shard type')
_NO_RECORD = object()


class _Assigned:
    """The record that this process must read now, kept between a loader's fetch and the Dataset's request for the record."""
    record = _NO_RECORD
    taken = 0


class Reader:
    """An item of a Dataset that asks a service for its record."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __call__(self, record):
        _Assigned.record, _Assigned.taken = record, 0
        try:
            item = self.dataset[record]
        finally:
            _Assigned.record = _NO_RECORD
        if _Assigned.taken != 1:
            raise RuntimeError(f'an item of {type(self.dataset).__name__} asked {_Assigned.taken} times for its record: one item is '
                               'one record, by one call of fetch_record_index()')
        return item


def _micro_batches():
    for name in ('MUSTER_MICRO_BATCHES', 'WORKER_NUM'):
        if os.environ.get(name):
            return int(os.environ[name])
    return 0


class DataShardService:
    """Hands out the records that this worker trains. The argument master_client may be omitted; all other arguments are the same in every
    worker."""

    def __init__(self, master_client=None, batch_size=None, num_epochs=None, dataset_size=None, shuffle=False,
                 shuffle_shards=False, task_type=TaskType.TRAINING, num_minibatches_per_shard=0, dataset_name=None):
        if master_client is not None and not isinstance(master_client, MasterClient) and batch_size is None:
            raise TypeError('batch_size is not given, or by its place: name it, or give the master client first')
        if task_type not in (TaskType.TRAINING, TaskType.EVALUATION, TaskType.PREDICTION):
            raise ValueError(f'task_type={task_type}: records are served for TRAINING, EVALUATION and PREDICTION')
        if not batch_size or not num_epochs or not dataset_size:
            raise ValueError(f'batch_size={batch_size}, num_epochs={num_epochs}, dataset_size={dataset_size}: all three must be 1 '
                             'or more')
        self._batch_size, self._num_epochs, self._dataset_size = batch_size, num_epochs, dataset_size
        self._shuffle = int(bool(shuffle or shuffle_shards))
        self.dataset_name = dataset_name or ''
        self._job, self._make_job, self._drawn = None, None, collections.deque()
        self._task_type, self._num_minibatches, self._leased = task_type, num_minibatches_per_shard, None
        self._handed_out = 0  # the number of records in the last batch of a DataLoader
        if task_type != TaskType.TRAINING and os.environ.get('MUSTER_COORDINATOR'):
            self.leased()  # already now, because the job must not be done before these records are

    def __getstate__(self):
        """Returns the state for a loader's worker that is spawned: records are assigned to it, and it asks no other process."""
        return {**self.__dict__, '_job': None, '_make_job': None, '_drawn': collections.deque(), '_leased': None}

    # ---- calls of the controller

    def bind(self, make_job):
        """Keeps make_job(), which returns the job that trains these records and is called when model and optimizer are known."""
        self._make_job = make_job

    def job(self):
        if self._job is None:
            if self._make_job is None:
                raise RuntimeError('records come once a PyTorchAllReduceController(service) has the model and the optimizer: '
                                   'set_broadcast_model, set_broadcast_optimizer')
            from muster.elastic.passes import Plan
            self._job = self._make_job()
            self._job.plan_for(Plan(self._dataset_size, self._batch_size, self._num_epochs, self._shuffle,
                                    int(os.environ.get('MUSTER_SHUFFLE_SEED') or 0), self.dataset_name))
        return self._job

    def is_leased(self):
        """Whether workers get these records by leases, and do not train them in steps of all workers."""
        return self._make_job is None and (self._task_type != TaskType.TRAINING or not isinstance(self, RecordIndexService))

    def leased(self):
        if self._leased is None:
            self._leased = Leased(self._batch_size, self._num_epochs, self._dataset_size, self._shuffle, self._task_type,
                                  self._num_minibatches, self.dataset_name)
        return self._leased

    def close(self):
        """Leaves the data set of leased records: other workers get the records that were not reported. Without leases the controller leaves
        the job."""
        if self._leased is not None:
            self._leased.shards.close()

    # ---- ElasticDL's calls

    def get_minibatch_count_per_epoch(self):
        return -(-self._dataset_size // self._batch_size)

    def get_current_epoch(self):
        if self.is_leased():
            return self.leased().epoch()
        info = self._job.info if self._job is not None else {}
        return info.get('records_done', 0) // self._dataset_size

    def fetch_shard(self):
        """Returns the next records, or None when all epochs are done. With a controller these are the records of the next pass, and the pass
        before must have been trained; without a controller they are a shard of num_minibatches_per_shard batches (by default 2)."""
        if self.is_leased():
            shard = self.leased().fetch()
            return None if shard is None else Shard(self.dataset_name, min(shard.records), max(shard.records) + 1, shard.records)
        job = self.job()
        pass_ = job.peek()
        if pass_ is None:
            return None
        job.begin()
        records = pass_.records or list(range(min(self._batch_size, self._dataset_size)))
        return Shard(self.dataset_name, min(records), max(records) + 1, records)

    def get_task(self, task_type=None):
        shard = self.fetch_shard()
        if self.is_leased():
            return Task(0, None, TaskType.NONE) if shard is None else Task(self.leased().pending[-1][0], shard, self._task_type)
        return Task(0 if shard is None else self._job.pass_.version, shard, TaskType.NONE if shard is None else TaskType.TRAINING)

    def get_current_task(self):
        if self.is_leased():
            pending = self.leased().pending
            return Task(pending[0][0], None, self._task_type) if pending else None
        pass_ = self._job.pass_ if self._job is not None else None
        return None if pass_ is None else Task(pass_.version, pass_.records, TaskType.TRAINING)

    def report_batch_done(self, batch_size=None, err_msg=''):
        """Reports records as done. In a job that trains in steps, a record is done when its step is committed: returns True if it is. With
        leases, reports the oldest records that were drawn and not reported, at most batch_size, and returns True if a shard was reported. A
        shard is reported with its last record; if one of its records failed (err_msg), another worker gets the shard."""
        if self.is_leased():
            drawn = self.leased().outstanding() - len(self._drawn)
            return self.leased().done(min(batch_size or self._handed_out or self._batch_size, drawn), bool(err_msg))
        pass_ = self._job.pass_ if self._job is not None else None
        return pass_ is not None and pass_.committed


    def get_shard_checkpoint(self):
        """Returns the records that no worker has done yet, as JSON: dataset_name, todo and doing (lists of [start, end]), current_epoch, …"""
        return self.leased().checkpoint() if self.is_leased() else self._position()

    def _position(self):
        """Returns the ranges for a job that trains in steps: positions in the epoch's order that are in no committed step; those of the
        current step count as "doing"."""
        job, size = self.job(), self._dataset_size
        epoch, first = divmod(job.info.get('records_done', 0), size)
        pass_, ended = job.pass_, epoch >= self._num_epochs
        under_way = 0 if ended or pass_ is None or pass_.committed else min(size - first, self._batch_size * pass_.micro_batches)
        todo = [] if ended else [[first + under_way, size]]
        return json.dumps({
            'dataset_name': self.dataset_name, 'todo': [pair for pair in todo if pair[0] < pair[1]],
            'doing': [[first, first + under_way]] if under_way else [], 'current_epoch': epoch, 'num_epochs': self._num_epochs,
            'records_per_task': self._batch_size, 'dataset_size': size, 'shuffle_shards': bool(self._shuffle), 'version': 'v1.0',
            'current_subepoch': 0})

    def restore_shard_from_checkpoint(self, shard_checkpoint):
        """Lets the data set begin at the checkpoint, if none of its records was handed out yet: all records in "todo" and "doing" must still be
        done. Returns whether the data set begins there."""
        return self.leased().restore(shard_checkpoint) if self.is_leased() else self._stands_at(shard_checkpoint)

    def _stands_at(self, shard_checkpoint):
        """Whether the job is at this checkpoint's position. Only the job's own checkpoint (MUSTER_CHECKPOINT) restores records and model
        together."""
        try:
            saved, now = json.loads(shard_checkpoint), json.loads(self._position())
            same = ('dataset_name', 'dataset_size', 'shuffle_shards', 'current_epoch')
            left = [min((pair[0] for pair in one['todo'] + one['doing']), default=None) for one in (saved, now)]
            return all(saved[key] == now[key] for key in same) and left[0] == left[1]
        except (ValueError, KeyError, TypeError, IndexError):
            return False


class RecordIndexService(DataShardService):
    """A DataShardService that hands out single records."""

    def __init__(self, master_client=None, batch_size=None, num_epochs=None, dataset_size=None, task_type=TaskType.TRAINING,
                 shuffle=False, num_minibatches_per_shard=0, dataset_name=None):
        super().__init__(master_client, batch_size, num_epochs, dataset_size, shuffle=shuffle, task_type=task_type,
                         num_minibatches_per_shard=num_minibatches_per_shard, dataset_name=dataset_name)
        from elasticai_api.pytorch import loading
        loading.install()

    def fetch_record_index(self):
        """Returns the record to read now. A loop without a DataLoader gets the records of the next pass, one after the other."""
        if _Assigned.record is not _NO_RECORD:
            _Assigned.taken += 1
            return _Assigned.record
        if not self._drawn:
            if 'torch' in sys.modules and sys.modules['torch'].utils.data.get_worker_info() is not None:
                raise RuntimeError('this DataLoader was not recognised as one over a RecordIndexService: keep the service in an '
                                   'attribute of the Dataset')
            try:
                shard = self.fetch_shard()
            except BlockingIOError:  # all remaining records are held, some of them by this worker, which must report what it has drawn
                shard = None
            if shard is None:
                raise StopIteration
            self._drawn.extend(shard.indices)
        return self._drawn.popleft()

    def record_index_gen(self):
        while True:
            try:
                yield self.fetch_record_index()
            except StopIteration:
                return


def build_data_shard_service(batch_size, num_epochs=None, dataset_size=None, shuffle=False, shuffle_shards=False,
                             task_type=TaskType.TRAINING, num_minibatches_per_shard=0, dataset_name=None):
    return DataShardService(build_master_client(), batch_size, num_epochs, dataset_size, shuffle, shuffle_shards, task_type,
                            num_minibatches_per_shard, dataset_name)
