#!/usr/bin/env python3
"""write_pictures.py [--from FOLDER] [--images N] TO: writes Fashion-MNIST as TO/mnist_png/{training,testing}/LABEL/NUMBER.png.

That is the layout of the data set that ElasticDL's tutorial takes from Kaggle. FOLDER has the four IDX files, gzipped or not; the default is
the folder of Debian's package dataset-fashion-mnist. The program downloads nothing.
"""
import argparse
import gzip
import pathlib
import sys

from model_zoo.mnist import png

PARTS = {'training': 'train', 'testing': 't10k'}


def read_idx(folder, name):
    """Returns (sizes, bytes) of an IDX file: 0, 0, type 8 = bytes, rank, the sizes, the bytes."""
    for path in (folder / f'{name}.gz', folder / name):
        if path.is_file():
            with (gzip.open if path.suffix == '.gz' else open)(path, 'rb') as file:
                data = file.read()
            rank = data[3]
            sizes = [int.from_bytes(data[i:i + 4], 'big') for i in range(4, 4 + 4 * rank, 4)]
            return sizes, data[4 + 4 * rank:]
    sys.exit(f'write_pictures.py: {folder} has no {name}(.gz); Debian: apt install dataset-fashion-mnist, or --from FOLDER')


def write(source, target, prefix, limit):
    (count, height, width), pixels = read_idx(source, f'{prefix}-images-idx3-ubyte')
    labels = read_idx(source, f'{prefix}-labels-idx1-ubyte')[1]
    size = height * width
    for label in sorted(set(labels)):
        (target / str(label)).mkdir(parents=True, exist_ok=True)
    count = min(count, limit or count)
    for i in range(count):
        picture = png.encode_grey(pixels[i * size:(i + 1) * size], width, height)
        (target / str(labels[i]) / f'{i}.png').write_bytes(picture)
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--from', dest='source', type=pathlib.Path, default='/usr/share/datasets/fashion-mnist')
    parser.add_argument('--images', type=int, default=0, help='of each part, at most (0: all)')
    parser.add_argument('to', type=pathlib.Path)
    args = parser.parse_args()
    for part, prefix in PARTS.items():
        count = write(args.source, args.to / 'mnist_png' / part, prefix, args.images)
        print(f'{args.to}/mnist_png/{part}: {count} pictures')


if __name__ == '__main__':
    main()
