/** Reads the configuration file: YAML, checked against the schema; errors name the line of each fault. */
import { readFileSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import Value from 'typebox/value'
import { type Document, isMap, isNode, isSeq, LineCounter, parseDocument } from 'yaml'
import { checkAgainst, type Problem, pathText, withoutUserinfo } from './check.ts'
import type { Config } from './config.ts'
import { resolveConfig } from './resolve.ts'
import { type ConfigFile, ConfigSchema } from './schema.ts'

/** Bytes; a configuration is a page or two. */
const MAX_FILE = 1024 * 1024

/** Lists every fault of the file, one line each. */
export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** The parts of the environment that the configuration may read. */
export interface Surroundings {
  env: Readonly<Record<string, string | undefined>>
  hostname: string
}

/**
 * Loads the configuration in `file`. Throws ConfigError if it cannot be read, is not YAML, or has any fault.
 * Reads the secrets that it names by file or variable, but not the master key.
 */
export function loadConfig(
  file: string,
  surroundings: Surroundings = { env: process.env, hostname: hostname() },
): Config {
  let text: string
  try {
    const { size } = statSync(file)
    if (size > MAX_FILE) throw new Error(`it has ${size} bytes, at most ${MAX_FILE} are read`)
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError([`cannot read the configuration ${file}: ${(error as Error).message}`])
  }
  return parseConfig(text, resolve(file), surroundings)
}

/** Parses a text like `loadConfig`; relative paths start at `file`. */
export function parseConfig(text: string, file: string, surroundings: Surroundings): Config {
  const lines = new LineCounter()
  // no pretty errors: they quote the line, which may hold a secret
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const at = (offset: number, message: string) => `${file}:${lines.linePos(offset).line}: ${message}`
  if (document.errors.length > 0) {
    throw new ConfigError(document.errors.map((error) => at(error.pos[0], yamlMessage(error, text))))
  }
  const say = ({ path, message }: Problem) =>
    at(offsetOf(document, path), path.length > 0 ? `${withoutUserinfo(pathText(path))}: ${message}` : message)

  const content = dropEmpty(plain(document, file) ?? {})
  const problems = checkAgainst(ConfigSchema, content)
  if (problems.length > 0) throw new ConfigError(problems.map(say))
  const resolved = resolveConfig(Value.Default(ConfigSchema, content) as ConfigFile, file, surroundings)
  if (resolved.problems.length > 0) throw new ConfigError(resolved.problems.map(say))
  return resolved.config
}

function plain(document: Document, file: string): unknown {
  try {
    return document.toJS()
  } catch (error) {
    // an alias without an anchor, or too many aliases
    throw new ConfigError([`${file}: ${withoutUserinfo((error as Error).message)}`])
  }
}

function yamlMessage(error: { code: string; message: string; pos: [number, number] }, text: string): string {
  const message = withoutUserinfo(error.message).replace(/^./, (letter) => letter.toLowerCase())
  const loneDash = /^-\s*[,}\n]/.test(text.slice(error.pos[0]))
  return loneDash ? `${message}; write "-" in quotes` : message
}

/** Treats a section whose keys are all commented out as absent. */
function dropEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(dropEmpty)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== null)
      .map(([key, item]) => [key, dropEmpty(item)]),
  )
}

/**
 * Returns the offset of a path's key or list item in the file, or of the deepest existing part of the path.
 */
function offsetOf(document: Document, path: readonly (string | number)[]): number {
  let node: unknown = document.contents
  let offset = 0
  for (const part of path) {
    let next: unknown
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => String(key) === part)
      if (isNode(pair?.key) && pair.key.range) offset = pair.key.range[0]
      next = pair?.value
    } else if (isSeq(node)) {
      next = node.items[Number(part)]
      if (isNode(next) && next.range) offset = next.range[0]
    }
    node = next
  }
  return offset
}
