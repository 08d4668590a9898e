/** The bill of materials, against the lock file that npm installs from. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sbom } from '../../packaging/sbom.mjs'

const ROOT = join(import.meta.dirname, '..', '..')

interface Bill {
  components: { 'bom-ref': string; licenses?: unknown[] }[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

test('every package that an installed product has is in the bill with its licence, and no other one', () => {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; dev?: boolean }>
  }
  const shipped = Object.entries(lock.packages)
    .filter(([path, { dev }]) => path !== '' && !dev)
    .map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`)
  const bill = JSON.parse(sbom(ROOT, { name: 'sallyport', version: '1.0.0' }, 1_780_000_000)) as Bill
  const listed = bill.components.map((component) => component['bom-ref'])
  expect(listed.toSorted()).toEqual([...new Set(shipped)].sort())
  expect(bill.components.filter(({ licenses = [] }) => licenses.length === 0)).toEqual([])
  expect(listed).toEqual(expect.arrayContaining(bill.dependencies.flatMap(({ dependsOn }) => dependsOn)))
  // Needed by a package for development too.
  expect(listed).toContainEqual(expect.stringMatching(/^jose@/))
})
