/** Writes XML: text and attributes are escaped, so that no value becomes markup. */

export type Xml = { readonly xml: string }

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
}

/** Returns an element. Attributes and children that are undefined are left out. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | undefined>>,
  children: readonly (Xml | string | undefined)[] = [],
): Xml {
  const written = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [` ${key}="${escaped(value)}"`],
  )
  const content = children.map((child) => (typeof child === 'string' ? escaped(child) : (child?.xml ?? '')))
  return { xml: `<${name}${written.join('')}>${content.join('')}</${name}>` }
}

const escaped = (text: string): string => text.replaceAll(/[&<>"\t\n\r]/g, (one) => ESCAPES[one]!)
