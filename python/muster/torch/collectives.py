"""Implements every collective of torch.distributed by one call of libmuster.

torch passes lists of tensors and an options object, and gets a Work (work.py). Non-contiguous and scattered tensors are
copied into one packed buffer, which is unpacked when the call has ended.
"""
from datetime import timedelta

import torch
from torch.autograd import _profiler_enabled
from torch.autograd.profiler import record_function

from muster import _muster
from muster.torch.tensors import (consecutive, dense, landing, moving, one_per_rank, only, packed, reduce_op, reducing,
                                  same_size, same_sizes, same_type, unpack)
from muster.torch.work import (AWAITED, DONE, SYNC, Operation, finished, hand_over, wanted, wanted_at_once,
                               wanted_reduction)

_ALL_REDUCE = _muster.ALL_REDUCE


class Collectives:
    """The calls of a group with a communicator (group.py), in the names and forms that torch uses."""

    # -- the call of libmuster -----------------------------------------------------------------------------------

    def _do(self, mode, name, kind, keep, result, finish, kind_args, counts=()):
        """Runs or starts one native call; kind_args: type, op, peer, tag, in, out, count."""
        self._sequence += 1
        self._moved += kind != _muster.BARRIER
        if _profiler_enabled():
            with record_function(f'muster:{name}'):
                return self._issue(mode, kind, keep, result, finish, kind_args, counts)
        return self._issue(mode, kind, keep, result, finish, kind_args, counts)

    def _issue(self, mode, kind, keep, result, finish, kind_args, counts):
        if mode is SYNC or mode is AWAITED:
            source = self._run(kind, *kind_args, *counts)
            if finish:
                finish()
            return finished(mode, result, source)
        operation = Operation(keep, finish, result)
        operation.request = self._comm.start(operation, kind, *kind_args, *counts)
        return hand_over(mode, operation)

    def _move(self, mode, name, kind, source, target, count, result, finish=None, peer=0, tag=0, counts=()):
        """Runs or starts a call that only moves data. source or target is None if the rank has none."""
        some = target if source is None else source
        kind_type, per = moving(some)
        if per != 1:
            counts = tuple(c and [n * per for n in c] for c in counts)
        args = (kind_type, 0, peer, tag, source.data_ptr() if source is not None else 0,
                target.data_ptr() if target is not None else 0, count * per)
        return self._do(mode, name, kind, (source, target), result, finish, args, counts)

    # -- reductions ----------------------------------------------------------------------------------------------

    def allreduce(self, tensors, opts=None, timeout=None):
        tensor = tensors if isinstance(tensors, torch.Tensor) else only(tensors, 'all_reduce')
        mode, op = wanted_reduction(opts)
        if tensor.is_sparse:
            return finished(mode, [self._sparse_all_reduce(tensor, op)])
        flat = dense(tensor)
        kind_type, per = reducing(tensor, op)
        address, count = flat.data_ptr(), flat.numel() * per
        if self._checks:
            self._checks.on_all_reduce(address, count)
        if mode is SYNC and flat is tensor and not _profiler_enabled():  # the short way: no object is created
            self._sequence += 1
            self._moved += 1
            self._run(_ALL_REDUCE, kind_type, op, 0, 0, address, address, count)
            return DONE
        finish = None if flat is tensor else lambda: tensor.detach().copy_(flat)
        return self._do(mode, 'all_reduce', _ALL_REDUCE, (tensor, flat), (tensor,), finish,
                        (kind_type, op, 0, 0, address, address, count))

    def allreduce_coalesced(self, tensors, opts=None):
        mode, op = wanted(opts), reduce_op(opts)
        same_type(tensors, 'all_reduce_coalesced')
        flat = torch.cat([dense(t).view(-1) for t in tensors])
        kind_type, per = reducing(flat, op)
        return self._do(mode, 'all_reduce', _ALL_REDUCE, (flat,), tensors, lambda: unpack(flat, tensors),
                        (kind_type, op, 0, 0, flat.data_ptr(), flat.data_ptr(), flat.numel() * per))

    def reduce(self, tensors, opts=None, op=None, *_):
        tensor, mode, op = only(tensors, 'reduce'), wanted(opts), reduce_op(op if isinstance(opts, int) else opts)
        flat, root = dense(tensor), _root(opts)
        kind_type, per = reducing(tensor, op)
        finish = None if flat is tensor or root != self._rank else lambda: tensor.detach().copy_(flat)
        return self._do(mode, 'reduce', _muster.REDUCE, (tensor, flat), (tensor,), finish,
                        (kind_type, op, root, 0, flat.data_ptr(), flat.data_ptr(), flat.numel() * per))

    def reduce_scatter(self, outputs, inputs, opts=None, timeout=None):
        mode, op = wanted(opts), reduce_op(opts)
        if not isinstance(outputs, torch.Tensor):
            outputs, inputs = only(outputs, 'reduce_scatter'), only(inputs, 'reduce_scatter')
        output, pieces = outputs, inputs
        one_per_rank(pieces, self._size, 'reduce_scatter')
        same_type([output, *pieces], 'reduce_scatter')
        if pieces[self._rank].numel() != output.numel():
            raise RuntimeError(f'muster: reduce_scatter: the output of rank {self._rank} has {output.numel()} elements, '
                               f'its piece of the input {pieces[self._rank].numel()}')
        if any(piece.numel() != output.numel() for piece in pieces):
            return self._uneven_reduce_scatter(mode, op, output, pieces)
        return self._reduce_scatter(mode, op, packed(pieces), output)

    def _reduce_scatter(self, mode, op, source, output):
        target = landing(output)
        kind_type, per = reducing(output, op)
        finish = None if target is output else lambda: output.detach().copy_(target)
        return self._do(mode, 'reduce_scatter', _muster.REDUCE_SCATTER, (source, target, output), (output,), finish,
                        (kind_type, op, 0, 0, source.data_ptr(), target.data_ptr(), target.numel() * per))

    def _uneven_reduce_scatter(self, mode, op, output, pieces):
        flat = torch.cat([dense(piece).view(-1) for piece in pieces])
        kind_type, per = reducing(output, op)
        start = sum(piece.numel() for piece in pieces[:self._rank])
        return self._do(mode, 'reduce_scatter', _ALL_REDUCE, (flat, output), (output,),
                        lambda: unpack(flat[start:], [output]),
                        (kind_type, op, 0, 0, flat.data_ptr(), flat.data_ptr(), flat.numel() * per))

    def reduce_scatter_single(self, output, source, opts=None, *_):
        if source.numel() != output.numel() * self._size:
            raise RuntimeError(f'muster: reduce_scatter: the input has {source.numel()} elements, the output '
                               f'{output.numel()}; for {self._size} ranks it must be {self._size} times as many')
        same_type([output, source], 'reduce_scatter')
        return self._reduce_scatter(wanted(opts), reduce_op(opts), dense(source), output)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None):
        mode, op = wanted(opts), reduce_op(opts)
        same_type([*outputs, *inputs], 'reduce_scatter')
        same_sizes(inputs, outputs, self._size, 'reduce_scatter')
        rows = [dense(source).view(self._size, -1) for source in inputs]
        source = torch.cat(rows, dim=1).contiguous()
        target = torch.empty(source.shape[1], dtype=source.dtype)
        kind_type, per = reducing(source, op)
        return self._do(mode, 'reduce_scatter', _muster.REDUCE_SCATTER, (source, target), outputs,
                        lambda: unpack(target, outputs),
                        (kind_type, op, 0, 0, source.data_ptr(), target.data_ptr(), target.numel() * per))

    def _sparse_all_reduce(self, tensor, op):
        """Sums sparse tensors by gathering the entries of all ranks; it makes dense calls, which block."""
        if op not in (_muster.SUM, _muster.AVG):
            raise RuntimeError('muster: sparse tensors can be reduced by SUM and AVG only')
        mine = tensor.coalesce()
        shape = hash((mine.sparse_dim(), *mine.shape))
        told = self._gather_all(torch.tensor([mine._nnz(), shape]), [2] * self._size)
        entries, shapes = told.view(-1, 2).t().tolist()
        if shapes != [shape] * self._size:
            raise RuntimeError(f'muster: all_reduce: the sparse tensor of rank {self._rank} is of shape '
                               f'{list(mine.shape)}, that of rank {_first_other(shapes, shape)} of another')
        index_rows, values = mine.indices().t().contiguous(), mine.values().contiguous()
        row, item = mine.sparse_dim(), values[:1].numel() if values.numel() else _numel(values.shape[1:])
        indices = self._gather_all(index_rows.view(-1), [n * row for n in entries])
        gathered = self._gather_all(values.view(-1), [n * item for n in entries])
        total = torch.sparse_coo_tensor(indices.view(-1, row).t(), gathered.view(-1, *values.shape[1:]),
                                        tensor.shape).coalesce()
        tensor.copy_(total / self._size if op == _muster.AVG else total)
        return tensor

    def _gather_all(self, flat, counts):
        kind_type, per = moving(flat)
        out = torch.empty(sum(counts), dtype=flat.dtype)
        self._run(_muster.ALL_GATHER, kind_type, 0, 0, 0, flat.data_ptr(), out.data_ptr(), flat.numel() * per, None,
                  [n * per for n in counts])
        return out

    # -- moving --------------------------------------------------------------------------------------------------

    def broadcast(self, tensors, opts=None, timeout=None):
        tensor = tensors if isinstance(tensors, torch.Tensor) else only(tensors, 'broadcast')
        flat, root = dense(tensor), _root(opts)
        finish = None if flat is tensor or root == self._rank else lambda: tensor.detach().copy_(flat)
        return self._move(wanted_at_once(opts), 'broadcast', _muster.BROADCAST, flat, flat, flat.numel(), (tensor,), finish,
                          peer=root)

    def allgather(self, outputs, inputs, opts=None, timeout=None):
        source, targets = inputs, outputs
        if not isinstance(inputs, torch.Tensor):
            source, targets = only(inputs, 'all_gather'), only(outputs, 'all_gather')
        one_per_rank(targets, self._size, 'all_gather')
        return self._all_gather(wanted_at_once(opts), source, targets, outputs)

    def _all_gather(self, mode, source, targets, result):
        flat = dense(source)
        same_type([source, *targets], 'all_gather')
        counts = [target.numel() for target in targets]
        if counts[self._rank] != flat.numel():
            raise RuntimeError(f'muster: all_gather: rank {self._rank} gives {flat.numel()} elements and expects '
                               f'{counts[self._rank]} of itself')
        even = counts.count(counts[0]) == len(counts)
        if even and consecutive(targets):
            return self._move(mode, 'all_gather', _muster.ALL_GATHER, flat, targets[0], flat.numel(), result)
        out = torch.empty(sum(counts), dtype=flat.dtype)
        return self._move(mode, 'all_gather', _muster.ALL_GATHER, flat, out, flat.numel(), result,
                          lambda: unpack(out, targets), counts=() if even else (None, counts))

    def all_gather_single(self, output, source, opts=None, *_):
        if output.numel() != source.numel() * self._size:
            raise RuntimeError(f'muster: all_gather: the output has {output.numel()} elements, the input '
                               f'{source.numel()}; for {self._size} ranks it must be {self._size} times as many')
        same_type([output, source], 'all_gather')
        flat, target = dense(source), landing(output)
        finish = None if target is output else lambda: output.detach().copy_(target)
        return self._move(wanted(opts), 'all_gather', _muster.ALL_GATHER, flat, target, flat.numel(), (output,), finish)

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        mode = wanted(opts)
        same_sizes(outputs, inputs, self._size, 'all_gather')
        rows = [_bytes(dense(source)) for source in inputs]
        source = torch.cat(rows)
        out = torch.empty(self._size, source.numel(), dtype=torch.uint8)
        finish = lambda: self._spread(out, rows, outputs)  # noqa: E731
        return self._move(mode, 'all_gather', _muster.ALL_GATHER, source, out, source.numel(), outputs, finish)

    @staticmethod
    def _spread(out, rows, outputs):
        at = 0
        for row, output in zip(rows, outputs):
            column = out[:, at:at + row.numel()].contiguous().view(-1)
            at += row.numel()
            output.detach().copy_(column.view(output.dtype).view(output.shape))

    def allgather_coalesced(self, output_lists, inputs, opts=None):
        """output_lists[rank][i] receives inputs[i] of that rank."""
        mode = wanted(opts)
        same_type(inputs, 'all_gather_coalesced')
        one_per_rank(output_lists, self._size, 'all_gather_coalesced')
        for targets in output_lists:
            same_sizes(targets, inputs, 1, 'all_gather_coalesced')
        source = packed(inputs)
        out = torch.empty(self._size, source.numel(), dtype=source.dtype)

        def finish():
            for row, targets in zip(out, output_lists):
                unpack(row, targets)
        return self._move(mode, 'all_gather', _muster.ALL_GATHER, source, out, source.numel(), output_lists, finish)

    def gather(self, outputs, inputs, opts=None, *_):
        flat, root = dense(only(inputs, 'gather')), _root(opts)
        out = finish = None
        if root == self._rank:
            targets = outputs if isinstance(inputs, torch.Tensor) else only(outputs, 'gather')
            one_per_rank(targets, self._size, 'gather')
            same_type([flat, *targets], 'gather')
            same_size(targets, flat.numel(), 'gather')
            out = torch.empty(self._size * flat.numel(), dtype=flat.dtype)
            finish = lambda: unpack(out, targets)  # noqa: E731
        return self._move(wanted(opts), 'gather', _muster.GATHER, flat, out, flat.numel(), outputs, finish, peer=root)

    def gather_single(self, output, source, opts=None, *_):
        flat, root = dense(source), opts.rootRank
        if root == self._rank:
            same_sizes([output], [source], self._size, 'gather')
        target = landing(output) if root == self._rank else None
        finish = None if target is None or target is output else lambda: output.detach().copy_(target)
        return self._move(wanted(opts), 'gather', _muster.GATHER, flat, target, flat.numel(), (output,), finish,
                          peer=root)

    def scatter(self, outputs, inputs, opts=None, *_):
        output, root = only(outputs, 'scatter'), _root(opts)
        target = landing(output)
        source = None
        if root == self._rank:
            pieces = inputs if isinstance(outputs, torch.Tensor) else only(inputs, 'scatter')
            one_per_rank(pieces, self._size, 'scatter')
            same_type([output, *pieces], 'scatter')
            same_size(pieces, output.numel(), 'scatter')
            source = packed(pieces)
        finish = None if target is output else lambda: output.detach().copy_(target)
        return self._move(wanted(opts), 'scatter', _muster.SCATTER, source, target, target.numel(), (output,), finish,
                          peer=root)

    def alltoall(self, outputs, inputs, opts=None):
        one_per_rank(outputs, self._size, 'all_to_all')
        one_per_rank(inputs, self._size, 'all_to_all')
        same_type([*outputs, *inputs], 'all_to_all')
        source = packed(inputs)
        out = torch.empty(sum(t.numel() for t in outputs), dtype=source.dtype)
        counts = self._agreeing([t.numel() for t in inputs], [t.numel() for t in outputs])
        return self._move(wanted(opts), 'all_to_all', _muster.ALL_TO_ALL, source, out, 0, outputs,
                          lambda: unpack(out, outputs), counts=counts)

    def alltoall_base(self, output, source, output_splits, input_splits, opts=None, *_):
        same_type([output, source], 'all_to_all')
        flat, target = dense(source), landing(output)
        counts = self._agreeing(self._split_counts(source, input_splits), self._split_counts(output, output_splits))
        finish = None if target is output else lambda: output.detach().copy_(target)
        return self._move(wanted(opts), 'all_to_all', _muster.ALL_TO_ALL, flat, target, 0, (output,), finish,
                          counts=counts)

    def _agreeing(self, given, taken):
        """Checks both lists of an all-to-all's counts and returns them; only the other ranks know the counts that they take."""
        if given[self._rank] != taken[self._rank]:
            raise RuntimeError(f'muster: all_to_all: rank {self._rank} gives {given[self._rank]} elements to itself and '
                               f'takes {taken[self._rank]} of them')
        return given, taken

    def _split_counts(self, tensor, splits):
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % self._size:
                raise RuntimeError(f"muster: all_to_all: Tensor's dim 0 ({rows}) does not divide equally across group "
                                   f'size {self._size}; give split sizes')
            splits = [rows // self._size] * self._size
        if len(splits) != self._size or sum(splits) != rows or min(splits) < 0:
            raise RuntimeError(f"muster: all_to_all: Split sizes {list(splits)} don't match: {self._size} of them must "
                               f'add up to {rows}')
        row = tensor.numel() // rows if rows else 0
        return [n * row for n in splits]

    # -- messages ------------------------------------------------------------------------------------------------

    def send(self, tensors, to, tag=0):
        flat = dense(only(tensors, 'send'))
        return self._move(wanted(None), 'send', _muster.SEND, flat, None, flat.numel(), tensors, peer=to, tag=tag)

    def recv(self, tensors, source, tag=0):
        return self._receive(wanted(None), only(tensors, 'recv'), source, tag)

    def recv_anysource(self, tensors, tag=0):
        return self._receive(wanted(None), only(tensors, 'recv'), _muster.ANY_SOURCE, tag)

    def _receive(self, mode, tensor, source, tag):
        target = landing(tensor)
        finish = None if target is tensor else lambda: tensor.detach().copy_(target)
        return self._move(mode, 'recv', _muster.RECV, None, target, target.numel(), (tensor,), finish, peer=source,
                          tag=tag)

    # -- agreement -----------------------------------------------------------------------------------------------

    def barrier(self, opts=None, timeout=None):
        limit = getattr(opts, 'timeout', None)
        if limit is None or limit <= timedelta(0):
            return self._do(wanted(opts), 'barrier', _muster.BARRIER, (), (), None, (0, 0, 0, 0, 0, 0, 0))
        mode = wanted(opts)
        operation = Operation((), None, ())
        operation.request = self._comm.start(operation, _muster.BARRIER, 0, 0, 0, 0, 0, 0, 0)
        if mode is not SYNC:
            return hand_over(mode, operation)
        operation.wait(limit)
        return finished(mode, ())

    def _start_coalescing(self, *_):
        """For batch_isend_irecv: the calls in between are started at once."""

    _end_coalescing = _start_coalescing

    # The names by which other versions of torch call these methods.
    _allgather_base = all_gather_single
    all_gather_into_tensor = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    all_to_all_single = alltoall_base
    gather_into_tensor = gather_single


def _root(opts):
    """Returns the root, from options, or as the number itself, which the short forms of the calls pass."""
    return opts if isinstance(opts, int) else opts.rootRank


def _first_other(values, value):
    return next(index for index, other in enumerate(values) if other != value)


def _numel(shape):
    count = 1
    for n in shape:
        count *= n
    return count


def _bytes(flat):
    return flat.view(-1).view(torch.uint8)
