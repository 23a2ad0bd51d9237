#!/usr/bin/python3
# test-info.py: `vmspool info` over every image of make-images.py, and over paths that are no image
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test-info.py MAKE-IMAGES

VMSPOOL is the command to test. With VSP_SANITIZED set, its memory is not limited (a sanitizer
reserves terabytes of address space).
"""

import hashlib
import json
import os
import resource
import socket
import stat
import subprocess
import sys
import tempfile
import unicodedata
import unittest

VMSPOOL = os.environ['VMSPOOL']
MAKE_IMAGES = sys.argv.pop(1)
MANUAL = os.path.join(os.path.dirname(MAKE_IMAGES), '../../man/vmspool-info.1.rst')
# An enormous length in a header must not become an enormous allocation.
MEMORY_LIMIT = 512 << 20
TIME_LIMIT = 60


def limit_memory():
    if not os.environ.get('VSP_SANITIZED'):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


def run(*args, prefix=(), env=None, cwd=None):
    """Exit code, stdout and stderr; a signal or a hang fails the test."""
    environment = dict(os.environ, LC_ALL='C.UTF-8', **(env or {}))
    done = subprocess.run([*prefix, VMSPOOL, *args], stdin=subprocess.DEVNULL, cwd=cwd,
                          capture_output=True, timeout=TIME_LIMIT, env=environment,
                          preexec_fn=limit_memory, check=False)
    assert done.returncode >= 0, f'killed by signal {-done.returncode}: {done.stderr!r}'
    assert b'Sanitizer' not in done.stderr, done.stderr.decode()
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def fingerprint(path):
    """All of a file that a reader must leave alone."""
    st = os.stat(path)
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        digest.update(file.read(32 << 20))
    return (digest.digest(), st.st_size, st.st_mtime_ns, st.st_ctime_ns, st.st_mode, st.st_ino,
            st.st_blocks)


def unprintable(text):
    return [c for c in text if c != '\n' and unicodedata.category(c) in ('Cc', 'Cf', 'Cs', 'Co')]


class InfoTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix='vsptest-')
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def refused(self, path, code, exit_code=3, prefix=()):
        status, out, err = run('info', '--json', path, prefix=prefix)
        self.assertEqual(status, exit_code, err)
        report = json.loads(out)
        self.assertIs(report['ok'], False)
        self.assertEqual(report['error']['code'], code)
        self.assertEqual(err, 'vmspool: ' + report['error']['message'] + '\n')
        return report['error']['message']


class Corpus(InfoTest):
    def setUp(self):
        super().setUp()
        subprocess.run([sys.executable, MAKE_IMAGES, self.directory], check=True,
                       timeout=TIME_LIMIT)
        with open(self.path('manifest.json'), encoding='utf-8') as file:
            self.cases = json.load(file)

    def test_json(self):
        mark = self.path('mark')
        for case in self.cases:
            with self.subTest(case['file']):
                path = self.path(case['file'])
                before = fingerprint(path)
                status, out, err = run('info', '--json', path, env={'VSP_TEST_MARK': mark})
                self.assertEqual(status, case['exit'], err)
                self.assertEqual(out.count('\n'), 1)
                self.assertEqual(unprintable(out.replace('\u202e', '')), [])
                report = json.loads(out)
                self.assertIs(report['ok'], case['code'] is None)
                for key, value in case['report'].items():
                    self.assertEqual(report.get(key), value, key)
                if case['notices'] is not None:
                    self.assertEqual(len(report['notices']), case['notices'], report['notices'])
                if case['code']:
                    self.assertEqual(report['error']['code'], case['code'])
                    self.assertIn(case['says'], report['error']['message'])
                    self.assertEqual(err, 'vmspool: ' + report['error']['message'] + '\n')
                    self.assertIn(case['file'], err)
                else:
                    self.assertEqual(err, '')
                self.assertEqual(fingerprint(path), before)
                self.assertFalse(os.path.exists(mark), 'the recorded command was run')

    def test_text(self):
        for case in self.cases:
            with self.subTest(case['file']):
                path = self.path(case['file'])
                before = fingerprint(path)
                status, out, err = run('info', path)
                self.assertEqual(status, case['exit'], err)
                self.assertEqual(unprintable(out + err), [])
                # What opened is shown, a partial image too.
                self.assertEqual(bool(out), not case['code'] or bool(case['report']))
                self.assertEqual(err.count('\n'), 1 if case['code'] else 0)
                for line in out.splitlines():
                    self.assertRegex(line, r'^\S[^:]*: +\S')
                self.assertEqual(fingerprint(path), before)

    def test_causes_differ(self):
        """Empty, partial, foreign, cut, corrupt and unsupported images are told apart."""
        codes = {case['code'] for case in self.cases if case['code']}
        self.assertEqual(codes, {'image-empty', 'image-partial', 'image-foreign', 'image-cut',
                                 'image-corrupt', 'image-unsupported'})

    def test_manual(self):
        """vmspool-info(1) has every key and every code."""
        with open(MANUAL, encoding='utf-8') as file:
            manual = file.read()
        for case in self.cases:
            report = json.loads(run('info', '--json', self.path(case['file']))[1])
            for key in report.keys() - {'ok', 'error'}:
                self.assertIn(f'**{key}**', manual)
            if case['code']:
                self.assertIn(f"``{case['code']}``", manual)

    def test_read_only(self):
        path = self.path('good.img')
        os.chmod(path, 0o400)
        self.assertEqual(run('info', path)[0], 0)


class Paths(InfoTest):
    def test_missing(self):
        self.assertIn('No such file', self.refused(self.path('none'), 'not-found', 1))
        self.assertIn('Not a directory', self.refused('/dev/null/x', 'not-found', 1))

    def test_directory(self):
        self.assertIn('directory', self.refused(self.directory, 'image-foreign'))

    def test_fifo(self):
        os.mkfifo(self.path('fifo'))
        self.assertIn('pipe', self.refused(self.path('fifo'), 'image-foreign'))
        os.symlink('fifo', self.path('link'))
        self.assertIn('pipe', self.refused(self.path('link'), 'image-foreign'))

    def test_socket(self):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(self.path('socket'))
            self.assertIn('socket', self.refused(self.path('socket'), 'image-foreign'))

    def test_devices(self):
        for path in '/dev/null', '/dev/zero', '/dev/full', '/dev/urandom', '/dev/tty':
            if os.path.exists(path) and stat.S_ISCHR(os.stat(path).st_mode):
                self.assertIn('device', self.refused(path, 'image-foreign'))

    def test_proc(self):
        """A file without a size is not read."""
        self.refused('/proc/self/mem', 'image-empty')
        self.refused('/proc/cpuinfo', 'image-empty')

    def test_unreadable(self):
        with open(self.path('secret'), 'wb') as file:
            file.write(b'x' * 200)
        os.chmod(self.path('secret'), 0)
        # To root it is readable, unless root has no capabilities.
        prefix = ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] if os.geteuid() == 0 else []
        message = self.refused(self.path('secret'), 'access', 1, prefix)
        self.assertIn('Permission denied', message)

    def test_hostile_name(self):
        path = self.path('\033[2J\u009b\n\udcff')
        with open(path, 'wb') as file:
            file.write(b'junk')
        for args in ['info', path], ['info', '--json', path]:
            status, out, err = run(*args)
            self.assertEqual(status, 3)
            self.assertEqual(unprintable(out + err), [])
            self.assertEqual(err.count('\n'), 1)

    def test_name_like_option(self):
        with open(self.path('--json'), 'wb') as file:
            file.write(b'junk')
        status, out, err = run('info', '--', '--json', cwd=self.directory)
        self.assertEqual(status, 3, err)
        self.assertEqual(out, '')
        self.assertIn('--json', err)


class Usage(InfoTest):
    def test_wrong(self):
        for args in [], ['a', 'b'], ['--no-such-option', 'x']:
            status, out, err = run('info', *args)
            self.assertEqual(status, 2)
            self.assertEqual(out, '')
            self.assertNotEqual(err, '')

    def test_help(self):
        status, out, err = run('info', '--help')
        self.assertEqual((status, err), (0, ''))
        self.assertIn('--json', out)


if __name__ == '__main__':
    unittest.main()
