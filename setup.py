"""Compiles libmuster into the extension muster._muster; everything else is in pyproject.toml."""
import glob
import os
import platform
import re

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

VERSION = re.search(r'project\(muster VERSION (\S+)', open('CMakeLists.txt').read()).group(1)
KERNELS = {  # the flags of src/comm/CMakeLists.txt
    'reduce_plain.c': ['-O3', '-ffp-contract=off'],
    'reduce_avx2.c': ['-O3', '-ffp-contract=off', '-mavx2'],
    'reduce_avx512.c': ['-O3', '-ffp-contract=off', '-mavx512f', '-mavx512bw', '-mavx512vl', '-mavx512dq',
                        '-mprefer-vector-width=512'],
}
X86 = platform.machine() in ('x86_64', 'AMD64')


def sources():
    """libmuster's and the extension's, without tests and without kernels of other machines."""
    folders = [f'src/{name}' for name in ('core', 'schedule', 'shard', 'wire', 'commit', 'comm', 'client')]
    folders.append('python/muster/native')
    found = [name for folder in folders for name in glob.glob(f'{folder}/**/*.c', recursive=True)]
    return sorted(name for name in found if not name.endswith('_test.c') and (X86 or not re.search(r'_avx\w*\.c$', name)))


class Build(build_ext):
    """One file, one set of flags: the vector kernels need their own."""

    def build_extensions(self):
        compile_one = self.compiler._compile

        def compile_with_flags(target, source, ext, flags, *rest):
            return compile_one(target, source, ext, flags + KERNELS.get(source.rsplit('/', 1)[-1], []), *rest)
        self.compiler._compile = compile_with_flags
        super().build_extensions()


class Modules(build_py):
    """The modules, and beside them the line that does for an installed wheel what sitecustomize.py does under
    `muster run`: torch 1.13 knows no entry points. Nothing is imported unless the environment asks for a backend."""

    def run(self):
        super().run()
        self.copy_file('python/muster.pth', os.path.join(self.build_lib, 'muster.pth'))


setup(
    version=VERSION,
    cmdclass={'build_ext': Build, 'build_py': Modules},
    options={'bdist_wheel': {'py_limited_api': 'cp310'}},
    ext_modules=[Extension(
        'muster._muster', sources(), include_dirs=['include', 'src'], py_limited_api=True,
        define_macros=[('_GNU_SOURCE', None)],
        extra_compile_args=['-std=gnu17', '-O2', '-fvisibility=hidden', '-fno-strict-aliasing'],
        extra_link_args=['-pthread', '-Wl,-z,nodelete'])])
