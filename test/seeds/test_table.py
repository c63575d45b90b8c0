"""docs/seeds.md and the tests agree, row by row."""
import ast
import pathlib
import re

from seed import SOURCE

FOLDER = pathlib.Path(__file__).parent


def rows_of_document():
    return re.findall(r'^\| ([a-z]+-\d+) \|', (SOURCE / 'docs/seeds.md').read_text(), re.M)


def rows_of_tests():
    """Yields the names in every @row(…) above a test function of this folder."""
    for path in FOLDER.glob('test_*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            for mark in getattr(node, 'decorator_list', []):
                if isinstance(mark, ast.Call) and getattr(mark.func, 'id', '') == 'row':
                    assert node.name.startswith('test_'), f'{path.name}: {node.name} would never run'
                    yield from (word.value for word in mark.args)


def test_every_row_has_a_test_and_every_test_a_row():
    document, tests = rows_of_document(), list(rows_of_tests())
    assert len(document) == len(set(document)), 'a row is there twice'
    assert sorted(document) == sorted(set(tests))


def test_files_named_in_the_document_exist():
    text = (SOURCE / 'docs/seeds.md').read_text()
    links = re.findall(r'\]\((\.\./[^)]+)\)', text)
    assert links
    assert [link for link in links if not (SOURCE / 'docs' / link).exists()] == []
