#!/usr/bin/env python3
"""Looks at traces with a real browser in Zipkin's own web interface.

SPDX-License-Identifier: BSD-2-Clause
"""
import argparse
import os
import sys
import tempfile

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

DEADLINE = 30 * int(os.environ.get("PATIENCE", "1"))


def open_browser(profile):
    options = webdriver.ChromeOptions()
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
                 "disable-background-networking", "disable-component-update", "disable-sync",
                 f"user-data-dir={profile}", "window-size=1400,830"):
        options.add_argument(f"--{flag}")
    service = Service("/usr/bin/chromedriver", log_path=os.path.join(profile, "chromedriver.log"))
    browser = webdriver.Chrome(service=service, options=options)
    browser.set_page_load_timeout(DEADLINE)
    return browser


def body(browser):
    return browser.find_element(By.TAG_NAME, "body").text


def missing(browser, texts):
    """Returns the texts that the page does not show; the interface writes names in other letter cases."""
    shown = body(browser).lower()
    return [t for t in texts if t.lower() not in shown]


def wait_for_texts(browser, texts, what):
    try:
        WebDriverWait(browser, DEADLINE).until(lambda b: not missing(b, texts))
    except TimeoutException:
        sys.exit(f"{what}: after {DEADLINE} s the page does not show {missing(browser, texts)}\n"
                 f"it shows: {body(browser)[:2000]}")


def select_span(browser, name):
    """Selects a span, whose details then appear beside the timeline. The page may still replace its elements."""
    def select(_):
        row = next((r for r in browser.find_elements(By.XPATH, "//*[not(*)]") if r.text == name), None)
        return row and (ActionChains(browser).move_to_element(row).click().perform() or True)
    WebDriverWait(browser, DEADLINE, ignored_exceptions=[StaleElementReferenceException]).until(select)


def screenshot(browser, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not browser.save_screenshot(path):
        sys.exit(f"cannot write {path}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--zipkin", required=True, help="http://HOST:PORT")
    parser.add_argument("--trace", required=True, help="the id of a trace that Zipkin has")
    parser.add_argument("--upload", required=True, help="a file with the spans of one trace")
    parser.add_argument("--upload-id", required=True, help="the trace id in that file")
    parser.add_argument("--screenshot", required=True)
    parser.add_argument("--dark-screenshot", required=True)
    parser.add_argument("--select", required=True, help="SERVICE: SPAN, to be selected in the screenshots")
    parser.add_argument("texts", nargs="+", help="what the page of either trace shows")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(profile)
        try:
            browser.get(f"{args.zipkin}/zipkin/traces/{args.trace}")
            for theme, path in ("light", args.screenshot), ("dark", args.dark_screenshot):
                browser.execute_script(f"localStorage.setItem('zipkinThemeOverride', '{theme}')")
                browser.refresh()
                wait_for_texts(browser, [args.trace, *args.texts], "the page of a stored trace")
                select_span(browser, args.select)
                screenshot(browser, path)

            browser.get(f"{args.zipkin}/zipkin/")
            upload = WebDriverWait(browser, DEADLINE).until(
                lambda b: b.find_element(By.CSS_SELECTOR, "input[type=file]"))
            upload.send_keys(args.upload)
            wait_for_texts(browser, [args.upload_id, *args.texts], "the page of an uploaded trace")
        finally:
            browser.quit()


main()
