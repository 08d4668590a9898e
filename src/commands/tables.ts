/** The common part of import and export: the API's own code on a broker's data, whether it runs or not. */
import type { ApiRequest } from '../api/access/caller.ts'
import { CSV_NAMES, type CsvName } from '../api/access/table-names.ts'
import type { ImportContext } from '../api/csv/importer.ts'
import { DEFAULT_SEPARATOR, SEPARATOR_RULE, separatorOf } from '../csv/separator.ts'
import { FACTORY_PROFILES } from '../model/profiles.ts'
import type { Beside } from './beside.ts'
import { type Invocation, textOption, UsageError } from './command.ts'
import { localUser } from './local-user.ts'

/** Returns the type that the command line names. */
export function typeOf(word: string | undefined): CsvName {
  const name = CSV_NAMES.find((one) => one === word)
  if (name === undefined) throw new UsageError(`expected a type: one of ${CSV_NAMES.join(', ')}`)
  return name
}

export function separatorOption(invocation: Invocation): string {
  const separator = separatorOf(textOption(invocation, 'separator') ?? DEFAULT_SEPARATOR)
  if (separator === undefined) throw new UsageError(`--separator: ${SEPARATOR_RULE}`)
  return separator
}

/** A user who can read the data folder has all rights. */
export function whoRunsThis(): ApiRequest {
  const profile = 'product_administrator'
  const caller = {
    name: localUser(),
    user: undefined,
    key: undefined,
    profile,
    rights: FACTORY_PROFILES[profile],
    basis: undefined,
  }
  // errors are thrown as well, and reported at the end
  return { caller, params: {}, log: { error: () => undefined }, source: {} }
}

/**
 * The API's sign-ins are held by the running broker, which checks each request: a change takes effect at
 * once.
 */
export function contextOf({ store, vault, passwords, audit }: Beside): ImportContext {
  return { deps: { store, vault, passwords, audit, clock: Date.now } }
}
