# toolcase.py: a test case that runs the tool on made images
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import hashlib
import importlib.util
import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import unittest

VMSPOOL = os.environ['VMSPOOL']
MAKE_IMAGES = pathlib.Path(__file__).parent.parent / 'data/make-images.py'
# An enormous length in a header must not become an enormous allocation.
MEMORY_LIMIT = 512 << 20
TIME_LIMIT = 60

_spec = importlib.util.spec_from_file_location('make_images', MAKE_IMAGES)
images = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(images)


def limit_memory():
    if not os.environ.get('VSP_SANITIZED'):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


def fingerprint(path):
    """All of a file that a reader must leave alone."""
    st = os.stat(path)
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        digest.update(file.read(32 << 20))
    return (digest.digest(), st.st_size, st.st_mtime_ns, st.st_ctime_ns, st.st_mode, st.st_ino,
            st.st_blocks)


class ToolCase(unittest.TestCase):
    def setUp(self):
        # /tmp may be in memory, and behave unlike a disk.
        directory = tempfile.TemporaryDirectory(prefix='vsptest-', dir='/var/tmp')
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, data):
        path = self.path(name)
        with open(path, 'wb') as file:
            file.write(data)
        return path

    def read(self, path):
        with open(path, 'rb') as file:
            return file.read()

    def run_tool(self, *args, status=0, env=None, prefix=(), stdin=subprocess.DEVNULL, text=None,
                 limit=False):
        """stdout and stderr. A signal, a hang or another exit status fails the test; None takes any."""
        environment = dict(os.environ, LC_ALL='C.UTF-8', **(env or {}))
        more = {'input': text} if text is not None else {'stdin': stdin}
        done = subprocess.run([*prefix, VMSPOOL, *args], capture_output=True, timeout=TIME_LIMIT,
                              env=environment, check=False,
                              preexec_fn=limit_memory if limit else None, **more)
        self.assertNotIn(b'Sanitizer', done.stderr, done.stderr.decode())
        self.status = done.returncode
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr.decode())
        return done.stdout, done.stderr.decode()

    def report(self, *args, **more):
        out, _ = self.run_tool(*args, '--json', **more)
        self.assertEqual(out.count(b'\n'), 1)
        return json.loads(out)

    def info(self, path):
        return self.report('info', path)

    def killed_at_each_step(self, *command, calls, reset, check):
        """Kills the tool (or its helper) at the first, second, ... of the system calls @calls. After
        each, @check(ended) looks at what is there; the last round, nothing is killed any more."""
        if not shutil.which('strace'):
            self.skipTest('strace is not installed')
        kills = 0
        for call in calls.split(','):
            for n in range(1, 200):
                reset()
                trace = ['strace', '-f', '-o', '/dev/null', '-e', f'trace={call}',
                         '-e', f'inject={call}:signal=KILL:when={n}']
                self.run_tool(*command, prefix=trace, status=None)
                check(self.status == 0)
                if self.status == 0:
                    break
                kills += 1
            else:
                self.fail('it never came to its end')
        self.assertGreater(kills, 2)
