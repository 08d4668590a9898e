/** Strict readers of the formats of syslog messages, written from their specifications. */

export type Read = Record<string, string>

/** Reads RFC 5424 6 up to the message. Returns undefined if it is malformed. */
export function readMessage(
  message: Uint8Array,
): { priority: number; code: string; text: string } | undefined {
  const found =
    /^<(\d{1,3})>1 \S+ [\x21-\x7e]{1,255} [\x21-\x7e]{1,48} [\x21-\x7e]{1,128} ([\x21-\x7e]{1,32}) - (.*)$/su.exec(
      Buffer.from(message).toString('utf8'),
    )
  return found ? { priority: Number(found[1]), code: found[2]!, text: found[3]! } : undefined
}

/** Reads text up to a character that no backslash is before. */
function* split(text: string, separator: string, limit: number): Generator<string> {
  let part = ''
  let parts = 1
  for (let at = 0; at < text.length; at++) {
    const one = text[at]!
    if (one === '\\' && parts < limit) part += one + (text[++at] ?? '')
    else if (one === separator && parts < limit) {
      yield part
      part = ''
      parts++
    } else part += one
  }
  yield part
}

/** Reads ArcSight's Common Event Format: seven parts of a header, then an extension. */
export function readCef(text: string): { header: string[]; extension: Read } | undefined {
  if (!text.startsWith('CEF:0|')) return undefined
  const [, ...parts] = split(text, '|', 8)
  if (parts.length !== 7) return undefined
  const header = parts.slice(0, 6).map((part) => part.replace(/\\([\\|])/g, '$1'))
  const extension: Read = {}
  let rest = parts[6]!
  while (rest !== '') {
    const key = /^([A-Za-z0-9]+)=/.exec(rest)
    if (!key) return undefined
    rest = rest.slice(key[0].length)
    // A value ends before a space and the next key, and has each `=` escaped.
    const value = /^((?:\\.|[^\\=])*?)(?: (?=[A-Za-z0-9]+=)|$)/su.exec(rest)
    if (!value) return undefined
    rest = rest.slice(value[0].length)
    if (Object.hasOwn(extension, key[1]!)) return undefined
    extension[key[1]!] = value[1]!.replace(/\\([\\=])/g, '$1')
  }
  return { header, extension }
}

/** Reads IBM's Log Event Extended Format 2.0: six parts of a header, then attributes. */
export function readLeef(text: string): { header: string[]; attributes: Read } | undefined {
  const [version, vendor, product, release, id, delimiter, ...rest] = text.split('|')
  if (version !== 'LEEF:2.0' || !/^x[0-9A-Fa-f]{1,4}$/.test(delimiter ?? '')) return undefined
  const between = String.fromCodePoint(Number.parseInt(delimiter!.slice(1), 16))
  const attributes: Read = {}
  for (const pair of rest.join('|').split(between)) {
    const [, key, value] = /^([A-Za-z][A-Za-z0-9]*)=(.*)$/s.exec(pair) ?? []
    if (key === undefined || Object.hasOwn(attributes, key)) return undefined
    attributes[key] = value!
  }
  return { header: [vendor!, product!, release!, id!], attributes }
}

/** Reads a JSON object as `a.b.c` and values. Returns undefined for a name that occurs twice. */
export function readEcs(text: string): Record<string, unknown> {
  const flat: Record<string, unknown> = {}
  const walk = (path: string, value: unknown): void => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) flat[path] = value
    else for (const [name, one] of Object.entries(value)) walk(path === '' ? name : `${path}.${name}`, one)
  }
  walk('', JSON.parse(text))
  return flat
}
