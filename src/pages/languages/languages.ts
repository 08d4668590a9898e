/** Languages of the pages: by the user's choice, which a cookie keeps, else by what the browser prefers. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { cookieOf, setCookie } from '../cookies.ts'
import { de } from './de.ts'
import { en, type Messages } from './en.ts'
import { es } from './es.ts'
import { fr } from './fr.ts'

export const LANGUAGES = { en, fr, de, es } as const satisfies Record<string, Messages>
export type Language = keyof typeof LANGUAGES

/** Ranges of Accept-Language that are looked at. */
const MAX_RANGES = 20

const isLanguage = (text: unknown): text is Language =>
  typeof text === 'string' && Object.hasOwn(LANGUAGES, text)

/** Returns the language of a request. */
export function languageOf(request: FastifyRequest): Language {
  const kept = cookieOf(request, 'language')
  return (
    chosenBy(request) ??
    (isLanguage(kept) ? kept : preferredOf(request.headers['accept-language'] ?? '')) ??
    'en'
  )
}

export function messagesOf(request: FastifyRequest): Messages {
  return LANGUAGES[languageOf(request)]
}

/** Keeps the choice of the request, if it has one. */
export function keepChoice(request: FastifyRequest, reply: FastifyReply): void {
  const value = chosenBy(request)
  if (value !== undefined) setCookie(request, reply, 'language', { value, isKept: true })
}

/** Returns the choice by a link of the page. */
function chosenBy({ query }: FastifyRequest): Language | undefined {
  const { lang } = (query ?? {}) as Record<string, unknown>
  return isLanguage(lang) ? lang : undefined
}

/** Returns the best known language of an Accept-Language field (RFC 9110 12.5.4), by its first subtag. */
export function preferredOf(field: string): Language | undefined {
  const ranges = field.split(',', MAX_RANGES).flatMap((range) => {
    const [, tag = '', weight = '1'] =
      /^\s*([A-Za-z]{2,8})[\w-]*\s*(?:;\s*q=([\d.]{1,5}))?\s*$/.exec(range) ?? []
    const language = tag.toLowerCase()
    return isLanguage(language) && Number(weight) > 0 ? [{ language, weight: Number(weight) }] : []
  })
  return ranges.sort((one, other) => other.weight - one.weight)[0]?.language
}
