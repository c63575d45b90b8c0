"""The base class of the frameworks' controllers."""
import contextlib
import functools


class AllReduceController:
    """Runs a step function as passes of a muster.elastic job. The argument master_client may be omitted."""

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
        """Returns the function as one pass. Each call runs it once, also the first one; the caller gets its errors.
        several_updates: the function steps optimizers several times, or evaluates closures
        (muster.elastic.Job.transaction)."""
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
        """The training runs inside this context. When it ends, for any reason, this worker leaves the job; an error ends the job for all
        workers."""
        job = self.data_shard_service.job()
        try:
            yield
        except Exception as error:
            job.fail(error)
            raise
        finally:
            job.close()

    def init_horovod_locally(self):
        """Exists for ElasticDL's scripts; there is nothing to prepare."""

    def notify_train_loop_start(self):
        """Exists for ElasticDL's scripts; the first batch joins the job."""

    def notify_train_loop_end(self):
        self.data_shard_service.job().close()
