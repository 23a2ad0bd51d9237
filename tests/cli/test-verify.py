#!/usr/bin/python3
# test-verify.py: `vmspool verify`, `seal` and `extract`
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import stat
import struct
import unittest

from toolcase import ToolCase, fingerprint, images

BODY = images.RAW + bytes(range(256)) * 5000


def described(text=b'{"page_size": 4096, "devices": [{"name": "a}\\"]"}]}', body=BODY):
    """As QEMU ends its stream."""
    return body + b'\0\x06' + struct.pack('>I', len(text)) + text


RAW = described()


class Verify(ToolCase):
    def bad(self, path, code, says):
        before = fingerprint(path)
        report = self.report('verify', path, status=3)
        self.assertEqual(report['error']['code'], code)
        self.assertIn(says, report['error']['message'])
        self.assertIn(os.path.basename(path), report['error']['message'])
        self.assertEqual(fingerprint(path), before)

    def sealed(self, payload=RAW, **arguments):
        """An image with a right digest, which is asked of the tool that copies."""
        self.write('payload', payload)
        out = self.report('copy', '--digest', '--force', self.path('payload'), self.path('copy'))
        os.unlink(self.path('copy'))
        digest = bytes.fromhex(out['digest'])
        return images.image(payload=payload, sealed=images.seal(len(payload), digest), **arguments)

    def test_good(self):
        for order in '<>':
            for version in (1, 2):
                path = self.write('a', self.sealed(order=order, version=version))
                before = fingerprint(path)
                report = self.report('verify', path)
                self.assertEqual(report['checked'], ['structure', 'start', 'end', 'length', 'digest'])
                self.assertEqual(report['payload-size'], len(RAW))
                self.assertEqual(report['payload-digest'], self.info(path)['payload-digest'])
                self.assertEqual(fingerprint(path), before)
        out, err = self.run_tool('verify', path)
        self.assertIn(b'is good', out)
        self.assertEqual(err, '')

    def test_without_seal(self):
        path = self.write('a', images.image(payload=RAW))
        self.assertEqual(self.report('verify', path)['checked'], ['structure', 'start', 'end'])
        # The description can be switched off in QEMU.
        path = self.write('a', images.image(payload=BODY + b'\0'))
        self.assertEqual(self.report('verify', path)['checked'], ['structure', 'start', 'end'])

    def test_one_byte(self):
        """Flipped anywhere in the payload."""
        good = self.sealed()
        start = len(good) - len(RAW)
        for offset in (0, 3, 4, 5000, len(RAW) // 2, len(RAW) - 60, len(RAW) - 10, len(RAW) - 1):
            data = bytearray(good)
            data[start + offset] ^= 0x10
            with self.subTest(offset):
                self.bad(self.write('a', data), 'image-corrupt', 'corrupt')

    def test_cut(self):
        """Without a seal it is the stream's own end that tells."""
        whole = images.image(payload=RAW)
        for size in (len(whole) - 1, len(whole) - 30, len(whole) - 5000, len(whole) - len(RAW) + 10):
            with self.subTest(size):
                self.bad(self.write('a', whole[:size]), 'image-cut', f'is cut at byte {size}:')

    def test_false_ends(self):
        for payload in (RAW + b'x', described(b'{"a": [}'), described(b'{}x'), described(b'["a"]'),
                        BODY + b'\0\x06\xff\xff\xff\xff{}', described()[:-1] + b'{',
                        BODY + b'\1\x06\0\0\0\2{}'):
            with self.subTest(payload[-20:]):
                self.bad(self.write('a', images.image(payload=payload)), 'image-cut', 'does not end')

    def test_formats(self):
        path = self.write('a', images.image(fmt=6, payload=images.MAGICS[6][1] + bytes(100)))
        self.assertEqual(self.report('verify', path)['checked'], ['structure', 'start'])
        for number, (name, magic) in images.MAGICS.items():
            if name != 'raw':
                path = self.write('a', images.image(fmt=number, payload=b'?' * 100))
                self.bad(path, 'image-corrupt', f'format {name}')
        self.bad(self.write('a', images.image(fmt=99)), 'image-unsupported', 'format 99')

    def test_compressed(self):
        """Decompressed to the end, also without a seal; what comes out must be a VM's state."""
        everything = ['structure', 'start', 'end', 'length', 'digest', 'decompression']
        for name in 'gzip', 'bzip2', 'xz', 'lzop', 'zstd':
            with self.subTest(name):
                path, raw = self.path(name), self.write('raw', images.image(payload=RAW))
                self.run_tool('convert', f'--compress={name}', raw, path)
                self.assertEqual(self.report('verify', path)['checked'], everything)
                whole = bytearray(self.read(path))
                whole[0x34:0x5c] = bytes(40)
                self.assertEqual(self.report('verify', self.write('a', whole))['checked'],
                                 ['structure', 'start', 'end', 'decompression'])
                report = self.report('verify', self.write('a', whole[:-20]), status=3)
                self.assertIn(report['error']['code'], ('image-cut', 'image-corrupt'))
                for payload in RAW[:-1], b'x' + RAW:
                    out = self.path('plain')
                    self.run_tool('copy', '--force', f'--compress={name}',
                                  self.write('payload', payload), out)
                    number = self.info(path)['format-number']
                    data = images.image(fmt=number, payload=self.read(out))
                    self.bad(self.write('a', data), 'image-corrupt', 'what is compressed')

    def test_partial(self):
        self.bad(self.write('a', images.image(magic=images.PARTIAL)), 'image-partial', 'incomplete')
        self.bad(self.write('a', images.image(magic=images.PARTIAL, payload=RAW)), 'image-partial',
                 'vmspool seal')

    def test_large_and_sparse(self):
        path = self.write('a', images.image(payload=images.RAW))
        os.truncate(path, 600 << 20)
        with open(path, 'ab') as file:
            file.write(described(body=b''))
        self.assertGreater(self.report('verify', path)['payload-size'], 599 << 20)


class Seal(ToolCase):
    def test_seal(self):
        for order in '<>':
            path = self.write('a', images.image(order=order, magic=images.PARTIAL, payload=RAW,
                                                cookie=images.COOKIE, reserved=b'\1' * 16))
            self.assertEqual(self.report('seal', path)['checked'], ['structure', 'start', 'end'])
            report = self.report('verify', path)
            self.assertEqual(report['checked'], ['structure', 'start', 'end', 'length', 'digest'])
            data = self.read(path)
            expected = images.image(order=order, payload=RAW, cookie=images.COOKIE,
                                    reserved=b'\1' * 16)
            self.assertEqual(data[:0x34] + bytes(40) + data[0x5c:], expected)
            self.assertEqual(data[0x34:0x38], b'VSP\1')

    def test_refused(self):
        for data, status, says in (
                (images.image(payload=RAW), 1, 'already'),
                (images.image(magic=images.PARTIAL, payload=RAW[:-1]), 3, 'not complete'),
                (images.image(magic=images.PARTIAL, payload=BODY + b'\0'), 3, 'not complete'),
                (images.image(magic=images.PARTIAL, payload=b'x' + RAW), 3, 'not complete'),
                (images.image(magic=images.PARTIAL, payload=b''), 3, 'not complete'),
                (images.image(magic=images.PARTIAL, fmt=1, payload=b'\x1f\x8b\x08'), 3, 'another')):
            path = self.write('a', data)
            _, err = self.run_tool('seal', path, status=status)
            self.assertIn(says, err)
            self.assertEqual(self.read(path), data)

    def test_killed(self):
        """Either marked and sealed, or as it was."""
        old = images.image(magic=images.PARTIAL, payload=RAW)
        path = self.path('a')

        def check(ended):
            data = self.read(path)
            self.assertIn(data[:16], (images.PARTIAL, images.COMPLETE))
            if data[:16] == images.COMPLETE:
                self.report('verify', path)
            else:
                self.assertEqual(data, old)
                self.assertFalse(ended)

        self.killed_at_each_step('seal', path, calls='pwrite64,write,fdatasync,fsync',
                                 reset=lambda: self.write('a', old), check=check)


class Extract(ToolCase):
    def setUp(self):
        super().setUp()
        self.image = self.write('image', images.image(payload=RAW, cookie=images.COOKIE))

    def test_parts(self):
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        for part, expected in (('--payload', RAW), ('--xml', images.domain()),
                               ('--cookie', images.COOKIE)):
            out = self.path('out' + part)
            report = self.report('extract', part, self.image, out)
            self.assertEqual(report['bytes-out'], len(expected))
            self.assertEqual(self.read(out), expected)
            self.assertEqual(stat.S_IMODE(os.stat(out).st_mode), 0o600)
            stdout, err = self.run_tool('extract', part, '--quiet', self.image, '-')
            self.assertEqual(stdout, expected)
            self.assertEqual(err, '')

    def test_existing(self):
        out = self.write('out', b'x' * (len(RAW) * 2))
        self.run_tool('extract', '--payload', self.image, out, status=1)
        self.run_tool('extract', '--payload', '--force', self.image, out)
        self.assertEqual(self.read(out), RAW)
        before = self.read(self.image)
        self.run_tool('extract', '--xml', '--force', self.image, self.image, status=1)
        self.assertEqual(self.read(self.image), before)

    def test_corrupt(self):
        """What does not have its digest is not left behind."""
        image = self.write('bad', images.image(payload=RAW, sealed=images.seal(len(RAW), b'x' * 16)))
        report = self.report('extract', '--payload', image, self.path('out'), status=3)
        self.assertEqual(report['error']['code'], 'image-corrupt')
        self.assertFalse(os.path.exists(self.path('out')))

    def test_no_cookie(self):
        image = self.write('none', images.image(payload=RAW))
        self.run_tool('extract', '--cookie', image, self.path('out'), status=1)
        self.assertFalse(os.path.exists(self.path('out')))

    def test_usage(self):
        for args in [], [self.image], [self.image, '-'], ['--xml', '--cookie', self.image, '-'], \
                ['--json', '--xml', self.image, '-']:
            self.run_tool('extract', *args, status=2)


if __name__ == '__main__':
    unittest.main()
