/**
 * JSON that cannot control a terminal: its texts may come from a target, and people read it with curl and
 * less.
 */

/** Characters that JSON leaves unescaped: DEL, the C1 controls, line separators, and direction marks. */
const UNSAFE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

export function jsonText(value: unknown): string {
  return escapedJson(JSON.stringify(value))
}

/** Escapes the unsafe characters of a JSON text, such as `\u009b`. */
export function escapedJson(json: string): string {
  return json.replace(UNSAFE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
