/** JSON that is harmless in a terminal, too: it may come from a target, and people look at it with curl and less. */

/** What JSON leaves as it is: DEL, the C1 controls, ends of lines, and the marks that turn text around. */
const UNSAFE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** A value as JSON. */
export function jsonText(value: unknown): string {
  return escapedJson(JSON.stringify(value))
}

/** The same JSON, with these characters in its texts as `\u009b`. */
export function escapedJson(json: string): string {
  return json.replace(UNSAFE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
