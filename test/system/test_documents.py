"""`make check` finds documents that name things which do not exist; each of its checks can fail."""
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / 'tools'))
import documents  # noqa: E402

COMMANDS = documents.read_commands('''
#define NAMESPACE OPTION("namespace", 'n', "NAMESPACE", "default", "where")
#define FILES(what) OPTION("filename", 'f', "FILE", NULL, what "; may be repeated")
#define TWO \\
    OPTION("env", 'e', "NAME", NULL, "a variable") \\
    OPTION("env-file", 0, "FILE", NULL, "variables")
COMMAND(run, "FILE", "file", "train", "")
FILES("the file")
OPTION("no-gpu", 0, NULL, NULL, "none")
END
COMMAND(create, "FILE", "file", "make", "")
NAMESPACE
TWO
END
PROGRAM(perf, "tune", "", "measure", "")
OPTION("json", 'j', NULL, NULL, "as JSON")
END
''')


def test_the_table_of_commands_is_read():
    assert COMMANDS == {'run': {'--help', '-h', '--filename', '-f', '--no-gpu'}, 'create': {'--help', '-h', '--namespace', '-n', '--env', '-e', '--env-file'},
                        'perf': {'--help', '-h', '--json', '-j'}}


def page(tmp_path, text):
    (tmp_path / 'other.md').write_text('# Two words\n## `code`, and more\n## Two words\n')
    (tmp_path / 'page.md').write_text(text)
    return tmp_path / 'page.md'


@pytest.mark.parametrize('text, faults', [
    ('[a](other.md) [b](other.md#two-words) [c](other.md#two-words-1) [d](#here) ![e](other.md)\n# Here\n', 0),
    ('[a](other.md#code-and-more) [b](https://example.com/x) [c](mailto:a@b) `[d](nowhere.md)`\n', 0),
    ('```\n[a](nowhere.md)\n```\n', 0),
    ('[a](nowhere.md)\n', 1),
    ('[a](other.md#three-words) [b](#here)\n', 2),
    ('![a](picture.png)\n', 1),
    ('<img src="picture.png" width="10">\n', 1),
])
def test_links_and_anchors(tmp_path, text, faults):
    path = page(tmp_path, text)
    assert len(list(documents.check_links(path, text))) == faults


@pytest.mark.parametrize('text, faults', [
    ('`muster run -f job.yaml --no-gpu` and muster walk --far in prose\n', 0),
    ('```sh\nA=1 build/bin/muster create -n x job.yaml | muster perf --json\nmuster run -f a -- python3 b.py --lr 1\n```\n', 0),
    ("`muster run -f job.yaml --no-gpu 'a --b'`, `muster daemon`, `from muster import torch`\n", 0),
    ('`muster walk`\n', 1),
    ('`muster run --no-gpus`\n', 1),
    ('```\n$ muster run -f x --far && muster create --no-gpu\n```\n', 2),
    ('`muster create -f x`\n', 1),
])
def test_commands_and_options(text, faults):
    assert len(list(documents.check_commands(text, COMMANDS))) == faults


def test_options_in_messages():
    assert not list(documents.check_messages('say("muster run -f FILE starts it, --no-gpu without");', COMMANDS))
    assert not list(documents.check_messages('say("muster cannot --x");', COMMANDS))
    assert len(list(documents.check_messages('\nsay("use muster run --no-gpus");\n', COMMANDS))) == 1


def test_advice_that_kubectl_cannot_follow():
    assert not list(documents.check_advice('fail("remove the request"); call("--dry-run");', COMMANDS))
    assert list(documents.check_advice('\nfail("or give --no-gpu");', COMMANDS))[0][0] == 2


def test_variables():
    assert list(documents.variables_read('a\nx = getenv("MUSTER_A");\nos.environ.get(\'MUSTER_B\')\n')) == [(2, 'MUSTER_A'), (3, 'MUSTER_B')]
    assert not list(documents.check_variables('`MUSTER_A=1`, MUSTER_* and MUSTER_', {'MUSTER_A'}))
    assert len(list(documents.check_variables('`MUSTER_A_B`', {'MUSTER_A'}))) == 1


def names_of_our_tests():
    """Returns the names of the functions in files of tests."""
    there = subprocess.run(['git', '-C', SOURCE, 'grep', '-hoE', r'^(static void|def) [a-z_0-9]+\(', '--', '*_test.c', 'test/*.py', 'python/tests/*.py'],
                           capture_output=True, text=True, check=True)
    return set(re.findall(r'(\w+)\(', there.stdout))


