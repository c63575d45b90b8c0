"""Memory of tensors as buffers, for muster._muster, which knows nothing of torch."""
import ctypes

import torch


def in_place(tensor):
    """Whether the tensor's bytes are its memory, in order: others may read and write them there."""
    return tensor.device.type == 'cpu' and tensor.layout == torch.strided and tensor.is_contiguous()


def buffer_of(tensor):
    """A writable buffer over a tensor that is in_place(). Whoever holds it keeps the tensor, too."""
    return (ctypes.c_ubyte * (tensor.numel() * tensor.element_size())).from_address(tensor.data_ptr())


def mirror_of(tensor):
    """Room in this process's memory for a tensor that is elsewhere, or not in order."""
    return torch.zeros(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)


def bytes_of(tensor):
    """A copy of the tensor's bytes, in order."""
    flat = tensor.detach().cpu().contiguous()
    return ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()) if flat.numel() else b''


def tensor_of(data, shape, dtype):
    """A tensor of its own from such bytes."""
    if not data:
        return torch.zeros(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype).reshape(shape)
