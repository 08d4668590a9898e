/** Names of groups at servers: plain ones, and distinguished names of directories (RFC 4514), in a form to compare. */
import { Buffer, isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { nameKey } from './names.ts'

/** Characters: distinguished names of deep trees are long. */
export const MAX_GROUP_NAME = 2048
/** Longest key that is kept as it is; an index has room for no more. */
const MAX_KEY = 512
const ATTRIBUTE = /^\s*([A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)*)\s*=/

/**
 * Returns the form in which groups are compared: two spellings of one distinguished name have the same. A part of such a name
 * is no name: `admins` is not `cn=admins,dc=lab`.
 */
export function groupKey(name: string): string {
  const key = dnKey(name) ?? nameKey(name.trim())
  return key.length <= MAX_KEY ? key : `sha256:${createHash('sha256').update(key).digest('hex')}`
}

/** Returns undefined for a text that is no distinguished name. */
function dnKey(name: string): string | undefined {
  const parts: string[] = []
  for (const [at, [text, separator]] of splitAt(name).entries()) {
    const match = ATTRIBUTE.exec(text)
    const value = match && unescaped(text.slice(match[0].length))
    if (value === undefined || value === null || (at === 0 && text === '')) return undefined
    parts.push(`${match![1]!.toLowerCase()}=${JSON.stringify(nameKey(value))}${separator}`)
  }
  return parts.join('')
}

/** Returns the parts between separators that are not escaped, each with the separator behind it. */
function splitAt(name: string): [text: string, separator: string][] {
  const parts: [string, string][] = []
  let begin = 0
  for (let at = 0; at < name.length; at++) {
    const character = name.charAt(at)
    if (character === '\\') at += 1
    else if (character === ',' || character === ';' || character === '+') {
      parts.push([name.slice(begin, at), character === '+' ? '+' : ','])
      begin = at + 1
    }
  }
  parts.push([name.slice(begin), ''])
  return parts
}

/** Returns a value without its escapes and the spaces around it, or undefined if an escape is none. */
function unescaped(text: string): string | undefined {
  const bytes: Buffer[] = []
  // A space at the end counts if it is escaped.
  const value = text.replace(/^ +/, '').replace(/((?:^|[^\\])(?:\\\\)*(?:\\ )?) *$/, '$1')
  for (let at = 0; at < value.length; ) {
    if (value.charAt(at) !== '\\') {
      const next = value.indexOf('\\', at)
      bytes.push(Buffer.from(value.slice(at, next === -1 ? undefined : next)))
      at = next === -1 ? value.length : next
      continue
    }
    const hex = /^[0-9a-fA-F]{2}/.exec(value.slice(at + 1, at + 3))
    if (hex) bytes.push(Buffer.from(hex[0], 'hex'))
    else if (at + 1 < value.length) bytes.push(Buffer.from(value.charAt(at + 1)))
    else return undefined
    at += hex ? 3 : 2
  }
  const all = Buffer.concat(bytes)
  return isUtf8(all) ? all.toString('utf8') : undefined
}
