"""tools/counted names and counts each skip, and .ci/run fails on a skip that no list has."""
import os
import subprocess
import sys

import pytest

from program import LIMIT_S, SOURCE

COUNTED = SOURCE / 'tools/counted'
PYTEST = '''import pytest
def test_passes():
    pass
def test_skips():
    pytest.skip('no moon')
@pytest.mark.skipif(True, reason='no sun')
@pytest.mark.parametrize('what', ['a b'])
def test_is_marked(what):
    pass
'''
CTEST = '''add_test(passes true)
add_test(leaves_one_out echo "[  SKIPPED ] one_of_two
[  SKIPPED ] 1 test(s), listed below:")
add_test(does_nothing sh -c "exit 77")
set_tests_properties(does_nothing PROPERTIES SKIP_RETURN_CODE 77)
'''


def counted(*words, code=0, again=0, cwd=None):
    done = subprocess.run([COUNTED, *words], cwd=cwd, env={**os.environ, 'MUSTER_AGAIN': str(again)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == code, done.stdout
    return done.stdout.splitlines()


@pytest.fixture
def tests(tmp_path):
    (tmp_path / 'test_x.py').write_text(PYTEST)
    (tmp_path / 'CTestTestfile.cmake').write_text(CTEST)
    return tmp_path


def run_pytest(folder, **options):
    return counted('pytest', sys.executable, '--rootdir=.', 'test_x.py', cwd=folder, **options)


def test_skips_of_pytest(tests):
    lines = run_pytest(tests)
    assert lines[-3:] == ['skipped: test_x.test_skips: no moon', 'skipped: test_x.test_is_marked[a_b]: no sun',
                          '1 passed, 0 failed, 2 skipped']


def test_skips_of_ctest(tests):
    lines = counted('ctest', tests)
    assert lines[-3:] == ['skipped: does_nothing: the whole program', 'skipped: leaves_one_out/one_of_two: see the test',
                          '2 passed, 0 failed, 2 skipped']


def test_failures(tests):
    (tests / 'test_x.py').write_text(PYTEST + 'def test_fails():\n    assert False\n')
    (tests / 'CTestTestfile.cmake').write_text(CTEST + 'add_test(fails false)\n')
    assert run_pytest(tests, code=1)[-1] == '1 passed, 1 failed, 2 skipped'
    assert counted('ctest', tests, code=1)[-1] == '2 passed, 1 failed, 2 skipped'


def write_failures(folder, *names):
    """Writes tests that fail at their first run; the test `always` fails at each run."""
    programs = {name: 'false' if name == 'always' else f'sh -c "! mkdir {name}-ran"' for name in names}
    (folder / 'CTestTestfile.cmake').write_text(CTEST + ''.join(f'add_test({n} {p})\n' for n, p in programs.items()))
    (folder / 'test_x.py').write_text(PYTEST + 'import os\n' + ''.join(
        f'def test_{n}():\n    assert os.system({p!r}) == 0\n'.replace('-ran', '-py') for n, p in programs.items()))


@pytest.mark.parametrize('names, again, flaky, failed', [
    (['once'], 0, 0, 1), (['once'], 2, 1, 0), (['once', 'always'], 2, 1, 1), (['once', 'twice', 'always'], 2, 0, 3)])
def test_who_passes_alone_is_flaky(tests, names, again, flaky, failed):
    write_failures(tests, *names)
    for lines, passes in ((run_pytest(tests, again=again, code=int(failed > 0)), 1),
                          (counted('ctest', tests, again=again, code=int(failed > 0)), 2)):
        assert sum(line.startswith('flaky: ') for line in lines) == flaky, lines
        assert lines[-1] == f'{passes + flaky} passed, {failed} failed, 2 skipped'


@pytest.mark.parametrize('words', [('pytest', sys.executable, '/nowhere'), ('ctest', '/nowhere'), ('ctest', '.', '-R', 'unknown')])
def test_no_tests_are_a_failure(tests, words):
    if words[1] == '.':
        words = ('ctest', tests, *words[2:])
    assert counted(*words, code=1)[-1] == '0 passed, 1 failed, 0 skipped'


def test_total(tmp_path):
    log = tmp_path / 'log'
    log.write_text('1 passed, 0 failed, 2 skipped\nnoise 1 passed, 5 failed, 2 skipped\n20 passed, 0 failed, 3 skipped\n')
    assert counted('total', log) == ['21 passed, 0 failed, 5 skipped']
    log.write_text('1 passed, 0 failed, 2 skipped\n1 passed, 1 failed, 0 skipped\n')
    assert counted('total', log, code=1) == ['2 passed, 1 failed, 2 skipped']
    log.write_text('')
    assert counted('total', log, code=1) == ['0 passed, 0 failed, 0 skipped']


def test_what_is_not_listed(tmp_path):
    log, listed = tmp_path / 'log', tmp_path / 'skips'
    log.write_text('skipped: a/one: see the test\nskipped: t.test_b[x]: no moon\nskipped: c: the whole program\n')
    listed.write_text('# suites\nasan a/* nobody may be traced\n* t.test_b[x] no moon here\n')
    assert counted('unlisted', listed, 'asan', log, code=1) == ['c']
    assert counted('unlisted', listed, 'test', log, code=1) == ['a/one', 'c']
    listed.write_text(listed.read_text() + 'as* c because\n')
    assert counted('unlisted', listed, 'asan', log) == []
    listed.write_text('asan a/*\n')
    assert 'skips:1: a suite, a test and the reason are needed' in counted('unlisted', listed, 'asan', log, code=1)[0]
