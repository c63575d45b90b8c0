"""The memory of tensors as buffers, for muster._muster, which does not use torch."""
import ctypes

import torch


def in_place(tensor):
    """Whether the tensor's bytes are its memory, in order, so that others may read and write them in place."""
    return tensor.device.type == 'cpu' and tensor.layout == torch.strided and tensor.is_contiguous()


def buffer_of(tensor):
    """Returns a writable buffer over a tensor that is in_place(). The buffer keeps the tensor alive."""
    return (ctypes.c_ubyte * (tensor.numel() * tensor.element_size())).from_address(tensor.data_ptr())


def mirror_of(tensor):
    """Returns memory of this process for a tensor that is on another device, or not contiguous."""
    return torch.zeros(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)


def bytes_of(tensor):
    """Returns a copy of the tensor's bytes, in order."""
    flat = tensor.detach().cpu().contiguous()
    return ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()) if flat.numel() else b''


def tensor_of(data, shape, dtype):
    """Returns a new tensor made of such bytes."""
    if not data:
        return torch.zeros(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype).reshape(shape)
