# vsptap: pytest results as TAP, the way meson reads them
#
# With CI in the environment a skip is a failure: there everything the tests need has to be there.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import os

# pytest captures the descriptors 1 and 2 later on; this one stays.
OUT = os.fdopen(os.dup(1), "w", buffering=1)


class Tap:
    def __init__(self):
        self.count = 0
        self.strict = bool(os.environ.get("CI"))
        self.reports = []

    def comment(self, text):
        for line in text.splitlines():
            OUT.write("# " + line + "\n")

    def line(self, ok, name, directive=""):
        self.count += 1
        name = name.replace("#", "")
        OUT.write(f"{'ok' if ok else 'not ok'} {self.count} - {name}{directive}\n")

    def pytest_collection_finish(self, session):
        OUT.write(f"1..{len(session.items)}\n")

    def pytest_collectreport(self, report):
        if report.failed:
            self.comment(report.longreprtext)
            OUT.write(f"Bail out! {report.nodeid} can't be loaded\n")

    # A test has three reports, one each for fixtures set up, the test, and fixtures taken down.
    def pytest_runtest_logreport(self, report):
        self.reports.append(report)
        if report.when != "teardown":
            return
        reports, self.reports = self.reports, []
        name = report.nodeid.partition("::")[2]
        failed = [r for r in reports if r.failed]
        skipped = [r for r in reports if r.skipped]
        for one in failed:
            self.comment(one.longreprtext)
        if failed:
            for title, text in reports[-1].sections:
                self.comment(f"-- {title}\n{text}")
        if failed or not skipped:
            self.line(not failed, name)
            return
        reason = skipped[0].longrepr[2] if isinstance(skipped[0].longrepr, tuple) else ""
        if self.strict:
            self.comment("may not be skipped here")
            self.line(False, f"{name}: {reason}")
        else:
            self.line(True, name, f" # SKIP {reason}")


def pytest_addoption(parser):
    # pytest's own reporter, which has these two, is off: TAP readers want nothing but TAP.
    parser.addoption("--tb", dest="tbstyle", default="short")
    parser.addoption("--verbose", dest="verbose", type=int, default=0)


def pytest_configure(config):
    config.pluginmanager.register(Tap(), "vsptap-plugin")
