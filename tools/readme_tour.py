#!/usr/bin/env python3
"""Prints README.md's commands and files as one bash script, in their order, as a reader would type them.

readme_tour.py [--install] [--kubectl] <README.md: prints the script. It stops at the first command that fails, and must be started in
an empty folder; with --install in the clone, and then the commands that build come first. The blocks of kubectl are left out unless --kubectl.
"""
import re
import sys

BLOCK = re.compile(r'^```(\w+)(?: (\S+))?\n(.*?)^```$', re.M | re.S)
TWO_COMMANDS = re.compile(r'^make (demo|test)\b', re.M)  # these are run by themselves
END = 'END_OF_FILE'


def blocks(text):
    """Returns [(language, file name or '', content)] for each fenced block."""
    return BLOCK.findall(text)


def build_blocks(text):
    return [content for language, _, content in blocks(text) if language == 'sh' and content.startswith('make')]


def write_file(name, content):
    return f"cat >{name} <<'{END}'\n{content}{END}\n"


def tour_steps(text, kubectl):
    """Yields the commands that follow the installation."""
    for language, name, content in blocks(text):
        if name:
            yield write_file(name, content)
        elif language == 'sh' and not content.startswith('make') and (kubectl or 'kubectl' not in content):
            yield content


def script(text, install=False, kubectl=False):
    steps = ['set -eux -o pipefail\n']
    if install:
        steps += [block for block in build_blocks(text) if not TWO_COMMANDS.search(block)]
        steps += ['cd "$(mktemp -d)"\n']
    return ''.join(steps + list(tour_steps(text, kubectl)))


if __name__ == '__main__':
    print(script(sys.stdin.read(), '--install' in sys.argv[1:], '--kubectl' in sys.argv[1:]), end='')
