/** The files of the pages: style sheet, icon, and the script for security keys. */
import { createHash } from 'node:crypto'
import { KEY_SCRIPT } from './script.ts'
import { STYLE } from './style.ts'

/** A gate in a wall. */
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path fill="#3f74e8" d="M3 3h4v2h3V3h4v2h3V3h4v18h-5v-6a4 4 0 0 0-8 0v6H3z"/></svg>`

/** A file of the pages, at an address that changes with it. */
function asset(path: string, type: string, text: string) {
  const version = createHash('sha256').update(text).digest('base64url').slice(0, 16)
  return { path, type, text, url: `${path}?v=${version}` }
}

export const STYLE_SHEET = asset('/pages/style.css', 'text/css; charset=utf-8', STYLE.trimStart())
export const PAGE_ICON = asset('/pages/icon.svg', 'image/svg+xml', ICON)
export const KEY_SCRIPT_FILE = asset('/pages/key.js', 'text/javascript; charset=utf-8', KEY_SCRIPT)
