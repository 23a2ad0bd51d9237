#!/usr/bin/python3
# make-images.py: save images, good and bad, and what must be said of each
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""make-images.py DIRECTORY

Writes NAME.img for each case into DIRECTORY, and manifest.json, which has for each case:

  file    the name of the image
  exit    exit code of `vmspool info`
  code    "error": {"code": ...} of `vmspool info --json`; null if it succeeds
  says    what the message on stderr must contain, in the C locale
  report  keys of the JSON and their values; each must be there
  notices how many notices there are; null where it does not matter

The bytes are put together here from vmspool-save-image(5), not by vmspool.
"""

import json
import os
import struct
import sys

HEADER = 92
COMPLETE = b'LibvirtQemudSave'
PARTIAL = b'LibvirtQemudPart'
NAMESPACE = 'urn:vmspool:domain:1.0'
UUID = '2ec0b2a6-5a0c-4a4f-9f9c-3d8a8a2f6b11'
COOKIE = b'<cookie><cpu mode="custom"/></cookie>'
RAW = b'QEVM\0\0\0\x03' + bytes(range(256)) * 4
LIMIT = 16 << 20

MAGICS = {
    0: ('raw', b'QEVM\0\0\0\x03'),
    1: ('gzip', b'\x1f\x8b\x08'),
    2: ('bzip2', b'BZh9'),
    3: ('xz', b'\xfd7zXZ\0'),
    4: ('lzop', b'\x89LZO\0\r\n\x1a\n'),
    5: ('zstd', b'\x28\xb5\x2f\xfd'),
    6: ('sparse', b'QEVM\0\0\0\x03'),
}


def domain(name='guest', memory='<memory unit="MiB">64</memory>', inside=''):
    return (f'<domain type="kvm"><name>{name}</name><uuid>{UUID}</uuid>{memory}'
            f'<vcpu>1</vcpu><os><type arch="x86_64" machine="pc">hvm</type></os>'
            f'<devices><emulator>/bin/false</emulator></devices>{inside}</domain>').encode()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def seal(length, digest=None, version=1, flags=None):
    flags = (1 if digest else 0) if flags is None else flags
    body = b'VSP' + bytes([version]) + struct.pack('<IQ16sI', flags, length, digest or b'', 0)
    return body + struct.pack('<I', crc32c(body))


def image(magic=COMPLETE, order='<', version=2, running=1, fmt=0, xml=None, cookie=None,
          padding=64, payload=RAW, reserved=bytes(16), sealed=bytes(40), data_len=None,
          cookie_offset=None):
    xml = domain() if xml is None else xml
    data = xml + b'\0'
    if cookie is not None:
        if cookie_offset is None:
            cookie_offset = len(data)
        data += cookie + b'\0'
    data += bytes(padding)
    header = magic + struct.pack(order + '5I', version,
                                 len(data) if data_len is None else data_len,
                                 running, fmt, cookie_offset or 0)
    return header + reserved + sealed + data + payload


class Cases:
    def __init__(self, directory):
        self.directory = directory
        self.cases = []

    def add(self, name, data, code=None, says='', report=None, notices=None, size=None):
        path = os.path.join(self.directory, name + '.img')
        with open(path, 'wb') as file:
            file.write(data)
            if size is not None:
                file.truncate(size)
        self.cases.append({
            'file': name + '.img',
            'exit': 3 if code else 0,
            'code': code,
            'says': says,
            'report': report or {},
            'notices': notices,
        })

    def write_manifest(self):
        with open(os.path.join(self.directory, 'manifest.json'), 'w', encoding='utf-8') as file:
            json.dump(self.cases, file, indent=1)


def add_good(cases):
    xml = domain()
    used = HEADER + len(xml) + 1
    cases.add('good', image(cookie=COOKIE), notices=0, report={
        'version': 2, 'byte-order': 'little', 'complete': True, 'was-running': True,
        'format': 'raw', 'format-number': 0, 'header-size': HEADER,
        'data-size': len(xml) + 1 + len(COOKIE) + 1 + 64,
        'xml-offset': HEADER, 'xml-size': len(xml) + 1,
        'cookie-offset': used, 'cookie-size': len(COOKIE) + 1,
        'padding-offset': used + len(COOKIE) + 1, 'padding-size': 64,
        'payload-offset': used + len(COOKIE) + 1 + 64, 'payload-size': len(RAW),
        'payload-plausible': True, 'seal': 'none',
        'domain-name': 'guest', 'domain-uuid': UUID, 'domain-memory': 64 << 20,
    })
    cases.add('no-cookie', image(), notices=0, report={
        'cookie-size': 0, 'padding-offset': used, 'padding-size': 64,
        'payload-offset': used + 64})
    cases.add('no-padding', image(padding=0), notices=0, report={'padding-size': 0})
    cases.add('empty-cookie-area', image(padding=0, cookie_offset=len(xml) + 1), notices=0,
              report={'cookie-size': 0})
    cases.add('paused', image(running=0), notices=0, report={'was-running': False})
    cases.add('no-memory', image(xml=domain(memory='')), notices=0)
    cases.add('payload-at-1m', image(padding=(1 << 20) - used), notices=0,
              report={'payload-offset': 1 << 20})
    for version in (0, 1):
        cases.add(f'version-{version}', image(version=version), notices=0,
                  report={'version': version, 'format': 'raw'})
    cases.add('version-1-with-format', image(version=1, fmt=1), notices=1,
              report={'format': 'raw', 'format-number': 1})
    for order, name in ('<', 'little'), ('>', 'big'):
        cases.add(f'{name}-endian', image(order=order, cookie=COOKIE, fmt=0), notices=0, report={
            'version': 2, 'byte-order': name, 'was-running': True,
            'cookie-size': len(COOKIE) + 1, 'payload-size': len(RAW)})
    cases.add('big-endian-version-1', image(order='>', version=1), notices=0,
              report={'version': 1, 'byte-order': 'big'})
    for number, (name, magic) in MAGICS.items():
        cases.add(f'format-{name}', image(fmt=number, payload=magic + bytes(100)), notices=0,
                  report={'format': name, 'format-number': number, 'payload-plausible': True})
        cases.add(f'format-{name}-but-not', image(fmt=number, payload=b'?' * 100), notices=1,
                  report={'format': name, 'payload-plausible': False})
    for number in (7, 99, 0xffffffff):
        cases.add(f'format-{number}', image(fmt=number), notices=1,
                  report={'format': 'unknown', 'format-number': number})


def add_sealed(cases):
    digest = bytes(range(16))
    good = seal(len(RAW), digest)
    cases.add('sealed', image(sealed=good), notices=0, report={
        'seal': 'valid', 'payload-digest': digest.hex(), 'payload-size': len(RAW)})
    cases.add('sealed-no-digest', image(sealed=seal(len(RAW))), notices=0,
              report={'seal': 'valid'})
    cases.add('sealed-big-endian', image(order='>', sealed=good), notices=0,
              report={'seal': 'valid', 'payload-digest': digest.hex()})
    for name, bad in (
            ('crc', good[:20] + b'\xff' + good[21:]),
            ('version', seal(len(RAW), digest, version=2)),
            ('flags', seal(len(RAW), digest, flags=5)),
            ('foreign', b'\1' * 40)):
        cases.add(f'seal-{name}', image(sealed=bad), notices=1,
                  report={'seal': 'ignored', 'payload-size': len(RAW)})
    cases.add('seal-cut', image(sealed=seal(len(RAW)), payload=RAW[:-1]), 'image-cut',
              'by its seal it ends at')
    cases.add('seal-huge', image(sealed=seal(2**64 - 1)), 'image-cut', 'is cut at byte')
    cases.add('seal-longer', image(sealed=seal(len(RAW)), payload=RAW + b'x'), 'image-corrupt',
              'by its seal it ends at')


def add_odd(cases):
    cases.add('reserved', image(reserved=b'\1' * 16, sealed=b'\1' * 40), notices=2,
              report={'seal': 'ignored'})
    cases.add('running-7', image(running=7), notices=1, report={'was-running': True})
    cases.add('padding-not-zero', image(padding=0, cookie=COOKIE + b'\0junk'), notices=1)
    cases.add('gap-before-cookie',
              image(padding=0, xml=domain() + b'\0junk', cookie=COOKIE), notices=1,
              report={'cookie-size': len(COOKIE) + 1})


def add_incomplete(cases):
    cases.add('partial', image(magic=PARTIAL), 'image-partial', 'did not finish', report={
        'complete': False, 'domain-name': 'guest', 'payload-size': len(RAW)})
    cases.add('partial-no-payload', image(magic=PARTIAL, payload=b''), 'image-partial',
              'did not finish', report={'complete': False, 'payload-size': 0})
    cases.add('partial-header-only', image(magic=PARTIAL)[:HEADER], 'image-partial',
              'did not finish')
    cases.add('partial-magic-only', PARTIAL, 'image-partial', 'did not finish')
    cases.add('partial-zero', image(magic=PARTIAL)[:HEADER] + bytes(2000), 'image-partial',
              'did not finish')
    cases.add('empty', b'', 'image-empty', 'is empty')
    whole = image(cookie=COOKIE)
    start = len(whole) - len(RAW)
    for size in (1, 15, 16, 91, 92, 93, 200, start - 1, start):
        cases.add(f'cut-{size}', whole[:size], 'image-cut', f'is cut at byte {size}')


def add_foreign(cases):
    cases.add('newline', b'\n', 'image-foreign', 'not a save image')
    cases.add('zeros', bytes(4096), 'image-foreign', 'not a save image')
    cases.add('other-magic', image(magic=b'LibvirtQemudOops'), 'image-foreign',
              'not a save image')
    cases.add('no-prefix', b'LibvirtX', 'image-foreign', 'not a save image')
    cases.add('bare-stream', RAW, 'image-foreign', 'not a save image')
    cases.add('elf', b'\x7fELF' + bytes(200), 'image-foreign', 'not a save image')
    for order, name in ('<', 'little'), ('>', 'big'):
        cases.add(f'version-3-{name}', image(order=order, version=3), 'image-unsupported',
                  'version 3;')
    cases.add('version-max', image(version=0xffffffff), 'image-unsupported',
              'version 4294967295;')


def add_lying(cases):
    small = image(padding=0, payload=b'')[:200]
    for length, code, says in (
            (0, 'image-corrupt', 'no domain XML'),
            (1, 'image-corrupt', 'no end'),
            (109, 'image-cut', 'is cut at byte 200'),
            (LIMIT, 'image-cut', 'is cut at byte 200'),
            (0x7fffffff, 'image-corrupt', 'limit'),
            (0xffffffff, 'image-corrupt', 'limit')):
        data = small[:0x14] + struct.pack('<I', length) + small[0x18:]
        cases.add(f'length-{length:#x}', data, code, says)
    cases.add('length-huge-file', image(data_len=0xffffffff), 'image-unsupported', 'limit',
              size=5 << 30)
    # Most of the "padding" is payload here.
    cases.add('length-at-limit', image(data_len=LIMIT, payload=b''), notices=1, size=5 << 30,
              report={'payload-offset': HEADER + LIMIT, 'file-size': 5 << 30})
    xml = domain()
    whole = len(xml) + 1 + len(COOKIE) + 1
    for offset in (1, whole + 1, 0x7fffffff, 0xffffffff):
        cases.add(f'cookie-at-{offset:#x}',
                  image(cookie=COOKIE, padding=0, cookie_offset=offset), 'image-corrupt',
                  'the cookie is at')
    cases.add('cookie-in-xml', image(cookie=COOKIE, cookie_offset=20), 'image-corrupt', 'no end')
    no_end = image(cookie=COOKIE, padding=0)
    end = len(no_end) - len(RAW)
    cases.add('cookie-no-end', no_end[:end - 1] + b'x' + RAW, 'image-corrupt', 'cookie has no end')
    no_end = image(padding=0)
    end = len(no_end) - len(RAW)
    cases.add('xml-no-end', no_end[:end - 1] + b'x' + RAW, 'image-corrupt', 'XML has no end')


def add_hostile_xml(cases):
    lol = ''.join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    for name, xml, says in (
            ('dtd', b'<!DOCTYPE domain><domain/>', 'document type'),
            ('dtd-remote', b'<!DOCTYPE d SYSTEM "http://127.0.0.1:1/d.dtd"><domain/>',
             'document type'),
            ('file-entity', b'<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
                            b'<domain><name>&x;</name></domain>', 'document type'),
            ('billion', f'<!DOCTYPE d [<!ENTITY l0 "lol">{lol}]>'
                        f'<domain><name>&l9;</name></domain>'.encode(), 'document type'),
            ('undefined-entity', b'<domain><name>&x;</name></domain>', 'well-formed'),
            ('deep', b'<domain>' * 100000, 'nested'),
            ('nul', b'<domain><name>a\0b</name></domain>', 'well-formed'),
            ('not-utf8', b'<domain><name>\xff</name></domain>', 'UTF-8'),
            ('utf16', '<domain/>'.encode('utf-16'), 'UTF-8'),
            ('junk', b'nothing of the kind', 'well-formed'),
            ('none', b'', 'empty'),
            ('network', b'<network/>', 'network')):
        cases.add(f'xml-{name}', image(xml=xml), 'image-corrupt', says)


def add_hostile_names(cases):
    escape = '\u009b2J\u202e'
    cases.add('name-controls', image(xml=domain(name=f'a{escape}&#10;b')), notices=0,
              report={'domain-name': f'a{escape}\nb'})
    cases.add('name-long', image(xml=domain(name='x' * 100000)), notices=0)
    command = (f'<metadata><v:qemu xmlns:v="{NAMESPACE}"><v:arg>/bin/sh</v:arg><v:arg>-c</v:arg>'
               f'<v:arg>touch "$VSP_TEST_MARK"</v:arg>'
               f'<v:arg encoding="base64">G1sySg==</v:arg></v:qemu></metadata>')
    cases.add('command', image(xml=domain(inside=command)), notices=0, report={
        'recorded-command': ['/bin/sh', '-c', 'touch "$VSP_TEST_MARK"', '\033[2J']})


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    cases = Cases(sys.argv[1])
    for part in (add_good, add_sealed, add_odd, add_incomplete, add_foreign, add_lying,
                 add_hostile_xml, add_hostile_names):
        part(cases)
    cases.write_manifest()


if __name__ == '__main__':
    main()
