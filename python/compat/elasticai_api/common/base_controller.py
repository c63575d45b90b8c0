"""What every framework's controller has."""
import contextlib
import functools


class AllReduceController:
    """Runs a step function as passes of a muster.elastic job. master_client may be left out."""

    def __init__(self, *args, master_client=None, data_shard_service=None):
        if len(args) > 2:
            raise TypeError(f'{type(self).__name__}([master_client, ]data_shard_service) takes two arguments at most')
        if args:
            data_shard_service = args[-1]
        if data_shard_service is None:
            raise TypeError(f'{type(self).__name__} needs a data_shard_service')
        self.data_shard_service = data_shard_service
        self.several_updates = False
        data_shard_service.bind(self._make_job)

    def elastic_run(self, func, several_updates=False):
        """The function as one pass. It runs once per call, also the first time; its errors are the caller's.
        several_updates: it steps optimizers several times, or evaluates closures (muster.elastic.Job.transaction)."""
        self.several_updates = self.several_updates or several_updates

        @functools.wraps(func)
        def run(*args, **kwargs):
            transaction = self.data_shard_service.job().transaction_
            result = func(*args, **kwargs) if transaction is None else transaction.call(func, args, kwargs)
            self._after_run(self.data_shard_service.job())
            return result
        return run

    @contextlib.contextmanager
    def scope(self):
        """Training is in here. However it ends, this worker is then no member of the job any more; an error ends the job for all."""
        job = self.data_shard_service.job()
        try:
            yield
        except Exception as error:
            job.fail(error)
            raise
        finally:
            job.close()

    def init_horovod_locally(self):
        """ElasticDL's; there is nothing to prepare."""

    def notify_train_loop_start(self):
        """ElasticDL's; the first batch joins the job."""

    def notify_train_loop_end(self):
        self.data_shard_service.job().close()
