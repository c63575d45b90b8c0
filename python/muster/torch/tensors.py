"""The data about a tensor that libmuster needs: an address, a count and a type.

All other properties of tensors are handled here: memory that is not contiguous, complex numbers, types that can only be
moved.
"""
import torch
from torch.distributed import ReduceOp

from muster import _muster

TYPES = {
    torch.bool: _muster.BOOL, torch.uint8: _muster.U8, torch.int8: _muster.I8, torch.int16: _muster.I16,
    torch.int32: _muster.I32, torch.int64: _muster.I64, torch.float16: _muster.F16, torch.bfloat16: _muster.BF16,
    torch.float32: _muster.F32, torch.float64: _muster.F64,
}
HALVES = {torch.complex32: _muster.F16, torch.complex64: _muster.F32, torch.complex128: _muster.F64}


def _number(op):
    """Returns the number of the operation. ReduceOp is an enum, or a class with an enum inside, depending on torch's version."""
    return int(getattr(op, 'op', op))


OPS = {_number(getattr(ReduceOp, theirs)): getattr(_muster, ours) for theirs, ours in (
    ('SUM', 'SUM'), ('AVG', 'AVG'), ('PRODUCT', 'PROD'), ('MIN', 'MIN'), ('MAX', 'MAX'), ('BAND', 'BAND'),
    ('BOR', 'BOR'), ('BXOR', 'BXOR'))}
# ReduceOps are found by identity: to compare two, or to read one from options, costs more than a small all-reduce.
OPS_BY_IDENTITY = {id(getattr(ReduceOp, name)): OPS[_number(getattr(ReduceOp, name))]
                   for name in ('SUM', 'AVG', 'PRODUCT', 'MIN', 'MAX', 'BAND', 'BOR', 'BXOR')}
BIT_OPS = (_muster.BAND, _muster.BOR, _muster.BXOR)


def reduce_op(opts):
    """Returns libmuster's operation for torch's options (or for a bare ReduceOp, which the short forms of the calls pass)."""
    number = _number(opts.reduceOp if hasattr(opts, 'reduceOp') else ReduceOp.SUM if opts is None else opts)
    try:
        return OPS[number]
    except KeyError:
        raise RuntimeError('muster: ReduceOp.PREMUL_SUM is not supported; scale the tensor, then use SUM') from None


def check(tensor):
    """Raises unless libmuster can reach the tensor's memory."""
    if not tensor.is_cpu:
        kind = tensor.device.type
        raise RuntimeError(
            f"muster: a tensor on device '{kind}' was given, and muster moves CPU tensors only; GPU tensors need "
            f"nccl: init_process_group('cpu:muster,cuda:nccl'), or 'nccl' alone")
    if tensor.layout is not torch.strided:
        raise RuntimeError(f'muster: {tensor.layout} tensors are supported by all_reduce only')


def plain(tensor):
    """True when libmuster can read and write the tensor's memory directly: it is on this machine, and contiguous."""
    return (tensor.is_cpu and tensor.layout is torch.strided and tensor.is_contiguous()
            and not tensor.is_neg() and not tensor.is_conj())


def dense(tensor):
    """Returns the tensor itself, or a contiguous copy of it."""
    if plain(tensor):
        return tensor
    check(tensor)
    return tensor.resolve_conj().resolve_neg().contiguous()


def landing(tensor):
    """Returns a tensor to which a result can be written: the given one if it is plain, or else a new one of the same form."""
    if plain(tensor):
        return tensor
    check(tensor)
    return torch.empty(tensor.shape, dtype=tensor.dtype)


def moving(tensor):
    """Returns (type, elements per element of the tensor) for a call that only moves bytes."""
    kind = TYPES.get(tensor.dtype)
    return (_muster.U8, tensor.element_size()) if kind is None else (kind, 1)


def reducing(tensor, op):
    """Returns (type, elements per element) for a call that computes."""
    kind = TYPES.get(tensor.dtype)
    if op in BIT_OPS and (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(f'muster: Cannot use ReduceOp.BAND, BOR or BXOR with {tensor.dtype}')
    if kind is not None:
        return kind, 1
    if tensor.is_complex() and op in (_muster.SUM, _muster.AVG):
        return HALVES[tensor.dtype], 2
    raise RuntimeError(f'muster: cannot reduce tensors of {tensor.dtype}')


def consecutive(tensors):
    """True when equal tensors are adjacent in memory, in order, as views of one buffer are."""
    first = tensors[0]
    step = first.numel() * first.element_size()
    base = first.data_ptr()
    return all(t.is_contiguous() and t.numel() == first.numel() and t.data_ptr() == base + i * step
               for i, t in enumerate(tensors))


def packed(tensors):
    """Returns one flat tensor with all elements; the tensors must have one type."""
    if len(tensors) == 1:
        return dense(tensors[0]).view(-1)
    return torch.cat([dense(t).view(-1) for t in tensors])


def unpack(flat, tensors):
    """Copies a flat tensor's pieces into the tensors."""
    at = 0
    for tensor in tensors:
        piece = flat[at:at + tensor.numel()]
        at += tensor.numel()
        tensor.detach().copy_(piece.view(tensor.shape))


def same_type(tensors, what):
    """Raises unless all tensors can be packed into one buffer."""
    for tensor in tensors:
        check(tensor)
        if tensor.dtype != tensors[0].dtype:
            raise RuntimeError(f'muster: {what} needs tensors of one type, got {tensors[0].dtype} and {tensor.dtype}')


def only(tensors, what):
    """Returns the tensor of a list that must have exactly one: torch's calls pass lists, except for their short forms."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise RuntimeError(f'muster: {what} needs a list of one tensor, got {len(tensors)}')
    return tensors[0]


def one_per_rank(tensors, size, what):
    """Raises unless the list has a tensor for each rank."""
    if len(tensors) != size:
        raise RuntimeError(f'muster: {what} needs {size} tensors in its list, one per rank, got {len(tensors)}')


def same_size(tensors, count, what):
    """Raises unless each tensor has `count` elements."""
    for index, tensor in enumerate(tensors):
        if tensor.numel() != count:
            raise RuntimeError(f'muster: {what}: tensor {index} of the list has {tensor.numel()} elements, '
                               f'{count} are expected')


def same_sizes(tensors, others, times, what):
    """Raises unless the two lists match, tensor by tensor: in type, and in size, where others have `times` as many elements."""
    if len(tensors) != len(others):
        raise RuntimeError(f'muster: {what} needs lists of equal length, got {len(tensors)} and {len(others)} tensors')
    for index, (tensor, other) in enumerate(zip(tensors, others)):
        same_type([tensor, other], what)
        if tensor.numel() != other.numel() * times:
            raise RuntimeError(f'muster: {what}: tensor {index} of the lists has {tensor.numel()} elements, '
                               f'{other.numel() * times} are expected')
