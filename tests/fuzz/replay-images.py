#!/usr/bin/python3
# replay-images.py: runs a fuzz target's replay over the images of make-images.py and the folders given
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""replay-images.py REPLAY MAKE-IMAGES [CORPUS…]"""

import subprocess
import sys
import tempfile

replay, make_images, *corpora = sys.argv[1:]
with tempfile.TemporaryDirectory(prefix='vsptest-') as directory:
    subprocess.run([sys.executable, make_images, directory], check=True, timeout=60)
    sys.exit(subprocess.run([replay, directory, *corpora], timeout=300, check=False).returncode)
