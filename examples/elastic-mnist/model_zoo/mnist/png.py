"""Reads and writes PNG files with 8 bits per channel in plain Python, for machines that have neither cv2 nor PIL."""
import struct
import zlib

_SIGNATURE = b'\x89PNG\r\n\x1a\n'
_GREY, _RGB = 0, 2


def _chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))


def encode_grey(pixels, width, height):
    """Returns the file of a grey picture; pixels: bytes, row after row."""
    rows = b''.join(b'\0' + bytes(pixels[y * width:(y + 1) * width]) for y in range(height))
    head = struct.pack('>IIBBBBB', width, height, 8, _GREY, 0, 0, 0)
    return _SIGNATURE + _chunk(b'IHDR', head) + _chunk(b'IDAT', zlib.compress(rows)) + _chunk(b'IEND', b'')


def _chunks(data):
    at = len(_SIGNATURE)
    while at + 8 <= len(data):
        size, kind = struct.unpack_from('>I4s', data, at)
        yield kind, data[at + 8:at + 8 + size]
        at += 12 + size


def _predict(kind, left, up, corner):
    """Returns the predicted value of a pixel, by the filter of its row (PNG, 9.2)."""
    if kind == 4:
        estimate = left + up - corner
        return min((abs(estimate - left), 0, left), (abs(estimate - up), 1, up), (abs(estimate - corner), 2, corner))[2]
    return (0, left, up, (left + up) // 2)[kind]


def _unfilter(kind, row, before, step):
    if kind:
        for i, value in enumerate(row):
            left, corner = (row[i - step], before[i - step]) if i >= step else (0, 0)
            row[i] = (value + _predict(kind, left, before[i], corner)) & 255
    return row


def decode(data):
    """Returns (width, height, channels, bytes row after row) of a grey or RGB picture."""
    if data[:len(_SIGNATURE)] != _SIGNATURE:
        raise ValueError('this is no PNG file')
    chunks = list(_chunks(data))
    width, height, depth, colours, _, _, interlaced = struct.unpack('>IIBBBBB', dict(chunks)[b'IHDR'])
    if depth != 8 or colours not in (_GREY, _RGB) or interlaced:
        raise ValueError('only grey or RGB pictures of 8 bits are read here: install cv2 or PIL')
    step = 3 if colours == _RGB else 1
    size = width * step
    packed = zlib.decompressobj().decompress(b''.join(body for kind, body in chunks if kind == b'IDAT'), height * (size + 1))
    if len(packed) != height * (size + 1):
        raise ValueError('the picture is cut off')
    before, rows = bytearray(size), []
    for y in range(height):
        start = y * (size + 1)
        before = _unfilter(packed[start], bytearray(packed[start + 1:start + 1 + size]), before, step)
        rows.append(before)
    return width, height, step, b''.join(rows)
