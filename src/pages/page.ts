/** The frame of every page: its HTML around the content, and the header fields that a browser protects it by. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { KEY_SCRIPT_FILE, PAGE_ICON, STYLE_SHEET } from './files.ts'
import { type Html, html } from './html.ts'
import { keepChoice, LANGUAGES, languageOf } from './languages/languages.ts'

export interface Page {
  title: string
  /** Content of `main`. */
  body: Html
  status?: number
  isWide?: boolean
  /** Whether it has the script for security keys. */
  hasScript?: boolean
  /** Path and query to which the links to other languages lead; left out on pages that a link cannot show again. */
  path?: string
  /** Origins to which its forms may lead, besides this one. */
  formsTo?: readonly string[]
}

const LOGO = html`<svg viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path fill="currentColor" d="M3 3h4v2h3V3h4v2h3V3h4v18h-5v-6a4 4 0 0 0-8 0v6H3z"/></svg>`

/** Sends a page in the language of the request. */
export function sendPage(request: FastifyRequest, reply: FastifyReply, page: Page): FastifyReply {
  keepChoice(request, reply)
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    ...(page.hasScript ? ["script-src 'self'"] : []),
    `form-action ${["'self'", ...(page.formsTo ?? [])].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  return reply
    .code(page.status ?? 200)
    .headers({
      'content-security-policy': policy.join('; '),
      'content-language': languageOf(request),
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      // Without the own address a form would be sent as from nowhere.
      'referrer-policy': 'same-origin',
      'x-frame-options': 'DENY',
      vary: 'Accept-Language, Cookie',
    })
    .type('text/html; charset=utf-8')
    .send(documentOf(request, page).toString())
}

function documentOf(request: FastifyRequest, { title, body, isWide, hasScript, path }: Page): Html {
  return html`<!DOCTYPE html>
<html lang="${languageOf(request)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Sallyport</title>
<link rel="stylesheet" href="${STYLE_SHEET.url}">
<link rel="icon" type="image/svg+xml" href="${PAGE_ICON.url}">
${hasScript && html`<script src="${KEY_SCRIPT_FILE.url}" defer></script>`}
</head>
<body>
<header>${LOGO}<span>Sallyport</span></header>
<main${isWide && html` class="wide"`}>
${body}
</main>
<footer>${path !== undefined && languageLinks(request, path)}</footer>
</body>
</html>
`
}

function languageLinks(request: FastifyRequest, path: string): Html {
  const current = languageOf(request)
  const url = (language: string) => `${path}${path.includes('?') ? '&' : '?'}lang=${language}`
  const links = Object.entries(LANGUAGES).map(([language, { name }]) =>
    language === current
      ? html`<span aria-current="true">${name}</span>`
      : html`<a href="${url(language)}" lang="${language}" hreflang="${language}">${name}</a>`,
  )
  return html`<nav aria-label="${Object.values(LANGUAGES)
    .map(({ name }) => name)
    .join(', ')}">${links}</nav>`
}
