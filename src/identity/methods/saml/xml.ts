/**
 * Reads the XML of SAML messages and metadata (XML 1.0, Namespaces in XML 1.0), and less than that: documents that use more
 * of XML than SAML needs are refused before the library's parser sees them, so that both read the same.
 */
import type { Buffer } from 'node:buffer'
import { quoted, SamlError } from './error.ts'

/** Bytes of a document. */
export const MAX_XML_BYTES = 262_144
/** Elements within elements. */
export const MAX_DEPTH = 32
/** Elements and attributes. */
export const MAX_NODES = 8192
const MAX_ATTRIBUTES = 64
const MAX_NAME = 128

const XML = 'http://www.w3.org/XML/1998/namespace'
const XMLNS = 'http://www.w3.org/2000/xmlns/'

export interface XmlElement {
  /** Empty if there is none. */
  namespace: string
  local: string
  /** Attributes without a namespace, by name. */
  attributes: ReadonlyMap<string, string>
  /** Attributes of a namespace, as `NAMESPACE LOCAL`. */
  foreign: ReadonlyMap<string, string>
  children: readonly XmlElement[]
  /** Text directly in it, all pieces together. */
  text: string
  /** Its own characters in the document. */
  from: number
  to: number
}

export interface XmlLimits {
  bytes: number
  nodes: number
  /** Whether comments are left out, and not refused. */
  areCommentsSkipped: boolean
}

const MESSAGE_LIMITS: XmlLimits = { bytes: MAX_XML_BYTES, nodes: MAX_NODES, areCommentsSkipped: false }

const NAME = /[A-Za-z_][A-Za-z0-9_.-]*(?::[A-Za-z_][A-Za-z0-9_.-]*)?/y
const SPACE = /[ \t\r\n]*/y
const DECLARATION =
  /^<\?xml[ \t\r\n]+version=(?:"1\.0"|'1\.0')(?:[ \t\r\n]+encoding=(?:"utf-8"|'utf-8'))?(?:[ \t\r\n]+standalone=(?:"(?:yes|no)"|'(?:yes|no)'))?[ \t\r\n]*\?>/i
/** Characters that XML 1.0 does not know. */
const FOREIGN_CHARACTER = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

/** Returns the text of a document's bytes. @throws SamlError */
export function decodeUtf8(bytes: Uint8Array | Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new SamlError('xml', 'expected UTF-8')
  }
}

/** Returns the root of a document. @throws SamlError */
export function readXml(text: string, limits: XmlLimits = MESSAGE_LIMITS): XmlElement {
  if (limits.bytes < new TextEncoder().encode(text).length)
    throw new SamlError('size', `expected at most ${limits.bytes} bytes of XML`)
  if (FOREIGN_CHARACTER.test(text)) throw new SamlError('xml', 'it holds a character that XML does not know')
  return new Reader(text, limits).document()
}

interface Open {
  name: string
  namespaces: ReadonlyMap<string, string>
  element: Omit<XmlElement, 'children' | 'text'> & { children: XmlElement[]; text: string }
}

class Reader {
  readonly #text: string
  readonly #limits: XmlLimits
  #at = 0
  #nodes = 0

  constructor(text: string, limits: XmlLimits) {
    this.#text = text
    this.#limits = limits
  }

  document(): XmlElement {
    this.#at = DECLARATION.exec(this.#text)?.[0].length ?? 0
    this.#misc()
    const root = this.#element()
    this.#misc()
    if (this.#at < this.#text.length) throw new SamlError('xml', 'the document goes on after its root')
    return root
  }

  /** Reads elements with a list of those that are open: depth costs no stack. */
  #element(): XmlElement {
    const open: Open[] = []
    for (;;) {
      const begun = this.#begin(open.at(-1), open.length)
      if (begun.isEmpty) {
        if (open.length === 0) return begun.element
      } else open.push(begun)
      let current = open.at(-1)!
      while (!this.#content(current)) {
        open.pop()
        const parent = open.at(-1)
        if (!parent) return current.element
        current = parent
      }
    }
  }

