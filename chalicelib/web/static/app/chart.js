// Bars as SVG, and the same figures as a table, for who does not see them or wants to read them.
import { html } from "./ui.js";

const WIDTH = 640;
const HEIGHT = 160;

/** Bars: `bars` are `{ label, value, text }`, where `value` is a number for the height alone, and `text` what is told of it. */
export function Bars({ title, bars, labels = ["Day", "Amount"] }) {
  const most = Math.max(...bars.map((bar) => bar.value), 0);
  const step = WIDTH / Math.max(1, bars.length);
  const every = Math.ceil(bars.length / 6);
  return html`<figure class="chart"><figcaption class="hidden">${title}</figcaption>
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT + 22}`} aria-hidden="true" preserveAspectRatio="none">
      <line class="axis" x1="0" x2=${WIDTH} y1=${HEIGHT + 0.5} y2=${HEIGHT + 0.5} />
      ${bars.map((bar, place) => {
        const high = most > 0 ? Math.max(bar.value > 0 ? 2 : 0, (bar.value / most) * (HEIGHT - 8)) : 0;
        return html`<g key=${bar.label}><title>${`${bar.label}: ${bar.text}`}</title>
          <rect class="reach" x=${place * step} y="0" width=${step} height=${HEIGHT} />
          <rect class="bar" x=${place * step + step * 0.14} y=${HEIGHT - high} width=${step * 0.72}
            height=${high} rx="2" /></g>`;
      })}
    </svg>
    <div class="ticks" aria-hidden="true">
      ${bars.map((bar, place) => html`<span key=${bar.label}>${place % every === 0 && bar.label}</span>`)}</div>
    <details><summary>As a table</summary><div class="scroll"><table><caption class="hidden">${title}</caption>
      <thead><tr>${labels.map((label) => html`<th key=${label} scope="col">${label}</th>`)}</tr></thead>
      <tbody>${bars.map((bar) => html`<tr key=${bar.label}><th scope="row">${bar.label}</th><td>${bar.text}</td></tr>`)}</tbody>
      </table></div></details>
  </figure>`;
}