def rows_of(text):
    return [line.strip('| ').split(' | ') for line in text.splitlines() if line.startswith('| ')]


def test_the_tests_that_show_what_upstream_tests_are_there():
    """docs/upstream-tests.md names only tests that exist, and no test of upstream twice."""
    rows = [row for row in rows_of((SOURCE / 'docs/upstream-tests.md').read_text()) if row[0].startswith('`')]
    theirs = [name for row in rows for name in re.findall(r'`([Tt]est\w+)`', row[0])]
    assert len(theirs) == len(set(theirs)) > 30
    defined = names_of_our_tests()
    for row in rows:
        ours = re.findall(r'`([a-z_0-9]+)`', row[1])
        assert ours and set(ours) <= defined, row


def test_the_tests_that_show_what_elasticdls_assert_are_there():
    """docs/elasticdl-tests.md names an existing test for each test of ElasticDL that "passes", and for each of its 25 defects;
    docs/elasticdl.md names some."""
    theirs, defects = (SOURCE / 'docs/elasticdl-tests.md').read_text().split("## ElasticDL's defects")
    defined, others = names_of_our_tests(), {'num_minibatches_per_shard', 'set_resume_epoch', 'kubernetes'}
    rows = [row[2] for row in rows_of(theirs) if row[0].startswith(('`', 'V1')) and len(row) == 3]
    assert len(rows) > 30
    for cell in rows:
        ours = set(re.findall(r'`([a-z_0-9]+)`', cell)) - others
        assert ours <= defined and (ours or not cell.startswith('passes')), cell
    numbered = {int(row[0]): row[2] for row in rows_of(defects) if row[0].isdigit()}
    assert list(numbered) == list(range(1, 26))
    for cell in numbered.values():
        ours = set(re.findall(r'`([a-z_0-9]+)`', cell))
        assert ours <= defined and (ours or cell == 'the same'), cell
    table = (SOURCE / 'docs/elasticdl.md').read_text().split('## Defects of its command line')[1]
    assert {row[3].strip('`') for row in rows_of(table) if row[0].isdigit()} <= defined


def test_the_benches_that_documents_name_have_these_options():
    """A reader can type each command by which a figure was measured."""
    found = {}
    for path in [*SOURCE.glob('*.md'), *SOURCE.glob('docs/*.md')]:
        for name, words in re.findall(r'`(bench/[a-z-]+/[a-z-]+)((?: [^`]*)?)`', path.read_text()):
            found.setdefault(name, set()).update(re.findall(r'--[a-z-]+', words))
    assert len(found) > 5 and '--python-trials' in found['bench/recovery/run']
    for name, options in found.items():
        assert [option for option in options if f"'{option}'" not in (SOURCE / name).read_text()] == [], name


def test_make_check_fails_on_each(tmp_path):
    """The whole of tools/check runs on a copy of the tree with one mistake of each kind."""
    listed = subprocess.run(['git', '-C', SOURCE, 'ls-files', '-co', '--exclude-standard'], capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        if (SOURCE / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(SOURCE / name, tmp_path / name)
    subprocess.run(['git', 'init', '-q', tmp_path], check=True)
    with (tmp_path / 'docs/failures.md').open('a') as file:
        file.write('[a](nowhere.md) [b](#nowhere) `muster walk` `muster run --far` `MUSTER_' 'NOWHERE`\n')
    with (tmp_path / 'src/api/status.c').open('a') as file:
        file.write('\nconst char *words = "muster run --far, --share-gpu";\nchar *value(void)\n{\n    return getenv("MUSTER_UNSAID");\n}\nstruct muster_err err = {0};\n')
    (tmp_path / 'src/api' / 'forgotten_test.c').write_text('/* A test that nothing builds. */\n')
    done = subprocess.run([sys.executable, tmp_path / 'tools/check'], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    for fault in ('nowhere.md leads nowhere', 'no heading for #nowhere', 'no muster walk', 'no option --far', 'NOWHERE is not in the source',
                  'status.c', 'kubectl has no --share-gpu', 'MUSTER_UNSAID is in no document',
                  'forgotten_test.c', 'begins as MUSTER_ERR_INIT'):
        assert fault in done.stdout, done.stdout