  /** Reads the content of an element up to the next one's start (true) or its own end (false). */
  #content(current: Open): boolean {
    for (;;) {
      const next = this.#text.indexOf('<', this.#at)
      if (next === -1) throw new SamlError('xml', `the element ${current.name} does not end`)
      current.element.text += this.#characters(this.#text.slice(this.#at, next), 'text')
      this.#at = next
      if (this.#startsWith('</')) {
        this.#at += 2
        const name = this.#name()
        this.#space()
        this.#expect('>')
        if (name !== current.name)
          throw new SamlError('xml', `expected the end of ${current.name}, got that of ${name}`)
        current.element.to = this.#at
        return false
      }
      if (this.#startsWith('<!--')) this.#comment()
      else return true
    }
  }

  #begin(parent: Open | undefined, depth: number): Open & { isEmpty: boolean } {
    this.#refuseMarkup()
    if (MAX_DEPTH <= depth) throw new SamlError('depth', `more than ${MAX_DEPTH} elements within each other`)
    const from = this.#at
    this.#expect('<')
    const name = this.#name()
    const { namespaces, plain, foreign } = this.#attributes(parent?.namespaces ?? new Map([['xml', XML]]))
    const isEmpty = this.#startsWith('/')
    if (isEmpty) this.#at += 1
    this.#expect('>')
    this.#count(1)
    const { prefix, local } = partsOf(name)
    const namespace = namespaces.get(prefix)
    if (namespace === undefined && prefix !== '')
      throw new SamlError('xml', `the prefix of ${name} is bound to no namespace`)
    const element = {
      namespace: namespace ?? '',
      local,
      attributes: plain,
      foreign,
      children: [],
      text: '',
      from,
      to: this.#at,
    }
    parent?.element.children.push(element)
    return { name, namespaces, element, isEmpty }
  }

  #attributes(outer: ReadonlyMap<string, string>) {
    const raw = new Map<string, string>()
    for (;;) {
      const before = this.#at
      this.#space()
      if (this.#startsWith('>') || this.#startsWith('/')) break
      if (this.#at === before) throw new SamlError('xml', 'expected a blank before an attribute')
      const name = this.#name()
      this.#space()
      this.#expect('=')
      this.#space()
      if (raw.has(name)) throw new SamlError('xml', `the attribute ${name} comes twice`)
      raw.set(name, this.#value())
      if (MAX_ATTRIBUTES < raw.size) throw new SamlError('nodes', `more than ${MAX_ATTRIBUTES} attributes`)
    }
    this.#count(raw.size)
    return sorted(raw, outer)
  }

  #value(): string {
    const quote = this.#text[this.#at]
    if (quote !== '"' && quote !== "'") throw new SamlError('xml', 'expected an attribute in quotes')
    const end = this.#text.indexOf(quote, this.#at + 1)
    if (end === -1) throw new SamlError('xml', 'an attribute does not end')
    const value = this.#text.slice(this.#at + 1, end)
    this.#at = end + 1
    if (value.includes('<')) throw new SamlError('xml', 'an attribute holds "<"')
    return this.#characters(value, 'attribute')
  }

  #characters(raw: string, kind: 'text' | 'attribute'): string {
    if (kind === 'text' && raw.includes(']]>')) throw new SamlError('xml', 'text holds "]]>"')
    const text = raw.replaceAll(/\r\n?/g, '\n')
    // Attributes are normalized (XML 1.0, 3.3.3); characters that are written as references are not.
    const plain = kind === 'attribute' ? text.replaceAll(/[\t\n]/g, ' ') : text
    return plain.replaceAll(/&([^;&]{0,12};?)/g, (_whole, reference: string) => characterOf(reference))
  }

  #misc(): void {
    for (;;) {
      this.#space()
      if (!this.#startsWith('<!--')) break
      this.#comment()
    }
    if (this.#at < this.#text.length) this.#refuseMarkup()
  }

  #comment(): void {
    if (!this.#limits.areCommentsSkipped) throw new SamlError('comment', 'a message may hold no comments')
    const end = this.#text.indexOf('--', this.#at + 4)
    if (end === -1 || this.#text[end + 2] !== '>') throw new SamlError('xml', 'a comment does not end')
    this.#at = end + 3
  }

  #refuseMarkup(): void {
    if (this.#startsWith('<!DOCTYPE')) throw new SamlError('doctype', 'a document type is refused')
    if (this.#startsWith('<?'))
      throw new SamlError('processing_instruction', 'processing instructions are refused')
    if (this.#startsWith('<!')) throw new SamlError('xml', 'marked sections (CDATA) are refused')
  }

  #count(more: number): void {
    this.#nodes += more
    if (this.#limits.nodes < this.#nodes)
      throw new SamlError('nodes', `more than ${this.#limits.nodes} elements and attributes`)
  }

  #name(): string {
    NAME.lastIndex = this.#at
    const name = NAME.exec(this.#text)?.[0]
    if (name === undefined) throw new SamlError('xml', 'expected a name of ASCII letters, digits, and . - _')
    if (MAX_NAME < name.length) throw new SamlError('xml', `expected names of at most ${MAX_NAME} characters`)
    this.#at += name.length
    return name
  }

  #space(): void {
    SPACE.lastIndex = this.#at
    this.#at += SPACE.exec(this.#text)![0].length
  }

  #expect(text: string): void {
    if (!this.#startsWith(text))
      throw new SamlError(
        'xml',
        `expected "${text}", got ${JSON.stringify(this.#text.slice(this.#at, this.#at + 10))}`,
      )
    this.#at += text.length
  }

  #startsWith(text: string): boolean {
    return this.#text.startsWith(text, this.#at)
  }
}

/** Sorts the attributes of an element, whose namespaces add to those around it. @throws SamlError */
function sorted(raw: ReadonlyMap<string, string>, outer: ReadonlyMap<string, string>) {
  const own = [...raw].filter(([name]) => name === 'xmlns' || name.startsWith('xmlns:'))
  const namespaces = own.length === 0 ? outer : new Map(outer)
  for (const [name, uri] of own) {
    const prefix = name === 'xmlns' ? '' : name.slice(6)
    if (
      prefix === 'xmlns' ||
      prefix === 'xml' ||
      uri === XML ||
      uri === XMLNS ||
      (prefix !== '' && uri === '')
    )
      throw new SamlError('xml', `the prefix ${prefix} cannot be bound to ${JSON.stringify(uri)}`)
    // The library's canonical form writes them as they are.
    if (/["'<>&\s]/.test(uri))
      throw new SamlError('xml', `expected a namespace without quotes and blanks, got ${quoted(uri)}`)
    ;(namespaces as Map<string, string>).set(prefix, uri)
  }
  const plain = new Map<string, string>()
  const foreign = new Map<string, string>()
  for (const [name, value] of raw) {
    if (name === 'xmlns' || name.startsWith('xmlns:')) continue
    const { prefix, local } = partsOf(name)
    if (prefix === '') {
      plain.set(local, value)
      continue
    }
    const namespace = namespaces.get(prefix)
    if (namespace === undefined) throw new SamlError('xml', `the prefix of ${name} is bound to no namespace`)
    const key = `${namespace} ${local}`
    if (foreign.has(key)) throw new SamlError('xml', `the attribute ${name} comes twice`)
    foreign.set(key, value)
  }
  return { namespaces, plain, foreign }
}

function partsOf(name: string): { prefix: string; local: string } {
  const at = name.indexOf(':')
  return { prefix: at === -1 ? '' : name.slice(0, at), local: name.slice(at + 1) }
}

/** @throws SamlError unless it is a character by its number, or one of the five entities of XML itself */
function characterOf(reference: string): string {
  const [, hex, decimal, name] =
    /^(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|(lt|gt|amp|quot|apos));$/i.exec(reference) ?? []
  const known = name === undefined ? undefined : ENTITIES[name]
  if (known !== undefined) return known
  const code = hex === undefined ? Number(decimal ?? Number.NaN) : Number.parseInt(hex, 16)
  const character = 0 <= code && code <= 0x10ffff ? String.fromCodePoint(code) : undefined
  if (character === undefined || FOREIGN_CHARACTER.test(character))
    throw new SamlError(
      'entity',
      `"&${reference.slice(0, 12)}" is refused: only characters by their number, and lt, gt, amp, quot, apos`,
    )
  return character
}
