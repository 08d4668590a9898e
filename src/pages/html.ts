/** HTML that is escaped by construction: the template `html` escapes every value that is not itself `Html`. */

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A piece of a page. Only `html` makes one. */
class Html {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  toString(): string {
    return this.#text
  }
}

export type { Html }

/** Value of a template: text is escaped, an absent one leaves nothing. */
export type HtmlValue = Html | string | number | false | undefined | readonly HtmlValue[]

/** Makes a piece of a page. Values stand in text, or in attributes within double quotes. */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  const text = parts.map((part, index) => part + (index < values.length ? textOf(values[index]) : ''))
  return new Html(text.join(''))
}

function textOf(value: HtmlValue): string {
  if (value === undefined || value === false) return ''
  if (value instanceof Html) return value.toString()
  if (typeof value === 'object') return value.map(textOf).join('')
  return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}
