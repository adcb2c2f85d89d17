// How the page looks, in light and in dark.
#pragma once

namespace fedrun::bench::suite {

constexpr const char* page_style = R"(
:root { color-scheme: light dark; --bg: #ffffff; --fg: #1f2328; --soft: #59636e; --line: #d8dee4; --panel: #f6f8fa;
  --note: #fff8e1; --bad: #b42318;
  --c0: #2563eb; --c1: #d97706; --c2: #059669; --c3: #c026d3; --c4: #dc2626; --c5: #0891b2; --c6: #7c3aed; --c7: #64748b; }
@media (prefers-color-scheme: dark) { :root { --bg: #11151a; --fg: #e6edf3; --soft: #9aa7b4; --line: #2d3742;
  --panel: #181e25; --note: #2b2614; --bad: #ff8a80;
  --c0: #60a5fa; --c1: #fbbf24; --c2: #34d399; --c3: #e879f9; --c4: #f87171; --c5: #22d3ee; --c6: #a78bfa; --c7: #94a3b8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1280px; padding: 24px 20px 60px; background: var(--bg); color: var(--fg);
  font: 15px/1.5 system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 20px; margin: 40px 0 6px; padding-top: 14px;
  border-top: 1px solid var(--line); } h3 { font-size: 16px; margin: 20px 0 6px; }
p { max-width: 86ch; margin: 6px 0 12px; } .soft { color: var(--soft); }
a { color: var(--c0); } nav a { margin-right: 14px; white-space: nowrap; }
.note { background: var(--note); border: 1px solid var(--line); border-radius: 6px; padding: 10px 14px; max-width: none; }
.bad { color: var(--bad); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 520px), 1fr)); gap: 16px; }
.figures.small { grid-template-columns: repeat(auto-fill, minmax(min(100%, 280px), 1fr)); }
figure { margin: 0; background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 10px 12px 6px;
  max-width: 760px; }
figcaption { font-weight: 600; margin-bottom: 4px; }
svg { display: block; width: 100%; height: auto; font: 12px system-ui, "Liberation Sans", Arial, sans-serif; }
svg text { fill: var(--fg); } svg .tick, svg .label { fill: var(--soft); } svg .value { font-size: 11px; }
svg .grid { stroke: var(--line); stroke-width: 1; fill: none; } svg .axis { stroke: var(--soft); fill: none; }
svg .line { stroke-width: 2; fill: none; } svg .ideal { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 5 4;
  fill: none; }
.f0 { fill: var(--c0); } .f1 { fill: var(--c1); } .f2 { fill: var(--c2); } .f3 { fill: var(--c3); } .f4 { fill: var(--c4); }
.f5 { fill: var(--c5); } .f6 { fill: var(--c6); } .f7 { fill: var(--c7); }
.s0 { stroke: var(--c0); } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); } .s3 { stroke: var(--c3); }
.s4 { stroke: var(--c4); } .s5 { stroke: var(--c5); } .s6 { stroke: var(--c6); } .s7 { stroke: var(--c7); }
.table { overflow-x: auto; margin: 14px 0; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 16px 3px 0; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; } .number { text-align: right; white-space: nowrap; }
code { font: 13px ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
summary { cursor: pointer; color: var(--soft); }
)";

}  // namespace fedrun::bench::suite
