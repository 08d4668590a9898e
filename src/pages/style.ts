/** The style sheet of all pages: light or dark as the system is, from a phone's width on. */

export const STYLE = `
:root {
  color-scheme: light dark;
  --ground: #f3f5f8; --sheet: #ffffff; --text: #16202e; --soft: #55627a; --line: #c6cedb;
  --accent: #1f4fbf; --accent-ink: #ffffff; --accent-strong: #173c92;
  --bad: #9b1c1c; --bad-ground: #fdecec; --good: #14532d; --good-ground: #e6f4ea; --ring: #1f4fbf;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0e131b; --sheet: #18202c; --text: #e8edf5; --soft: #a3b0c6; --line: #3a475c;
    --accent: #8fb3ff; --accent-ink: #0b1a3a; --accent-strong: #b5ccff;
    --bad: #ffb4b4; --bad-ground: #3a1a1d; --good: #a6e3b8; --good-ground: #143020; --ring: #8fb3ff;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; min-height: 100vh; min-height: 100dvh; display: flex; flex-direction: column;
  background: var(--ground); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
header, footer { padding: 1rem 1.25rem; }
header { display: flex; align-items: center; gap: .6rem; font-weight: 650; letter-spacing: .01em; }
header svg { width: 1.6rem; height: 1.6rem; color: var(--accent); flex: none; }
header form { margin-left: auto; }
main { flex: 1; width: 100%; max-width: 27rem; margin: 0 auto; padding: 1rem 1rem 2rem; }
main.wide { max-width: 52rem; }
.wide input:not([type=hidden], [type=checkbox]) { max-width: 26rem; }
.wide button:not(.short) { width: auto; min-width: 13rem; max-width: 100%; }
.sheet {
  background: var(--sheet); border: 1px solid var(--line); border-radius: .9rem; padding: 1.5rem;
  box-shadow: 0 1px 2px rgb(0 0 0 / .05), 0 8px 24px rgb(0 0 0 / .06);
}
.sheet + .sheet { margin-top: 1rem; }
h1 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; line-height: 1.3; margin: 0 0 .25rem; }
p { margin: .25rem 0 1rem; }
.soft { color: var(--soft); }
.small { font-size: .875rem; }
label { display: block; font-weight: 600; margin: .9rem 0 .3rem; }
input:not([type=hidden], [type=checkbox]), select {
  width: 100%; min-height: 2.75rem; padding: .5rem .75rem; font: inherit; color: inherit;
  background: var(--ground); border: 1px solid var(--soft); border-radius: .55rem;
}
input.code { font-size: 1.35rem; letter-spacing: .15em; font-variant-numeric: tabular-nums; }
button, .button {
  display: flex; align-items: center; justify-content: center; gap: .5rem; width: 100%; min-height: 2.75rem;
  padding: .5rem 1rem; font: inherit; font-weight: 600; text-align: center; text-decoration: none; cursor: pointer;
  color: var(--accent-ink); background: var(--accent); border: 1px solid transparent; border-radius: .55rem;
}
button:hover, .button:hover { background: var(--accent-strong); }
.plain, .plain:hover { color: var(--text); background: transparent; border-color: var(--soft); }
.plain:hover { border-color: var(--accent); color: var(--accent); }
.short { width: auto; min-height: 2.25rem; padding: .25rem .8rem; font-size: .9rem; display: inline-flex; }
form > button, form > .button, .ways > .button { margin-top: 1.25rem; }
.ways > .button + .button { margin-top: .75rem; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--ring); outline-offset: 2px; }
.or { display: flex; align-items: center; gap: .75rem; margin: 1.25rem 0 0; color: var(--soft); font-size: .9rem; }
.or::before, .or::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
.mark { font-size: .75rem; font-weight: 600; padding: .1rem .45rem; border: 1px solid currentColor; border-radius: 1rem; white-space: nowrap; }
.alert, .notice { margin: .75rem 0 1rem; padding: .65rem .85rem; border-radius: .55rem; border: 1px solid currentColor; }
.alert { color: var(--bad); background: var(--bad-ground); }
.notice { color: var(--good); background: var(--good-ground); }
.qr { display: block; width: 13rem; max-width: 100%; margin: 1rem auto; border-radius: .5rem; background: #ffffff; color: #000000; }
code, .codes { font: 1rem/1.7 ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.codes { list-style: none; margin: 1rem 0; padding: .75rem 1rem; columns: 10rem; background: var(--ground); border-radius: .55rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0 1rem; font: inherit; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; margin: .75rem 0 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.list { list-style: none; margin: 1rem 0 0; padding: 0; }
.list > li { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem; padding: .85rem 0; border-top: 1px solid var(--line); }
.list > li > div { flex: 1 1 14rem; min-width: 0; overflow-wrap: anywhere; }
.list form > button { margin: 0; }
footer nav { display: flex; flex-wrap: wrap; justify-content: center; gap: .25rem 1rem; font-size: .9rem; }
footer a, footer span { padding: .35rem .25rem; }
footer a { color: var(--soft); }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.check { display: flex; gap: .6rem; align-items: flex-start; font-weight: 400; }
.check input { width: 1.25rem; height: 1.25rem; margin: .15rem 0 0; accent-color: var(--accent); flex: none; }
details > summary { cursor: pointer; color: var(--accent); font-size: .9rem; padding: .35rem 0; }
details[open] { flex: 1 1 100%; }
button:disabled { opacity: .55; cursor: not-allowed; }
@media (max-width: 30rem) { .sheet { padding: 1.1rem; } main { padding: .5rem .75rem 1.5rem; } }
@media (forced-colors: active) { .qr { forced-color-adjust: none; } }
`
