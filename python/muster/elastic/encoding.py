"""Encodes state dicts as text, for the values that workers share besides model tensors: numbers, strings, lists, tuples, dicts, tensors.

This is not pickle: bytes from another process cannot create arbitrary objects. Values of other types (a function, a generator) are not shared:
decode() takes them from the state dict that the worker already has.
"""
import base64
import json

import torch

from muster.elastic.memory import bytes_of, tensor_of

_PLAIN = (bool, int, float, str, type(None))


class _Own:
    pass


OWN = _Own()


def _tensor(value):
    return [str(value.dtype)[len('torch.'):], list(value.shape), base64.b64encode(bytes_of(value)).decode()]


def _encode(value):
    if type(value) in _PLAIN:
        return value
    if isinstance(value, torch.Tensor):
        return {'T': _tensor(value)}
    if isinstance(value, (list, tuple)):
        return {'t' if isinstance(value, tuple) else 'l': [_encode(v) for v in value]}
    if isinstance(value, dict):
        return {'d': [[_encode(k), _encode(v)] for k, v in value.items()]}
    for plain in _PLAIN[:-1]:
        if isinstance(value, plain):  # also numpy's numbers, and enums that are numbers
            return plain(value)
    return {'x': 0}


def _decode_tensor(value):
    name, shape, text = value
    dtype = getattr(torch, name) if name.isidentifier() else None
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f'{name!r} is no type of a tensor')
    return tensor_of(base64.b64decode(text), shape, dtype)


def _decode_list(items, own):
    mine = own if isinstance(own, (list, tuple)) and len(own) == len(items) else [OWN] * len(items)
    return [_decode(item, one) for item, one in zip(items, mine)]


def _decode_dict(pairs, own):
    mine = own if isinstance(own, dict) else {}
    found = {}
    for name, value in pairs:
        name = _decode(name, OWN)
        value = _decode(value, mine.get(name, OWN))
        if value is not OWN:
            found[name] = value
    return found


def _decode(value, own):
    if not isinstance(value, dict):
        return value
    (kind, inner), = value.items()
    if kind == 'T':
        return _decode_tensor(inner)
    if kind == 'd':
        return _decode_dict(inner, own)
    if kind in ('l', 't'):
        items = _decode_list(inner, own)
        return tuple(items) if kind == 't' else items
    if kind != 'x':
        raise ValueError(f'{kind!r} is no kind of a value')
    return own


def encode(value):
    return json.dumps(_encode(value), separators=(',', ':')).encode()


def decode(data, own=OWN):
    """Returns the decoded value; own: this worker's value, for parts that could not be encoded."""
    return _decode(json.loads(data), own)
