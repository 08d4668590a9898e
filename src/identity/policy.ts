/**
 * Rules for users' passwords (NIST SP 800-63B 3.1.1.2): long enough, and nothing that attackers try first:
 * common passwords, the user's own names, one thing repeated, a row of the keyboard or the alphabet. Digits
 * or signs are not required, since people just append them to a word. Applied when a password is set, never
 * when it is checked.
 */
import { MIN_LENGTH } from '../model/password-length.ts'

/** Characters that are needed besides the user's names and that do not continue a sequence. */
const OWN = 6
/** Extra characters around a common password that do not make it another one: `Password123!`. */
const AROUND = 6
/** Shortest part of a name that is looked for. */
const LEAST_NAME = 3

/** Signs that stand for letters. */
const LETTERS: Readonly<Record<string, string>> = {
  '@': 'a',
  '4': 'a',
  '3': 'e',
  '1': 'i',
  '!': 'i',
  '0': 'o',
  $: 's',
  '5': 's',
  '7': 't',
}

export class PasswordPolicy {
  readonly #minLength: number
  #common: Promise<ReadonlySet<string>> | undefined

  /** `minLength` in characters. */
  constructor({ minLength = MIN_LENGTH }: { minLength?: number } = {}) {
    this.#minLength = minLength
  }

  /** Returns what is wrong with a new password of a user with these names, or undefined. */
  async flawOf(password: string, names: readonly string[]): Promise<string | undefined> {
    const text = password.normalize('NFC').toLowerCase()
    if ([...text].length < this.#minLength) return `expected ${this.#minLength} characters at least`
    if (isMonotonous(text)) return 'it repeats itself, or is a row of characters: nobody has to guess long'
    if (isLittleMoreThan(text, names)) return 'it is little more than a name of the user'
    // Loaded on demand: most commands of the command line set no password.
    this.#common ??= commonPasswords()
    const common = await this.#common
    return formsOf(text).some((form) => common.has(form)) ? 'it is one that many people have' : undefined
  }
}

async function commonPasswords(): Promise<ReadonlySet<string>> {
  const { dictionary } = await import('@zxcvbn-ts/language-common')
  return new Set(dictionary['passwords-common'])
}

/** Returns the password, also without digits and signs around it, and with letters in place of signs. */
function formsOf(text: string): string[] {
  const bare = text.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, '')
  const forms = text.length - bare.length <= AROUND && bare !== '' ? [text, bare] : [text]
  const read = forms.map((form) => form.replace(/[@431!0$57]/g, (sign) => LETTERS[sign]!))
  return [...forms, ...read]
}

function isLittleMoreThan(text: string, names: readonly string[]): boolean {
  const parts = names
    .flatMap((name) =>
      name
        .normalize('NFC')
        .toLowerCase()
        .split(/[^\p{L}\p{N}]+/u),
    )
    .filter((part) => part.length >= LEAST_NAME)
    .flatMap((part) => [part, [...part].reverse().join('')])
    .toSorted((a, b) => b.length - a.length)
  if (!parts.some((part) => text.includes(part))) return false
  const rest = parts.reduce((left, part) => left.replaceAll(part, ''), text)
  return rest.replace(/[^\p{L}\p{N}]/gu, '').length < OWN
}

/** One unit repeated (`abcabcabc`), or steps of one size (`12345678`, `hgfedcba`). */
function isMonotonous(text: string): boolean {
  for (let unit = 1; unit < OWN; unit++) {
    if (text.slice(unit) === text.slice(0, -unit)) return true
  }
  let changes = 0
  for (let at = 2; at < text.length; at++) {
    const step = text.charCodeAt(at) - text.charCodeAt(at - 1)
    if (step !== text.charCodeAt(at - 1) - text.charCodeAt(at - 2)) changes++
  }
  return changes < OWN - 2
}
