#!/usr/bin/python3
# test-xml.py: `vmspool xml`: what is shown, what an edit changes, and what an interrupted one leaves
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import stat
import subprocess
import unittest

from toolcase import ToolCase, images

RAW = images.RAW
SECRET = "<devices><graphics type='vnc' passwd='geheim'/></devices>"
WRITES = 'pwrite64,write,fdatasync,fsync,ftruncate,fchmod,rename,renameat,renameat2,ioctl'


def longer(more=3000):
    return images.domain(inside='<title>' + 'x' * more + '</title>')


class Show(ToolCase):
    def test_text(self):
        xml = images.domain(inside=SECRET)
        path = self.write('a', images.image(xml=xml))
        out, err = self.run_tool('xml', 'show', path)
        self.assertEqual(out, xml.replace(b" passwd='geheim'", b'') + b'\n')
        self.assertIn('--security-info', err)
        out, err = self.run_tool('xml', 'show', '--security-info', path)
        self.assertEqual((out, err), (xml + b'\n', ''))
        self.assertEqual(self.report('xml', 'show', path)['hidden'], 1)

    def test_full(self):
        """Half a text must not pass for one."""
        path = self.write('a', images.image())
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([os.environ['VMSPOOL'], 'xml', 'show', path],
                                  stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                                  timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertNotEqual(done.stderr, b'')

    def test_end_of_line(self):
        """A text that ends its last line is printed as it is."""
        path = self.write('a', images.image(xml=images.domain() + b'\n'))
        self.assertEqual(self.run_tool('xml', 'show', path)[0], images.domain() + b'\n')

    def test_partial(self):
        path = self.write('a', images.image(magic=images.PARTIAL))
        out, err = self.run_tool('xml', 'show', path, status=3)
        self.assertEqual(out, images.domain() + b'\n')
        self.assertIn('did not finish', err)


class Replace(ToolCase):
    def test_each_kind(self):
        """Every version, byte order and format; payload, seal and offsets stay."""
        new = self.write('new.xml', longer())
        sealed = images.seal(len(RAW), bytes(range(16)))
        kinds = [{'order': order, 'version': version} for order in '<>' for version in (0, 1, 2)
                 if (order, version) != ('>', 0)]  # of zero nobody can tell the byte order
        kinds += [{'fmt': fmt, 'payload': magic + bytes(len(RAW) - len(magic))}
                  for fmt, (_, magic) in images.MAGICS.items()]
        kinds += [{'fmt': 99}, {'reserved': b'\1' * 16}, {'cookie': None}]
        for kind in kinds:
            with self.subTest(kind):
                arguments = {'cookie': images.COOKIE, 'padding': 65536, 'sealed': sealed, **kind}
                path = self.write('image', images.image(**arguments))
                before = self.info(path)
                report = self.report('xml', 'replace', '--paused', path, new)
                self.assertIs(report['changed'], True)
                after = self.info(path)
                self.assertIs(after['was-running'], False)
                self.assertEqual(after['notices'], before['notices'])
                for key in before.keys() - {'was-running', 'xml-size', 'cookie-offset',
                                            'padding-offset', 'padding-size'}:
                    self.assertEqual(after[key], before[key], key)
                expected = images.image(**{**arguments, 'xml': longer(), 'running': 0,
                                           'padding': 65536 + before['xml-size'] - after['xml-size']})
                self.assertEqual(self.read(path), expected)

    def test_stdin(self):
        path = self.write('a', images.image(padding=65536))
        self.run_tool('xml', 'replace', path, '-', text=longer())
        self.assertEqual(self.run_tool('xml', 'show', path)[0], longer() + b'\n')

    def test_refused(self):
        path = self.write('a', images.image(padding=4000))
        before = self.read(path)
        for xml, says in ((b'<domain', 'well-formed'), (b'', 'empty'), (b'a\0b', 'not a text'),
                          (images.domain(name='other'), "'other'"),
                          (images.domain(memory=''), 'memory'),
                          (images.domain().replace(images.UUID.encode(), b'x'), 'UUID'),
                          (longer(5000), '--xml-room'), (b'x' * (17 << 20), 'limit')):
            new = self.write('new.xml', xml)
            _, err = self.run_tool('xml', 'replace', path, new, status=1)
            self.assertIn(says, err)
            self.assertEqual(self.read(path), before)
        self.assertEqual(os.listdir(self.directory).sort(), ['a', 'new.xml'].sort())
        new = self.write('new.xml', images.domain(name='other'))
        self.run_tool('xml', 'replace', '--force', path, new)
        self.assertEqual(self.info(path)['domain-name'], 'other')

    def test_attributes_stay(self):
        path = self.write('a', images.image(padding=65536))
        os.chmod(path, 0o640)
        link = self.path('link')
        os.symlink('a', link)
        try:
            os.setxattr(path, 'user.test', b'value')
        except OSError:
            pass
        new = self.write('new.xml', longer())
        self.run_tool('xml', 'replace', link, new)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o640)
        if os.listxattr(self.directory) or 'user.test' in os.listxattr(path):
            self.assertEqual(os.getxattr(path, 'user.test'), b'value')
        self.assertEqual(self.info(path)['xml-size'], len(longer()) + 1)

    def test_sparse(self):
        """Holes of an image stay holes in the copy."""
        path = self.write('a', images.image(padding=65536))
        os.truncate(path, 64 << 20)
        self.run_tool('xml', 'replace', path, self.write('new.xml', longer()))
        self.assertEqual(os.stat(path).st_size, 64 << 20)
        self.assertLess(os.stat(path).st_blocks * 512, 1 << 20)

    def killed(self, *options):
        old = images.image(xml=images.domain(inside='<title>old</title>'), cookie=images.COOKIE,
                           padding=65536, payload=RAW * 200)
        new = self.write('new.xml', longer())
        path = self.path('image')
        seen = []

        def reset():
            for name in os.listdir(self.directory):
                if name != 'new.xml':
                    # What is left of a copy is nobody else's to read.
                    if name != 'image':
                        mode = os.stat(self.path(name)).st_mode
                        self.assertIn(stat.S_IMODE(mode), (0o600, 0o644))
                    os.unlink(self.path(name))
            self.write('image', old)

        def check(ended):
            data = self.read(path)
            if ended:
                self.assertIn(b'x' * 3000, data)
            seen.append('old' if data == old else
                        'new' if b'x' * 3000 in data and data.startswith(images.COMPLETE) else
                        'partial' if data.startswith(images.PARTIAL) else 'mixed')
            self.assertTrue(data.endswith(RAW * 200))
            if seen[-1] == 'new':
                self.assertEqual(self.info(path)['cookie-size'], len(images.COOKIE) + 1)

        self.killed_at_each_step('xml', 'replace', *options, path, new, calls=WRITES, reset=reset,
                                 check=check)
        return seen

    def test_killed(self):
        self.assertLessEqual(set(self.killed()), {'old', 'new'})

    def test_killed_in_place(self):
        """Marked incomplete from the first change to the last."""
        seen = self.killed('--in-place')
        self.assertLessEqual(set(seen), {'old', 'partial', 'new'})
        self.assertIn('partial', seen)

    def test_run_state_is_one_write(self):
        path = self.write('a', images.image())
        inode = os.stat(path).st_ino
        self.assertEqual(self.report('xml', 'replace', '--paused', path)['method'], 'in-place')
        self.assertEqual(self.read(path), images.image(running=0))
        self.assertEqual(os.stat(path).st_ino, inode)
        self.assertIs(self.report('xml', 'replace', '--paused', path)['changed'], False)


