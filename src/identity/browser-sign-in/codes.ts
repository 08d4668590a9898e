/** Codes that a person reads on one screen and types on another: no letter that looks like a digit. */
const LETTERS = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ'
const CODE_LETTERS = 8
const CHECK_LETTERS = 3

/** Of 40 random bits. */
export function newCode(randomBytes: (length: number) => Uint8Array): string {
  return lettersOf(randomBytes(CODE_LETTERS))
}

/** Shown on both sides, for the person to compare. */
export function newCheck(randomBytes: (length: number) => Uint8Array): string {
  return lettersOf(randomBytes(CHECK_LETTERS))
}

const lettersOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => LETTERS[byte % LETTERS.length]).join('')

export const shownCode = (code: string): string => `${code.slice(0, 4)}-${code.slice(4)}`

/** Returns the code that a person has typed in any spelling, or undefined if it is none. */
export function typedCode(text: string): string | undefined {
  const code = text.toUpperCase().replaceAll(/[\s-]/g, '')
  return code.length === CODE_LETTERS && [...code].every((letter) => LETTERS.includes(letter))
    ? code
    : undefined
}
