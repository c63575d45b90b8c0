"""ElasticDL's controller for torch."""
import os

import torch

from elasticai_api.common.base_controller import AllReduceController
from elasticai_api.common.data_shard_service import RecordIndexService, _micro_batches
from elasticai_api.common.master_client import build_master_client
from muster.elastic.job import Job
from muster.elastic.slots import group_values, install_group_values


def create_elastic_controller(batch_size, num_epochs=None, dataset_size=None, shuffle=False, dataset_name=None):
    service = RecordIndexService(build_master_client(), batch_size=batch_size, num_epochs=num_epochs, dataset_size=dataset_size,
                                 shuffle=shuffle, dataset_name=dataset_name)
    return PyTorchAllReduceController(service)


class PyTorchAllReduceController(AllReduceController):
    """PyTorchAllReduceController([master_client, ]data_shard_service)."""

    def __init__(self, *args, **kwargs):
        self._model, self._optimizer, self._resumed = None, None, 0
        self._before_transition = None
        super().__init__(*args, **kwargs)

    def set_broadcast_model(self, model):
        self._model = model

    def set_broadcast_optimizer(self, optimizer):
        """Makes the optimizer's step() a step of the job: it applies the mean over the records of all workers, and all workers commit it or none
        does."""
        self._optimizer = optimizer

    def broadcast(self):
        """Exists for ElasticDL's scripts; a worker that joins gets the state of the others with its first batch."""

    def get_current_epoch(self):
        return max(self._resumed, self.data_shard_service.get_current_epoch())

    def set_resume_epoch(self, epoch):
        raise NotImplementedError('set_resume_epoch: a job begins with its first epoch; workers that come later go on where it is')

    @property
    def global_completed_batch_num(self):
        """The number of micro-batches of all workers that are committed."""
        service = self.data_shard_service
        info = service._job.info if service._job is not None else {}
        epochs, rest = divmod(info.get('records_done', 0), service._dataset_size)
        return epochs * service.get_minibatch_count_per_epoch() + -(-rest // service._batch_size)

    @property
    def batch_count_per_epoch(self):
        return self.data_shard_service.get_minibatch_count_per_epoch()

    def _make_job(self):
        if self._model is None or self._optimizer is None:
            raise RuntimeError('set_broadcast_model(model) and set_broadcast_optimizer(optimizer) come before the first batch')
        job = self._job_of_optimizer()
        job.before_publish = self._before_publish
        if self.several_updates or any(isinstance(one, torch.optim.LBFGS) for one in job.optimizers):
            job.transaction(lambda: None)
        return job

    def _job_of_optimizer(self):
        each = os.environ.get('MUSTER_MICRO_BATCHES_PER_WORKER')
        if getattr(self._optimizer, 'fixed_global_batch_size', not each):
            return Job(self._model, self._optimizer, micro_batches=_micro_batches())
        if os.environ.get('MUSTER_DETERMINISTIC'):
            raise ValueError('MUSTER_DETERMINISTIC gives the same weights for any number of workers, and this global batch follows that number: '
                             'DistributedOptimizer(…, fixed_global_batch_size=True) keeps it')
        return Job(self._model, self._optimizer, micro_batches_per_worker=int(each or 1))

    # ElasticDL's scripts compare get_current_epoch() with a counter of their own after each batch, and step their scheduler when it is behind.
    # A worker that joins in a later epoch finds its counter behind, but the learning rate that it got from the others is already right: a
    # change that the script makes to it after the first batch is undone.

    def _after_run(self, job):
        joined = job.joined_at
        job.joined_at = None
        if joined and joined['epoch'] > 0 and not job.incomplete and not job.at_epoch_end():
            self._before_transition = group_values(self._optimizer)
        elif joined and job.incomplete:
            job.joined_at = joined

    def _before_publish(self):
        if self._before_transition is not None:
            install_group_values(self._optimizer, self._before_transition)
            self._before_transition = None
