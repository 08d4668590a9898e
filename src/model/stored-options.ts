/**
 * Options of connection policies in the database: JSON that holds the values that differ from the defaults.
 */

export function formatOptions<T extends object>(options: T, defaults: Readonly<T>): string {
  const names = Object.keys(defaults) as (keyof T)[]
  const given = names.filter((name) => JSON.stringify(options[name]) !== JSON.stringify(defaults[name]))
  return JSON.stringify(Object.fromEntries(given.map((name) => [name, options[name]])))
}

/**
 * Returns the stored options, without the defaults. @throws Error for an unknown option, which could not be
 * enforced
 */
export function storedOptions<T extends object>(text: string, defaults: Readonly<T>): Partial<T> {
  const given = JSON.parse(text) as Partial<T>
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(defaults, name))
  if (unknown !== undefined)
    throw new Error(`a connection policy has the option "${unknown}", which this program does not know`)
  return given
}
