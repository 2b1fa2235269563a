"""The style sheet of a report's page: one column of text, figures in a grid, tables in boxes of
their own that scroll, and both colour schemes."""

STYLE = """
:root { color-scheme: light dark;
  --page: #fdfdfe; --card: #f3f5f7; --ink: #22262b; --quiet: #5c636e; --rule: #b4bac3;
  --faint: #e4e7eb; --band: #eef5f1; --blue: #0072b2; --mark: #fdf0cf; --link: #005a8f }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171b; --card: #1e2329; --ink: #e6e9ed; --quiet: #a2abb7; --rule: #5b6470;
  --faint: #2b3138; --band: #182420; --blue: #3d9bdb; --mark: #4a3a10; --link: #7cc0f2 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif }
main { max-width: 84rem; margin: 0 auto; padding: 2.5rem 1.5rem 4rem }
p, .doubts { max-width: 46rem } dl, .tree { max-width: 64rem } p { margin: .5rem 0 }
h1 { font-size: 1.85rem; line-height: 1.2; margin: 0; overflow-wrap: anywhere }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 3.2rem 0 .5rem; padding-top: .9rem;
  border-top: 1px solid var(--faint) }
h3 { font-size: 1.02rem; margin: 1.6rem 0 .4rem } h4 { font-size: .88rem; margin: 0 0 .1rem }
h4 .quiet { font-weight: 400 }
figure h3 { margin: 0 0 .2rem; font-size: .95rem; max-width: 36rem }
a { color: var(--link) } nav { margin: 1.1rem 0 0 } nav a { margin-right: 1.1rem }
code { font: .86em/1.45 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere }
.quiet { color: var(--quiet); font-size: .88rem }
.word { display: inline-block; font-size: .8rem; font-weight: 600; line-height: 1.4;
  padding: .15rem .6rem; border-radius: 1rem; background: var(--faint); vertical-align: .35em }
.word.modelled { background: var(--mark) }
.note { border-left: 4px solid var(--mark); background: var(--card); padding: .6rem 1rem }
.cards, .grid { display: grid; gap: 1rem; margin: 1.4rem 0 }
.cards { grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)) }
.card { background: var(--card); border-radius: .5rem; padding: 1rem 1.25rem }
.card p { margin: .15rem 0 0 } .card h2 { margin: 0; padding: 0; border: 0; font-size: .95rem }
.card .number { font-size: 2.1rem; line-height: 1.25; font-weight: 650 }
.grid { grid-template-columns: repeat(auto-fill, minmax(min(100%, 316px), 1fr)); gap: 1.6rem .6rem }
.grid.two { margin-top: .8rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 620px), 1fr)) }
figure { margin: 0; min-width: 0; overflow-x: auto }
figure svg { display: block; height: auto; max-width: 100%; overflow: visible }
figure svg * { stroke-linejoin: round; stroke-linecap: butt } svg text { font-family: inherit }
.grid.two svg { width: 100% !important }
details { margin: .6rem 0 } summary { cursor: pointer; font-weight: 600; padding: .25rem 0 }
summary .quiet { font-weight: 400 }
.scroll { overflow-x: auto; margin: .5rem 0 1rem;  /* its right edge is dark if more is there */
  background: linear-gradient(to left, var(--page) 40%, transparent) right / 3rem 100% no-repeat
    local, linear-gradient(to left, var(--rule), transparent) right / 1rem 100% no-repeat }
table { border-collapse: collapse; font-size: .85rem; line-height: 1.4; width: 100%;
  max-width: 76rem }
th, td { text-align: right; padding: .32rem .55rem; border-bottom: 1px solid var(--faint);
  font-variant-numeric: tabular-nums; white-space: nowrap; vertical-align: top }
th { font-weight: 600 } thead th { color: var(--quiet); vertical-align: bottom;
  white-space: normal }
thead [scope=colgroup] { text-align: center }
th:first-child, td:first-child { padding-left: 0 } .text { text-align: left; white-space: normal }
tbody th[scope=rowgroup] { text-align: left; padding-top: 1rem }
tr:has(+ tr .config) td { border-bottom: 0; padding-bottom: 0 } td.best { font-weight: 700 }
td.config { text-align: left; white-space: normal; padding-top: .1rem; color: var(--quiet) }
.tree, .tree ul { list-style: none; margin: 0; padding: 0 } .tree ul { padding-left: 1.1rem;
  border-left: 1px solid var(--rule) } .tree li { padding: .22rem 0 }
.tree .if { font-weight: 600 }
dl { display: grid; grid-template-columns: 11rem 1fr; gap: .4rem 1rem; margin: .5rem 0 }
dt { font-weight: 600; overflow-wrap: anywhere } dd { margin: 0 }
.doubts { padding-left: 1.1rem } .doubts li { padding: .15rem 0; overflow-wrap: anywhere }
@media (max-width: 56rem) { table { font-size: .8rem }
  th, td { padding: .3rem .32rem } }
@media (max-width: 40rem) { dl { display: block } dt { margin-top: .6rem }
  main { padding: 1.5rem 1rem 3rem } h1 { font-size: 1.5rem } }
@media print { details { break-inside: avoid } }
"""
