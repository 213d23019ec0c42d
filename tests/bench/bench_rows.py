"""How long the portal takes to draw a list of 100 rows, from the answer's arrival until the browser has painted them.

The page is the real one in Chromium; the answer is made up in the page, so that neither the service nor its limits count. Wanted:
under 200 ms. `python tests/bench/bench_rows.py`
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.browser import Browser
from tests.support.pages import signed_in
from tests.support.running import Running, free_port

ROWS, ROUNDS, WANTED_MS = 100, 7, 200
_ANSWER = """(() => {
    const states = ['pending', 'completed', 'expired'];
    const row = (n) => ({ id: `inv_${String(n).padStart(26, '0')}`, externalId: `order-${n}`, status: states[n % 3],
        currency: 'usdt', symbol: 'USDT', network: 'tron',
        amount: `${n}.123456`, received: '0', fiatAmount: null, fiatCurrency: null,
        address: `T${String(n).padStart(33, 'x')}`, description: 'Two pairs of shoes',
        createdAt: '2026-05-01T12:00:00.000Z',
        expiresAt: '2026-05-01T13:00:00.000Z', choices: [], misdirected: [], metadata: null });
    const pagination = { page: 1, limit: ROWS, total: ROWS, pages: 1, has_next: false, has_prev: false, next_cursor: null };
    const plain = window.fetch;
    window.fetch = (url, ...rest) => String(url).includes('/invoices/getAll')
        ? Promise.resolve(new Response(JSON.stringify({ data: [...Array(ROWS).keys()].map(row), meta: { pagination } })))
        : plain(url, ...rest);
    return true;
})()""".replace("ROWS", str(ROWS))
_DRAW = """(async () => {
    location.hash = '#/key';
    while (document.querySelector('main table')) await new Promise(requestAnimationFrame);
    await new Promise((done) => setTimeout(done, 300));
    const began = performance.now();
    location.hash = '#/invoices?limit=100';
    while (document.querySelectorAll('main tbody tr').length < ROWS) await new Promise((done) => setTimeout(done, 1));
    document.body.getBoundingClientRect();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - began;
})()""".replace("ROWS", str(ROWS))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        running = Running(Path(folder), free_port())
        browser = Browser(Path(folder))
        try:
            signed_in(browser, running.wait_until_up(), "client_test")
            browser.run(_ANSWER)
            browser.run(_DRAW)  # the page's modules are loaded now
            took = sorted(browser.run(_DRAW) for _ in range(ROUNDS))
        finally:
            browser.close()
            running.kill()
    median, fastest, slowest = statistics.median(took), took[0], took[-1]
    print(f"{ROWS} rows drawn in {median:.0f} ms (fastest {fastest:.0f}, slowest {slowest:.0f}); wanted: {WANTED_MS}")


if __name__ == "__main__":
    main()
