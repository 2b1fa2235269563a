"""The service's pages as a reader sees them, in chromium at two widths and in both colour schemes:
no message on the console, nothing beside the page, and nothing that axe-core objects to."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import NEEDED, Tab, tab
from serving import live, opened
from test_report_browser import BEYOND, CLIPPED, OUTSIDE, OVERLAPPING, SHARED
from test_serve_pages import EXPECTED, addresses, filled

pytestmark = [pytest.mark.thorough, NEEDED]
WIDTHS = (1400, 400)
RULES = """axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']})
  .then((found) => found.violations.map((each) => each.id + ': '
    + each.nodes.map((node) => node.html.slice(0, 120)).slice(0, 3).join(' | ')))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The address of every page of a filled service."""
    folder = tmp_path_factory.mktemp("site")
    with opened("sqlite", folder, anonymous_read=True) as served:
        paths = addresses(filled(served))
        with live(served.settings, served.database) as at:
            yield {name: at + path for name, path in paths.items()}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with tab(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """axe-core's source, from npm."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm, which brings axe-core")
    folder = tmp_path_factory.mktemp("npm")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "axe-core@4"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not bring axe-core within 120 s")
    if done.returncode:
        pytest.skip(f"npm brings no axe-core: {done.stderr[-200:]}")
    return (folder / "node_modules/axe-core/axe.min.js").read_text()


def shown(browser: Tab, site: dict[str, str], name: str, width: int, dark: bool = False) -> None:
    browser.messages.clear()
    browser.open(site[name], width, dark=dark)
    for each in ("details", "h1"):
        browser.ask(f"document.querySelectorAll('{each}').forEach((e) => {{ e.open = true }})")
    if folder := os.environ.get("TFTUNE_TEST_SHOTS"):
        word = "dark" if dark else "light"
        Path(folder, f"{name}-{width}-{word}.png").write_bytes(browser.screenshot())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", EXPECTED)
def test_nothing_leaves_the_page(browser: Tab, site: dict[str, str], name: str, width: int) -> None:
    shown(browser, site, name, width)
    for what in (BEYOND, CLIPPED, OUTSIDE, OVERLAPPING):
        found = browser.ask(f"(() => {{ {SHARED} return {what} }})()")
        assert [each for each in found if each != "INPUT: "] == [], what  # its text scrolls
    assert browser.ask("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", EXPECTED)
def test_the_console_is_silent(browser: Tab, site: dict[str, str], name: str) -> None:
    """A policy that blocked something would say so there."""
    shown(browser, site, name, 1400)
    assert [text for text in browser.messages if name != "error" or "404" not in text] == []
    assert browser.ask("getComputedStyle(document.querySelector('main')).maxWidth") != "none"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", EXPECTED)
def test_axe_objects_to_nothing(
    browser: Tab, site: dict[str, str], axe: str, name: str, dark: bool
) -> None:
    shown(browser, site, name, 400 if dark else 1400, dark)
    browser.ask(f"{axe}; 0")
    assert browser.ask(RULES) == []


def test_axe_objects_to_a_planted_fault(browser: Tab, site: dict[str, str], axe: str) -> None:
    shown(browser, site, "nodes", 1400)
    browser.ask(f"{axe}; document.body.insertAdjacentHTML('beforeend', '<img src=data:,>'); 0")
    assert any(found.startswith("image-alt") for found in browser.ask(RULES))


def test_the_keyboard_reaches_the_content_and_every_box(browser: Tab, site: dict[str, str]) -> None:
    shown(browser, site, "operation", 400)
    browser.press("Tab")
    assert browser.ask("document.activeElement.className") == "skip"
    assert browser.ask("document.activeElement.getBoundingClientRect().left") >= 0
    browser.press("Enter")
    assert browser.ask("location.hash") == "#content"
    seen: set[str] = set()
    wanted = browser.ask("[...document.querySelectorAll('.scroll')].map((e) => e.ariaLabel)")
    for _ in range(400):
        browser.press("Tab")
        seen.add(browser.ask("document.activeElement.ariaLabel || ''"))
    assert wanted and set(wanted) <= seen
