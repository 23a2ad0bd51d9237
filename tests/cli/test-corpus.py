#!/usr/bin/python3
# test-corpus.py: every command that takes an image, over every bad image of make-images.py
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""No image makes a command crash, hang, take much memory or touch the file; each gives exit status 3 and
the message that is its own."""

import json
import os
import subprocess
import sys
import unittest

from toolcase import MAKE_IMAGES, TIME_LIMIT, ToolCase, fingerprint, images

# What each does, with {} for the image and NEW for an XML.
COMMANDS = [
    ['xml', 'show', '{}'],
    ['xml', 'replace', '--force', '{}', 'NEW'],
    ['xml', 'replace', '--force', '--in-place', '--paused', '{}', 'NEW'],
    ['xml', 'edit', '{}'],
    ['verify', '{}'],
    ['convert', '{}', 'OUT'],
    ['convert', '{}', '{}'],
    ['seal', '{}'],
    ['extract', '--payload', '{}', 'OUT'],
    ['extract', '--xml', '{}', 'OUT'],
    ['extract', '--cookie', '{}', 'OUT'],
]


class Corpus(ToolCase):
    def setUp(self):
        super().setUp()
        subprocess.run([sys.executable, MAKE_IMAGES, self.directory], check=True,
                       timeout=TIME_LIMIT)
        with open(self.path('manifest.json'), encoding='utf-8') as file:
            self.cases = json.load(file)

    def test_bad(self):
        new = self.write('new.xml', images.domain())
        for case in self.cases:
            if not case['code']:
                continue
            path = self.path(case['file'])
            before = fingerprint(path)
            names = sorted(os.listdir(self.directory))
            for command in COMMANDS:
                with self.subTest(file=case['file'], command=command):
                    words = [{'{}': path, 'NEW': new, 'OUT': self.path('out')}.get(word, word) for word in command]
                    out, err = self.run_tool(*words, '--json', status=3, limit=True,
                                             env={'EDITOR': '/bin/true', 'VISUAL': ''})
                    report = json.loads(out)
                    self.assertEqual(report['error']['code'], case['code'])
                    self.assertIn(case['says'], report['error']['message'])
                    self.assertEqual(err.count('\n'), 1)
                    self.assertEqual(fingerprint(path), before)
                    self.assertEqual(sorted(os.listdir(self.directory)), names)


if __name__ == '__main__':
    unittest.main()
