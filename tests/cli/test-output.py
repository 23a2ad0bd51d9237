#!/usr/bin/python3
# test-output.py: whatever a name holds, messages are one printable line and JSON is JSON
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import subprocess
import unittest

VMSPOOL = os.environ['VMSPOOL'].encode()
# No UTF-8, and what clears a terminal.
NAME = b'/nowhere/no\xff\x1b[2Jx\n'


def run(*args):
    environment = dict(os.environ, LC_ALL='C.UTF-8')
    done = subprocess.run([VMSPOOL, *args], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


class Output(unittest.TestCase):
    def printable(self, text):
        self.assertTrue(text.endswith('\n'))
        for line in text.splitlines():
            self.assertTrue(line.isprintable(), repr(line))

    def test_failure(self):
        for command in [[b'copy', NAME, b'/dev/null'], [b'info', NAME],
                        [b'restore', NAME, b'--', b'true'],
                        [b'save', b'--qmp', NAME, b'/nowhere/x'], [b'dump', b'--qmp', NAME, b'x']]:
            status, out, err = run(*command)
            self.assertEqual((status, out), (1, b''), command)
            self.printable(err)
            self.assertEqual(err.count('\n'), 1)

            # A name that is no text made the report fail, and the tool with it.
            status, out, err = run(command[0], b'--json', *command[1:])
            self.assertEqual(status, 1, command)
            self.assertIs(json.loads(out)['ok'], False)
            self.printable(err)

    def test_usage(self):
        status, out, err = run(b'\x1b[2J')
        self.assertEqual((status, out), (2, b''))
        self.printable(err)


if __name__ == '__main__':
    unittest.main()
