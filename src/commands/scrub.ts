/** Takes secrets out of texts that were not meant for others: lines of a log, messages of errors. */
import type { Config } from '../config/config.ts'
import { Secret } from '../model/secret.ts'

const MASK = '[secret]'
/** Characters below which a secret is a word that may stand anywhere. */
const MIN_LENGTH = 4

const PEM =
  /-----BEGIN [A-Z0-9 ]{0,32}(?:PRIVATE KEY|AGE[A-Z- ]{0,32}KEY)[A-Z0-9 ]{0,32}-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,64}-----|$)/g
const AGE_KEY = /AGE-SECRET-KEY-[0-9A-Z]+/g
/** The password of a URL. Counts are bounded here and below: a line of the log may be made to cost much. */
const IN_URL = /(\b[a-z][a-z0-9+.-]{0,31}:\/\/[^\s/@:"]{0,256}:)[^\s@"]{1,1024}(?=@)/gi
const BEARER = /\b(bearer|basic|negotiate|token)\s+[\w+/=.~-]{8,}/gi
/** A field of JSON, a parameter, or words, whose name says what its value is. */
const NAMED =
  /((?:password|passphrase|passwd|secret|community|token|cookie|authorization|private_?key|api_?key)[\w-]{0,64}\\?["']?\s*[:=]\s*)(\\?"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s,;&}]+)/gi

/** As the first start prints it. */
const PRINTED = /(\bpassword (?:of \S+ )?(?:is )?)[\w-]{16,}/g

/** Returns the text without these secrets, and without what looks like one. */
export function scrubbed(text: string, secrets: readonly string[]): string {
  const known = secrets.flatMap((secret) => [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
  ])
  let clean = text
  for (const one of known.filter(({ length }) => length >= MIN_LENGTH)) clean = clean.replaceAll(one, MASK)
  return clean
    .replace(PEM, MASK)
    .replace(AGE_KEY, MASK)
    .replace(IN_URL, `$1${MASK}`)
    .replace(BEARER, `$1 ${MASK}`)
    .replace(NAMED, `$1"${MASK}"`)
    .replace(PRINTED, `$1${MASK}`)
}

/** Returns the secrets of the configuration as texts. */
export function secretsOf(config: Config): string[] {
  const found: string[] = []
  const walk = (value: unknown): void => {
    if (value instanceof Secret) found.push(value.revealText())
    else if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) walk(one)
  }
  walk(config)
  return found
}
