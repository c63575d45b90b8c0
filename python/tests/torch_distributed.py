"""Runs the distributed tests that ship inside torch (torch.testing._internal.distributed.distributed_test), forked.

    python3 torch_distributed.py [TEST…]       on gloo; with MUSTER_BACKEND=muster in the environment, on muster: the
                                               tests ask for "gloo" and get muster
    python3 torch_distributed.py --list

Prints one line per test: `ok`, `skip` or `FAIL`, and its name. Each test runs its ranks as forked processes.
"""
import atexit
import os
import shutil
import sys
import tempfile
import time
import types
import unittest

if not os.environ.get('TEMP_DIR'):
    os.environ['TEMP_DIR'] = tempfile.mkdtemp(prefix='torch-distributed-')
    atexit.register(shutil.rmtree, os.environ['TEMP_DIR'], ignore_errors=True)  # forked ranks end without calling this
os.environ.update(BACKEND='gloo', WORLD_SIZE=os.environ.get('WORLD_SIZE', '3'), INIT_METHOD='env://',
                  MASTER_ADDR='127.0.0.1', OMP_NUM_THREADS='1')
for folder in ('barrier', 'test_dir', 'init_dir'):
    os.makedirs(os.path.join(os.environ['TEMP_DIR'], folder), exist_ok=True)

try:
    import expecttest  # noqa: F401
except ImportError:  # torch.testing needs only its base class
    sys.modules['expecttest'] = types.SimpleNamespace(TestCase=unittest.TestCase, ACCEPT=False)

import torch  # noqa: E402
from torch.testing._internal import common_distributed  # noqa: E402
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402

common_distributed.TIMEOUT_DEFAULT = int(os.environ.get('TEST_TIMEOUT', '60'))
torch.set_num_threads(1)  # a forked child inherits no OpenMP threads


class Forked(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context('fork').Process)


class Lines(unittest.TestResult):
    def _say(self, word, test, why=''):
        seconds = time.monotonic() - self.began
        print(f'{word} {test._testMethodName} {seconds:.1f}s {why}'.rstrip(), flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def addSuccess(self, test):
        self._say('ok', test)

    def addSkip(self, test, reason):
        self._say('skip', test, reason.splitlines()[0])

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._say('FAIL', test, str(error[1]).splitlines()[-1] if str(error[1]) else '')

    addError = addFailure


def main():
    names = [name for name in sys.argv[1:] if not name.startswith('-')]
    names = names or unittest.TestLoader().getTestCaseNames(Forked)
    if '--list' in sys.argv:
        print('\n'.join(names))
        return 0
    result = Lines()
    unittest.TestSuite(Forked(name) for name in names).run(result)
    return 0 if result.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main())
