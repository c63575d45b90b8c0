"""What deterministic=True needs to give equal bits. Random numbers are drawn by a key and not in sequence, the number of threads is
fixed, and the coordinator compares a digest of the environment. docs/elastic.md says what this does not cover.
"""
import hashlib
import os
import random
import sys

import torch


def key(*parts):
    """Returns 63 bits that depend on each part and on the order of the parts."""
    digest = hashlib.blake2b('/'.join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, 'little') >> 1


def seed_all(number):
    """Seeds every generator that this process is known to have."""
    torch.manual_seed(number)
    random.seed(number)
    numpy = sys.modules.get('numpy')
    if numpy is not None:
        numpy.random.seed(number & 0xFFFFFFFF)


def random_state():
    numpy = sys.modules.get('numpy')
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    return torch.get_rng_state(), random.getstate(), numpy and numpy.random.get_state(), cuda


def restore_random_state(state):
    torch.set_rng_state(state[0])
    random.setstate(state[1])
    if state[2]:
        sys.modules['numpy'].random.set_state(state[2])
    if state[3] is not None:
        torch.cuda.set_rng_state_all(state[3])


def shown_random_state():
    """Returns the random state except a GPU's, as tensors and numbers, for a checkpoint."""
    version, numbers, gauss = random.getstate()
    numpy = sys.modules.get('numpy')
    shown = {'torch': torch.get_rng_state(), 'python': torch.tensor(numbers), 'gauss': gauss, 'version': version}
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state()
        shown['numpy'] = [name, torch.tensor(keys.tolist()), *rest]
    return shown


def restore_shown(shown):
    torch.set_rng_state(shown['torch'])
    random.setstate((shown['version'], tuple(shown['python'].tolist()), shown['gauss']))
    numpy = sys.modules.get('numpy')
    if numpy is not None and 'numpy' in shown:
        name, keys, *rest = shown['numpy']
        numpy.random.set_state((name, numpy.array(keys.tolist(), dtype=numpy.uint32), *rest))


def instruction_set():
    ask = getattr(getattr(torch.backends, 'cpu', None), 'get_cpu_capability', None)
    if ask is not None:
        return ask()
    lines = [line for line in torch.__config__.show().splitlines() if 'CPU capability' in line]
    return lines[0].split()[-1] if lines else '?'


def pin(threads):
    """Uses the number of threads that all workers use: sums over another number of threads have different bits."""
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)


def environment_digest():
    """Returns a digest of the environment. It is never 0, which means that the digest is not compared."""
    parts = [torch.__version__, instruction_set(), torch.get_num_threads()]
    if torch.cuda.is_available():
        parts += [torch.version.cuda, torch.cuda.get_device_name()]
    return key('environment', *parts) | 1


def seed_of(deterministic):
    """Returns the seed, or None for False; True is seed 0. MUSTER_DETERMINISTIC=SEED is for scripts that cannot pass it."""
    if deterministic is None:
        text = os.environ.get('MUSTER_DETERMINISTIC', '')
        if text and not text.isdigit():
            raise ValueError(f'MUSTER_DETERMINISTIC is {text!r}: it takes a seed, a number from 0')
        return int(text) if text else None
    if deterministic is False:
        return None
    return 0 if deterministic is True else int(deterministic)
