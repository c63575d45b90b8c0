"""Records by leases, for a DataShardService that serves evaluation, prediction, or training without a controller."""
import collections
import json
import os

from elasticai_api.common.constants import TaskType

_TASKS = {TaskType.TRAINING: 'train', TaskType.EVALUATION: 'evaluate', TaskType.PREDICTION: 'predict'}


class Leased:
    """The shards that were fetched, and how many records of each are not reported. Only records that were drawn are counted."""

    def __init__(self, batch_size, num_epochs, dataset_size, shuffle, task_type, num_minibatches_per_shard, dataset_name):
        from muster.elastic.shards import Shards
        self.size = batch_size * (num_minibatches_per_shard or 2)
        self.epochs, self.dataset_size, self.shuffle, self.name = num_epochs, dataset_size, bool(shuffle), dataset_name
        self.shards = Shards(dataset_size, self.size, num_epochs, task=_TASKS[task_type], name=dataset_name, shuffle=shuffle,
                             seed=int(os.environ.get('MUSTER_SHUFFLE_SEED') or 0))
        self.taken = 0  # records that were reported, or failed, so far
        self.pending = collections.deque()  # [number, records not reported, records that failed]

    def fetch(self):
        shard = self.shards.fetch()
        if shard is not None:
            self.pending.append([shard.number, len(shard.records), 0])
        return shard

    def outstanding(self):
        return sum(left for _, left, _ in self.pending)

    def done(self, count, failed):
        """Reports the oldest `count` records as done or failed. Returns whether it completed at least one shard."""
        reported = False
        while count > 0 and self.pending:
            head = self.pending[0]
            taken = min(count, head[1])
            head[1] -= taken
            self.taken += taken
            head[2] += taken if failed else 0
            count -= taken
            if head[1] == 0:
                self.pending.popleft()
                (self.shards.fail if head[2] else self.shards.report)(head[0])
                reported = True
        return reported

    def epoch(self):
        return self.shards.native.query()['epoch']

    # ---- positions in the format of ElasticDL's shard checkpoints

    def checkpoint(self):
        epoch, to_do, held = self.shards.native.position()
        return json.dumps({
            'dataset_name': self.name, 'todo': self._tasks(to_do), 'doing': self._tasks(held), 'current_epoch': epoch,
            'num_epochs': self.epochs, 'records_per_task': self.size, 'dataset_size': self.dataset_size,
            'shuffle_shards': self.shuffle, 'version': 'v1.0', 'current_subepoch': 0})

    def _tasks(self, ranges):
        """Splits the ranges into one pair [start, end] for each shard."""
        pairs = []
        for first, end in ranges:
            while first < end:
                last = min(end, (first // self.size + 1) * self.size)
                pairs.append([first, last])
                first = last
        return pairs

    def restore(self, text):
        """Begins at a checkpoint: all records in "todo" and "doing" must still be done. Returns False if the checkpoint belongs to another data
        set, or if this data set has already begun."""
        try:
            saved = json.loads(text)
            same = [saved[key] for key in ('dataset_name', 'dataset_size', 'shuffle_shards')] == [self.name, self.dataset_size, self.shuffle]
            ranges = sorted((int(first), int(end)) for first, end in saved['todo'] + saved['doing'])
            epoch = int(saved['current_epoch'])
        except (ValueError, KeyError, TypeError):
            return False
        if not same or epoch < 0 or any(first < 0 or end <= first or end > self.dataset_size for first, end in ranges):
            return False
        if any(end > following for (_, end), (following, _) in zip(ranges, ranges[1:])):
            return False
        return self.shards.native.begin(epoch, ranges)
