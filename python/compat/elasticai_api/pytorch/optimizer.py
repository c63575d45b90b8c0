"""ElasticDL's DistributedOptimizer."""
import contextlib
import types


def _nothing(self, *_):
    """Exists for ElasticDL's scripts; gradients are averaged at the end of backward()."""


@contextlib.contextmanager
def _skip_synchronize(self):
    yield


def DistributedOptimizer(optimizer, named_parameters=None, compression=None, backward_passes_per_step=1, op=None,
                         gradient_predivide_factor=1.0, global_batch_num_per_step=None, fixed_global_batch_size=False):
    """Returns the optimizer itself, with the methods of ElasticDL's optimizer. set_broadcast_optimizer() adds the averaging.

    fixed_global_batch_size=True: the global batch is constant, because the job's micro-batches are shared among its present
    workers. False: each worker computes one micro-batch of a step, and the global batch follows the number of workers.
    """
    if backward_passes_per_step != 1 or gradient_predivide_factor != 1.0:
        raise NotImplementedError('backward_passes_per_step and gradient_predivide_factor: a step has the job\'s micro_batches, '
                                  'and its gradient is the mean over their records')
    if compression is not None and 'none' not in getattr(compression, '__name__', str(compression)).lower():
        raise NotImplementedError('compression of gradients: they are summed in float32')
    optimizer.fixed_global_batch_size = fixed_global_batch_size
    for name in ('set_backward_passes_per_step', 'synchronize'):
        setattr(optimizer, name, types.MethodType(_nothing, optimizer))
    optimizer.skip_synchronize = types.MethodType(_skip_synchronize, optimizer)
    return optimizer
