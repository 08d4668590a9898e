import { readFileSync } from 'node:fs'
import { type Command, expectNoWords } from './command.ts'

/**
 * Returns the product's version, from package.json: beside src in a clone, two folders higher in a
 * build.
 */
export function productVersion(): string {
  for (const place of ['../../package.json', '../../../../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(place, import.meta.url), 'utf8'))
      if (name === 'sallyport') return String(version)
    } catch {
      // Try the other place.
    }
  }
  throw new Error('package.json is missing: install sallyport again')
}

export const version: Command = {
  synopsis: [['version', 'print the version']],
  options: { json: { type: 'boolean' } },
  async run({ options, words }) {
    expectNoWords('version', words)
    const version = productVersion()
    process.stdout.write(
      options['json'] ? `${JSON.stringify({ version, node: process.version })}\n` : `${version}\n`,
    )
    return 0
  },
}
