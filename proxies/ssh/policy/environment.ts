/**
 * Environment variables that a client may set for its session on the target. Other variables could change
 * which programs run there (LD_PRELOAD, BASH_ENV, PATH, PROMPT_COMMAND, SSH_*), so this is a list of the
 * allowed ones.
 */
const NAMES = new Set(['LANG', 'LANGUAGE', 'TERM', 'COLORTERM', 'GIT_PROTOCOL', 'TZ', 'NO_COLOR'])
const LOCALE = /^LC_[A-Z_]{1,32}$/
/** Longer values have no use in a locale or a terminal's name. */
const MAX_VALUE = 1024

export function mayPass(name: string, value: Uint8Array): boolean {
  return (NAMES.has(name) || LOCALE.test(name)) && value.length <= MAX_VALUE
}