class Edit(ToolCase):
    def edit(self, script, *options, status=0, name='VISUAL'):
        self.write('editor', b'#!/bin/sh\n' + script.encode())
        os.chmod(self.path('editor'), 0o755)
        environment = {'VISUAL': '', 'EDITOR': '/bin/false', 'TMPDIR': self.directory,
                       name: self.path('editor') + ' --option'}
        before = os.umask(0)
        try:
            return self.run_tool('xml', 'edit', *options, self.path('image'), status=status,
                                 env=environment)
        finally:
            os.umask(before)

    def setUp(self):
        super().setUp()
        self.write('image', images.image(xml=images.domain(inside=SECRET), padding=65536))

    def test_edit(self):
        """The editor gets its own options first, and the text with what is secret."""
        self.edit('[ "$1" = --option ] && grep -q geheim "$2" && sed -i "s/geheim/neu/" "$2"')
        out, _ = self.run_tool('xml', 'show', '--security-info', self.path('image'))
        self.assertIn(b"passwd='neu'", out)
        self.assertEqual(sorted(os.listdir(self.directory)), ['editor', 'image'])

    def test_private(self):
        """Nobody else can read the text, whatever the umask."""
        self.edit('stat -c %a "$2" "$(dirname "$2")" > "$(dirname "$0")/modes"; cp "$2" "$2~"')
        self.assertEqual(self.read(self.path('modes')), b'600\n700\n')
        self.assertEqual(sorted(os.listdir(self.directory)), ['editor', 'image', 'modes'])

    def test_nothing_changed(self):
        before = self.read(self.path('image'))
        out, _ = self.edit('echo >> "$2"', name='VISUAL')
        self.assertIn(b'Nothing to change', out)
        self.assertEqual(self.read(self.path('image')), before)

    def test_refused(self):
        """Without a terminal nobody can be asked: the text is kept."""
        before = self.read(self.path('image'))
        _, err = self.edit('echo "<broken" > "$2"', status=1)
        self.assertIn('is kept in', err)
        kept = err.split("'")[1]
        self.assertEqual(self.read(kept), b'<broken\n')
        self.assertEqual(self.read(self.path('image')), before)
        os.unlink(kept)
        os.rmdir(os.path.dirname(kept))

    def test_editor_fails(self):
        self.edit('exit 3', status=1)
        self.assertEqual(sorted(os.listdir(self.directory)), ['editor', 'image'])

    def test_run_state(self):
        self.edit('true', '--paused', name='EDITOR')
        self.assertIs(self.info(self.path('image'))['was-running'], False)


class Usage(ToolCase):
    def test_wrong(self):
        path = self.write('a', images.image())
        for args in [], ['show'], ['frobnicate', path], ['show', path, path], ['replace', path], \
                ['show', '--force', path], ['edit', '--security-info', path], ['edit', path, path], \
                ['replace', '--running', '--paused', path]:
            out, err = self.run_tool('xml', *args, status=2)
            self.assertEqual(out, b'')
            self.assertNotEqual(err, '')
        self.assertEqual(self.read(path), images.image())


if __name__ == '__main__':
    unittest.main()
