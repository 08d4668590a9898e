/**
 * One page that replays a session in a browser without a network: xterm.js, a player, chapters and the
 * transcript. All session data is base64 of JSON and is shown as text, so none of it is markup; output has
 * passed the filter; and the page's policy allows no script but its own two.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Replay } from '../../replay/replay.ts'
import { pageData } from './data.ts'
import { PAGE_SCRIPT } from './script.ts'

const STYLE = `
body { margin: 1em; font: 14px/1.4 sans-serif; color: #ddd; background: #222 }
main { display: flex; gap: 1em; align-items: flex-start }
nav { display: flex; flex-wrap: wrap; gap: .5em; align-items: center; margin: .5em 0 }
#slider { width: 30em } #screen { overflow: auto; max-width: 75vw }
#chapters { display: flex; flex-direction: column; max-height: 80vh; overflow: auto }
#chapters button { text-align: left; white-space: pre-wrap; color: #9cf; background: none; border: 0; cursor: pointer }
pre { white-space: pre-wrap; overflow-wrap: anywhere }`

const BODY = `
<h1 id="title"></h1>
<nav>
<button id="play">Play</button>
<input id="slider" type="range" min="0" step="0.001" aria-label="position">
<span id="time"></span>
<label>Speed <select id="speed"><option>0.5<option selected>1<option>2<option>4<option>8<option>16</select></label>
<label><input id="idle" type="checkbox" checked> Skip idle time</label>
<label>Channel <select id="channel"></select></label>
</nav>
<main><div id="screen"></div><section><h2>Chapters</h2><div id="chapters"></div></section></main>
<details><summary>Transcript</summary><pre id="transcript"></pre></details>
<details><summary>Recording</summary><table id="metadata"></table></details>`

/** Yields pieces of the page; `main` is the place in the directory of the channel that is shown first. */
export async function* exportHtml(replay: Replay, main: number): AsyncGenerator<string> {
  const { xterm, style } = library()
  const policy = [
    "default-src 'none'",
    `script-src ${[xterm, PAGE_SCRIPT].map(hashOf).join(' ')}`,
    // xterm.js writes its colours and sizes into style elements.
    "style-src 'unsafe-inline'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
  yield `<!doctype html>\n<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width"><title>Session</title>
<style>${style}${STYLE}</style></head><body>${BODY}\n`
  const { channels, chapters, duration } = replay.directory
  const shown = channels.map(({ place: _, outputs: __, ...rest }) => rest)
  const header = { metadata: replay.header.metadata, duration, channels: shown, chapters, main }
  yield block('id="header"', JSON.stringify(header))
  for await (const lines of pageData(replay)) yield block('class="data"', lines)
  yield `<script>${xterm}</script>\n<script>${PAGE_SCRIPT}</script>\n</body></html>\n`
}

function block(attribute: string, text: string): string {
  return `<script type="application/octet-stream" ${attribute}>${Buffer.from(text).toString('base64')}</script>\n`
}

function hashOf(script: string): string {
  return `'sha256-${createHash('sha256').update(script).digest('base64')}'`
}

/** Returns the parts of xterm.js that a browser needs. */
function library(): { xterm: string; style: string } {
  const { resolve } = createRequire(import.meta.url)
  const script = readFileSync(resolve('@xterm/xterm'), 'utf8').replace(
    /\n\/\/# sourceMappingURL=.*\s*$/,
    '\n',
  )
  return { xterm: script, style: readFileSync(resolve('@xterm/xterm/css/xterm.css'), 'utf8') }
}
