#!/usr/bin/python3
# test-convert.py: `vmspool convert`: what is written anew, and what an interruption leaves
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import bz2
import gzip
import lzma
import os
import stat
import struct
import unittest

from toolcase import ToolCase, images

TEXT = b'{"page_size": 4096}'
RAW = images.RAW + bytes(range(256)) * 2000 + b'\0\x06' + struct.pack('>I', len(TEXT)) + TEXT
CALLS = 'pwrite64,write,fdatasync,fsync,ftruncate,fchmod,rename,renameat,renameat2,io_uring_enter'


class Convert(ToolCase):
    def test_each_kind(self):
        kinds = [{'order': order, 'version': version} for order in '<>' for version in (0, 1, 2)
                 if (order, version) != ('>', 0)]
        kinds += [{'fmt': 1, 'payload': gzip.compress(RAW)}, {'fmt': 2, 'payload': bz2.compress(RAW)},
                  {'fmt': 3, 'payload': lzma.compress(RAW)}]
        kinds += [{'running': 0}, {'cookie': None}, {'reserved': b'\1' * 16}, {'padding': 0}]
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        for kind in kinds:
            with self.subTest(kind):
                arguments = {'payload': RAW, 'cookie': images.COOKIE, **kind}
                old = images.image(**arguments)
                path = self.write('in', old)
                out = self.path('out')
                report = self.report('convert', path, out)
                self.assertEqual(self.read(path), old)
                was, now = self.info(path), self.info(out)
                self.assertEqual(now['notices'], [])
                self.assertEqual((now['version'], now['seal']), (2, 'valid'))
                self.assertEqual(now['payload-offset'] % 4096, 0)
                self.assertGreaterEqual(now['padding-size'], 65536)
                self.assertEqual(report['payload-digest'], now['payload-digest'])
                for key in ('format', 'was-running', 'payload-size', 'xml-size', 'cookie-size'):
                    self.assertEqual(now[key], was[key], key)
                self.assertTrue(self.read(out).endswith(arguments['payload']))
                self.assertEqual(self.run_tool('xml', 'show', out), self.run_tool('xml', 'show', path))
                self.assertIn('digest', self.report('verify', out)['checked'])
                self.assertEqual(stat.S_IMODE(os.stat(out).st_mode), 0o600)
                os.unlink(out)

    def test_room(self):
        path = self.write('a', images.image(payload=RAW, padding=0))
        long = self.write('long.xml', images.domain(inside='<title>' + 'x' * 500000 + '</title>'))
        _, err = self.run_tool('xml', 'replace', path, long, status=1)
        self.assertIn('--xml-room', err)
        os.chmod(path, 0o640)
        self.report('convert', '--xml-room=1M', path, path)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o640)
        self.assertGreaterEqual(self.info(path)['padding-size'], 1 << 20)
        self.run_tool('xml', 'replace', path, long)
        self.assertIn('digest', self.report('verify', path)['checked'])
        self.assertTrue(self.read(path).endswith(RAW))
        for size in '16M', '1000G':
            _, err = self.run_tool('convert', f'--xml-room={size}', path, self.path('out'), status=1)
            self.assertIn('limit', err)
        self.assertEqual(sorted(os.listdir(self.directory)), ['a', 'long.xml'])

    def test_formats(self):
        """From each to each, and back; over itself, too."""
        names = ['raw', 'gzip', 'bzip2', 'xz', 'lzop', 'zstd']
        path, out, back = self.write('in', images.image(payload=RAW)), self.path('out'), self.path('back')
        for source in names:
            self.convert_to(source, path, path)
            for wanted in names:
                with self.subTest(source=source, wanted=wanted):
                    self.assertEqual(self.convert_to(wanted, path, out)['format'], wanted)
                    now = self.info(out)
                    self.assertEqual((now['format'], now['seal']), (wanted, 'valid'))
                    self.report('verify', out)
            self.convert_to('raw', out, back)
            self.assertTrue(self.read(back).endswith(RAW))
            self.assertEqual(self.info(back)['payload-size'], len(RAW))
        # With a level it is done anew, without one it is left as it is.
        self.report('convert', '--force', '--compress=zstd:1', path, out)
        small = self.report('convert', '--force', '--compress=zstd:15', out, back)
        self.assertNotEqual(small['payload-digest'], self.info(out)['payload-digest'])
        same = self.report('convert', '--force', '--compress=zstd', back, out)
        self.assertEqual(same['payload-digest'], small['payload-digest'])

    def convert_to(self, name, source, out):
        words = ['--raw'] if name == 'raw' else [f'--compress={name}']
        return self.report('convert', '--force', *words, source, out)

    def test_damaged(self):
        """A compressed state that can't be decompressed leaves nothing."""
        for payload in gzip.compress(RAW)[:-20], gzip.compress(RAW)[:5000] + bytes(1000):
            path = self.write('in', images.image(fmt=1, payload=payload))
            before = self.read(path)
            for out in self.path('out'), path:
                self.run_tool('convert', '--raw', path, out, status=3)
                self.assertEqual(os.listdir(self.directory), ['in'])
                self.assertEqual(self.read(path), before)

    def test_existing(self):
        path = self.write('in', images.image(payload=RAW))
        out = self.write('out', b'something')
        self.run_tool('convert', path, out, status=1)
        self.assertEqual(self.read(out), b'something')
        self.run_tool('convert', '--force', path, out)
        self.report('verify', out)

    def test_bad(self):
        """What is not good gets no seal, and leaves nothing behind."""
        for data, code in ((images.image(payload=RAW[:-1]), 'image-cut'),
                           (images.image(payload=b'x' + RAW), 'image-corrupt'),
                           (images.image(payload=RAW, sealed=images.seal(len(RAW), b'x' * 16)),
                            'image-corrupt'),
                           (images.image(fmt=6, payload=RAW), 'image-unsupported'),
                           (images.image(fmt=9, payload=RAW), 'image-unsupported')):
            path = self.write('in', data)
            for out in self.path('out'), path:
                report = self.report('convert', path, out, status=3)
                self.assertEqual(report['error']['code'], code)
                self.assertEqual(os.listdir(self.directory), ['in'])
                self.assertEqual(self.read(path), data)

    def test_killed(self):
        """Over itself: what was, or what is to be."""
        old = images.image(payload=RAW, padding=10)
        path = self.path('image')

        def reset():
            for name in os.listdir(self.directory):
                os.unlink(self.path(name))
            self.write('image', old)

        def check(ended):
            data = self.read(path)
            if ended or data != old:
                self.assertIn('digest', self.report('verify', path)['checked'])

        self.killed_at_each_step('convert', path, path, calls=CALLS, reset=reset, check=check)

    def test_killed_new(self):
        """To a new file: nothing, something marked incomplete or with no mark, or all of it."""
        path = self.write('in', images.image(payload=RAW))
        out = self.path('out')

        def reset():
            for name in os.listdir(self.directory):
                if name != 'in':
                    os.unlink(self.path(name))

        def check(ended):
            if ended:
                self.report('verify', out)
            elif os.path.exists(out):
                data = self.read(out)
                if data.startswith(images.COMPLETE):
                    self.report('verify', out)
            self.assertEqual(self.read(path), images.image(payload=RAW))

        self.killed_at_each_step('convert', path, out, calls=CALLS, reset=reset, check=check)

    def test_usage(self):
        path = self.write('a', images.image(payload=RAW))
        for args in [], [path], [path, path, path], ['--xml-room=x', path, path], \
                ['--xml-room=0', path, path], ['--raw', '--compress=xz', path, path], \
                ['--compress=raw', path, path], ['--compress=zstd:99', path, path]:
            self.run_tool('convert', *args, status=2)


if __name__ == '__main__':
    unittest.main()
