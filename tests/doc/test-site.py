#!/usr/bin/env python3
# timeout: 120
"""The site is built, each of its pages is there, and each link between its pages leads to a page and a heading.

SPDX-License-Identifier: BSD-2-Clause
"""
import html.parser
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

SRC = os.environ["SRC"]


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.ids = [], set()
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.add(attrs.get("id"))
        for name in "href", "src", "srcset":
            if attrs.get(name):
                self.links.append(attrs[name])


def check(folder):
    pages, problems = {}, []
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".html"):
                pages[os.path.join(path, name)] = Page(os.path.join(path, name))
    for path, page in pages.items():
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc or path.endswith("404.html"):
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(url.path))) if url.path else path
            if target in pages and url.fragment and url.fragment not in pages[target].ids:
                problems.append(f"{path}: {link}: no such heading")
            elif not os.path.exists(target) and "/man/" not in path:  # man pages also name pages of other projects
                problems.append(f"{path}: {link}: no such page")
    return pages, problems


def main():
    if not shutil.which("mkdocs"):
        print("no mkdocs: make deps FOR=site")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        # in place of the pages that "make man" makes
        os.mkdir(f"{folder}/man")
        for name in "blkin.1", "blkin-live.1", "blkin-agent.1", "blkin.conf.5", "blkin.h.3":
            with open(f"{folder}/man/{name}", "w", encoding="utf-8") as file:
                file.write('.TH made 1 "" "" ""\n.SH NAME\nmade \\- a page that stands for the real one\n' + '.SH MORE\nmore\n' * 5)
        subprocess.run([f"{SRC}/scripts/site", f"{folder}/man", folder], check=True)
        pages, problems = check(f"{folder}/html")
    print(*problems, sep="\n")
    print(f"{len(pages)} pages")
    return 1 if problems or len(pages) < 25 else 0


sys.exit(main())
