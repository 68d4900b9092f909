/*
 * How the page looks: light or dark as the reader has it, from 400 pixels on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "parts.h"

static const char *const rules[] = {
    ":root{color-scheme:light dark;--bg:#fff;--ink:#16191d;--soft:#4a5260;--line:#d9dde3;"
    "--card:#f6f7f9;--bad:#b3261e;--link:#1d4ed8}",
    "@media (prefers-color-scheme:dark){:root{--bg:#14181d;--ink:#eceff3;--soft:#aab3c0;"
    "--line:#333b46;--card:#1c2127;--bad:#ff8a80;--link:#8ab4ff}}",
    "*{box-sizing:border-box}",
    "body{margin:0;background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;overflow-wrap:anywhere}",
    "header,main,footer{max-width:1240px;margin:0 auto;padding:0 20px}",
    "header{padding-top:28px}main{padding-bottom:24px}",
    "h1{font-size:24px;line-height:1.25;margin:0 0 2px}h2{font-size:19px;margin:0 0 4px}",
    "section{margin-top:44px}section>p{margin:0 0 14px;color:var(--soft);max-width:75ch}",
    "a{color:var(--link)}code{font-family:ui-monospace,'DejaVu Sans Mono',monospace;"
    "font-size:.93em}",
    ".fg{color:var(--soft)}.x{color:var(--bad);font-weight:600}",
    ".vh{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);"
    "white-space:nowrap}",
    ".sw{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:7px;"
    "flex:none}",
    ".sv{font-weight:600}",
    "summary{cursor:pointer}:focus-visible{outline:2px solid var(--link);outline-offset:1px}",
    "footer{color:var(--soft);font-size:13px;padding-bottom:32px}",
    /* tiles */
    ".ti{display:grid;grid-template-columns:repeat(auto-fit,minmax(132px,1fr));gap:10px;"
    "margin:20px 0 14px}",
    ".ti div{background:var(--card);border:1px solid var(--line);border-radius:10px;"
    "padding:10px 14px}",
    ".ti dt{color:var(--soft);font-size:13px}.ti dd{margin:0;font-size:21px;font-weight:650;"
    "font-variant-numeric:tabular-nums;line-height:1.3}",
    ".ti small{display:block;font-size:13px;font-weight:400;color:var(--soft)}",
    "nav{display:flex;flex-wrap:wrap;gap:4px 20px;font-size:14px}",
    /* tables */
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}",
    "thead th{font-size:13px;font-weight:400;color:var(--soft);text-align:right;"
    "vertical-align:bottom;white-space:nowrap;border-bottom:1px solid var(--line)}",
    "thead th:first-child,tbody th{text-align:left}tbody th{font-weight:400}",
    "th,td{padding:5px 9px}td{text-align:right;white-space:nowrap}"
    "tbody tr:nth-child(even){background:var(--card)}",
    "th:first-child{padding-left:4px}",
    ".ops thead th:nth-child(2){text-align:left}.sh{text-align:left;width:24%;min-width:150px}",
    ".bar{display:inline-block;width:calc(100% - 62px);height:10px;margin-right:8px}"
    ".bar i{display:block;height:100%;border-radius:3px;min-width:1px}",
    /* graph */
    ".gr{overflow-x:auto;border:1px solid var(--line);border-radius:10px;padding:10px;"
    "margin:0 0 12px}.gr svg{display:block;margin:0 auto}",
    /* histograms */
    ".hs{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(320px,100%),1fr));"
    "gap:22px 26px}",
    ".hs figure{margin:0;min-width:0}.hs svg{display:block;width:100%;height:auto;margin-top:6px}",
    ".hs figcaption .fg{display:block;font-size:13px;font-variant-numeric:tabular-nums}",
    ".hs text{font-size:11px;fill:var(--soft);text-anchor:middle}",
    ".hs rect{opacity:.55}.hs .g{stroke:var(--line)}.hs .ax{stroke:var(--soft)}",
    ".hs .sl{fill:none;stroke:var(--ink);stroke-width:1.2}"
    ".hs .q{stroke:var(--ink);stroke-width:1;stroke-dasharray:3 3;opacity:.75}",
    /* timelines */
    ".tr{border:1px solid var(--line);border-radius:10px;margin-bottom:10px;padding:0 14px}",
    ".tr>summary{padding:9px 0;font-variant-numeric:tabular-nums}.tr[open]{padding-bottom:12px}",
    ".tr>p{margin:2px 0 8px;font-size:14px}",
    ".tl{font-size:13.5px;line-height:1.35}",
    ".r>summary,.ah{display:grid;grid-template-columns:minmax(0,34%) minmax(0,1fr) 74px 74px;"
    "gap:0 12px;align-items:center;padding:2px 0;list-style:none}",
    ".r>summary::-webkit-details-marker{display:none}",
    ".r>summary:hover{background:var(--card)}",
    ".ah{color:var(--soft);font-size:12px;border-bottom:1px solid var(--line);"
    "margin-bottom:3px;padding-bottom:3px}",
    /* with usage: two cells, or three */
    ".u2 .r>summary,.u2 .ah{grid-template-columns:minmax(0,30%) minmax(0,1fr) 74px 74px 140px}"
    ".u3 .r>summary,.u3 .ah{grid-template-columns:minmax(0,26%) minmax(0,1fr) 74px 74px 210px}",
    ".us{display:grid;grid-auto-columns:1fr;grid-auto-flow:column;text-align:right;"
    "font-variant-numeric:tabular-nums;white-space:nowrap;color:var(--soft)}",
    ".nm{padding-left:calc(var(--d,0)*14px);min-width:0}",
    ".du,.se{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".se{color:var(--soft)}",
    ".br{position:relative;height:18px;background:linear-gradient(90deg,var(--line) 1px,"
    "transparent 1px) 0 0/25% 100%;border-right:1px solid var(--line)}",
    ".ah .br{background:none;border:0}",
    ".br i{position:absolute;top:3px;height:12px;border-radius:2px;min-width:2px}",
    ".bb{opacity:.3}.br .mk{width:1px;min-width:1px;top:1px;height:16px;border-radius:0;"
    "background:var(--ink);opacity:.7}",
    ".tk{position:absolute;transform:translateX(-50%);white-space:nowrap}.tf{transform:none}"
    ".te{transform:translateX(-100%)}",
    ".r dl{display:grid;grid-template-columns:minmax(90px,max-content) minmax(0,1fr);gap:1px 14px;"
    "margin:4px 0 10px;padding:8px 12px;background:var(--card);border-radius:8px}",
    ".r dt{color:var(--soft)}.r dd{margin:0;white-space:pre-wrap}",
    /* narrow */
    "@media (max-width:800px){body{font-size:14.5px}header,main,footer{padding-left:14px;"
    "padding-right:14px}section{margin-top:34px}",
    ".ops thead,.cl thead{position:absolute;width:1px;height:1px;overflow:hidden;"
    "clip-path:inset(50%)}",
    ".ops,.ops tbody,.cl,.cl tbody{display:block}",
    ".ops tr,.cl tr{display:grid;grid-template-columns:repeat(auto-fit,minmax(80px,1fr));"
    "padding:8px 6px;border-bottom:1px solid var(--line)}",
    ".ops th,.ops .sh,.cl th{grid-column:1/-1;width:auto}.ops td,.cl td{text-align:left;"
    "padding:1px 4px}",
    "tbody td::before{content:attr(data-l);display:block;font-size:12px;font-weight:400;"
    "color:var(--soft)}.sh::before{content:none!important}",
    ".tr{padding:0 9px}",
    ".tl .r>summary,.tl .ah{grid-template-columns:minmax(0,1fr) 70px 62px;gap:0 8px}"
    ".ah .us{display:none}.r .us{grid-column:1/-1;grid-row:3;text-align:left}"
    ".us>span::before{content:attr(data-l) ' '}"
    ".r .br{grid-column:1/-1;grid-row:2}.r .nm{padding-left:calc(var(--d,0)*7px)}"
    ".r>summary{padding:4px 0}.tk:nth-child(2n){display:none}}",
    "@media print{.tr,.gr{break-inside:avoid}}",
};

void put_page_style(FILE *file)
{
    fputs("<style>", file);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        fputs(rules[i], file);
        fputc('\n', file);
    }
    graph_put_style(file);
    fputs("</style>\n", file);
}
