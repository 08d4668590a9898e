/** Landlock: a process gives up all files but those it names, for itself and its children, for ever. */
import { closeSync, fstatSync, openSync } from 'node:fs'
import type { Kernel } from './kernel.ts'
import { CALLS } from './system-calls.ts'

const CREATE_RULESET_VERSION = 1
const RULE_PATH_BENEATH = 1
const O_PATH = 0o10000000

/** Rights beneath a path (linux/landlock.h). */
const EXECUTE = 1 << 0
const READ_FILE = 1 << 2
const READ_DIR = 1 << 3
/** How many rights over files each version knows; a right that is not handled is not held back. */
const FILE_RIGHTS = [13, 14, 15, 15, 16] as const

const BIND_TCP = 1
const FIRST_WITH_NETWORK = 4
/** Abstract Unix sockets, and signals, to processes outside. */
const SCOPES = 0b11
const FIRST_WITH_SCOPES = 6

/**
 * Leaves the calling thread with the files beneath `readable`, which it may read and run: no other file, no
 * writing, no port to listen on, no signal to a process outside. Returns the version of Landlock. Paths that
 * are not there are left out. The thread needs "no new privileges".
 */
export function restrictFiles(
  kernel: Kernel,
  readable: readonly string[],
): { version: number } | { missing: string } {
  const version = kernel.call(CALLS.landlock_create_ruleset, 0, 0, CREATE_RULESET_VERSION)
  if (version < 1) return { missing: `this kernel has no Landlock (error ${-version})` }
  const attributes = attributesOf(version)
  const ruleset = kernel.call(CALLS.landlock_create_ruleset, attributes, attributes.length, 0)
  if (ruleset < 0) return { missing: `Landlock accepts no rules (error ${-ruleset})` }
  try {
    for (const path of readable) allow(kernel, ruleset, path)
    const result = kernel.call(CALLS.landlock_restrict_self, ruleset, 0)
    return result < 0 ? { missing: `Landlock's rules do not hold (error ${-result})` } : { version }
  } finally {
    closeSync(ruleset)
  }
}

/** `struct landlock_ruleset_attr`, as long as the version knows it. */
function attributesOf(version: number): Uint8Array {
  const rights = FILE_RIGHTS[Math.min(version, FILE_RIGHTS.length) - 1]!
  const fields = [2 ** rights - 1]
  if (version >= FIRST_WITH_NETWORK) fields.push(BIND_TCP)
  if (version >= FIRST_WITH_SCOPES) fields.push(SCOPES)
  return new Uint8Array(BigUint64Array.from(fields, BigInt).buffer)
}

function allow(kernel: Kernel, ruleset: number, path: string): void {
  let parent: number
  try {
    parent = openSync(path, O_PATH)
  } catch {
    return
  }
  try {
    const rights = fstatSync(parent).isDirectory() ? EXECUTE | READ_FILE | READ_DIR : EXECUTE | READ_FILE
    const rule = Buffer.alloc(12)
    rule.writeBigUInt64LE(BigInt(rights), 0)
    rule.writeInt32LE(parent, 8)
    const result = kernel.call(CALLS.landlock_add_rule, ruleset, RULE_PATH_BENEATH, rule, 0)
    if (result < 0) throw new Error(`Landlock does not accept ${path} (error ${-result})`)
  } finally {
    closeSync(parent)
  }
}
