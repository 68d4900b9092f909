"""A page of blkin report in a real browser, and as text.

SPDX-License-Identifier: BSD-2-Clause
"""
import html.parser
import json
import os

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Balance(html.parser.HTMLParser):
    """Checks that every element is closed, in the right order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags = [], {}
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.setdefault(tag, []).append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.setdefault(tag, []).append(dict(attrs))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-5:], self.getpos())
        self.open.pop()


class Browser:
    def __init__(self, profile):
        os.makedirs(profile)
        options = webdriver.ChromeOptions()
        for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "hide-scrollbars",
                     "disable-background-networking", "disable-component-update", "disable-sync", f"user-data-dir={profile}"):
            options.add_argument(f"--{flag}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = Service("/usr/bin/chromedriver", log_path=os.path.join(profile, "chromedriver.log"))
        self.driver = webdriver.Chrome(service=service, options=options)
        self.driver.set_page_load_timeout(60)

    def open(self, path, width, scheme="light"):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.driver.get(f"file://{path}")
        # messages of the page, without those of a new browser's own first page
        said = [entry for entry in self.driver.get_log("browser") if not entry["message"].startswith("chrome:")]
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        if said:
            raise AssertionError(said)
        # requests of the page; a new browser also requests its own first page
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"
                and e["params"]["documentURL"].startswith("file:")]

    def run(self, script, *args):
        return self.driver.execute_script(script, *args)

    def open_all(self):
        self.run("document.querySelectorAll('details').forEach(d => d.open = true)")

    def too_wide(self):
        """Returns the elements wider than the window, without those in a box that scrolls."""
        return self.run("""
            const width = document.documentElement.clientWidth;
            if (document.documentElement.scrollWidth > width) return ['the page scrolls sideways'];
            return [...document.body.querySelectorAll('*')].filter(e => !e.closest('.gr svg') && !e.closest('.vh, thead')
                && e.getClientRects().length && e.getBoundingClientRect().right > width + 1)
                .map(e => e.outerHTML.slice(0, 200)).slice(0, 5)""")

    def pale(self):
        """Returns texts with less contrast than 4.5 : 1, the minimum of WCAG AA."""
        return self.run("""
            const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
            const light = c => { const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92
                : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
                if (c.length === 3 || c[3] > 0.99) return c; } return [255, 255, 255]; };
            const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (walk.nextNode()) {
                const e = walk.currentNode.parentElement, style = getComputedStyle(e);
                if (!walk.currentNode.data.trim() || !e.getClientRects().length || e.closest('title')) continue;
                const svg = e.closest('svg'), fore = parse(svg ? style.fill : style.color);
                const box = svg && svg.querySelector('.o');
                const backs = svg && box ? [behind(svg), parse(getComputedStyle(box).fill)] : [behind(e)];
                for (const back of backs) {
                    const [a, b] = [light(fore), light(back)].sort((x, y) => y - x);
                    if ((a + 0.05) / (b + 0.05) < 4.5)
                        found.push([walk.currentNode.data.slice(0, 40), style.color, style.fill, String(back)]);
                }
            }
            return found.slice(0, 5)""")

    def quit(self):
        self.driver.quit()
