#!/usr/bin/env python3
"""The same as train.sh, in Python: get_training_data() before train(). Usage: train.py [--only-fetch] SOURCE FOLDER [FLAGS OF mnist.py…]

SOURCE is a web folder that holds the four IDX files, or a folder.
"""
import os
import pathlib
import shutil
import sys
import urllib.request

FILES = ['train-images-idx3-ubyte.gz', 'train-labels-idx1-ubyte.gz', 't10k-images-idx3-ubyte.gz', 't10k-labels-idx1-ubyte.gz']
TIMEOUT_S = 60


def get_training_data(source, folder):
    """Gives each file its name only when it is complete, so that a restarted rank may rely on the files that it finds."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if (folder / name).exists():
            continue
        if '://' in source:
            with urllib.request.urlopen(f'{source}/{name}', timeout=TIMEOUT_S) as answer, open(folder / f'{name}.part', 'wb') as file:
                shutil.copyfileobj(answer, file)
        else:
            shutil.copy(pathlib.Path(source, name), folder / f'{name}.part')
        os.replace(folder / f'{name}.part', folder / name)


def train(folder, flags):
    script = pathlib.Path(__file__).resolve().parent.parent / 'mnist' / 'mnist.py'
    os.execv(sys.executable, [sys.executable, script, '--training-data', folder, *flags])


def main():
    words = sys.argv[1:]
    only_fetch = words[:1] == ['--only-fetch']
    if only_fetch:
        words.pop(0)
    if len(words) < 2:
        sys.exit(__doc__)
    get_training_data(words[0].rstrip('/'), pathlib.Path(words[1]))
    if not only_fetch:
        train(words[1], words[2:])


if __name__ == '__main__':
    main()
