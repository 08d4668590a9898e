/** The bill of materials: npm's, of the lock file without the packages for development. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'

const VERSION = '1.6'

/** Returns the text of the CycloneDX document, equal for equal sources. `epoch`: its time in seconds. */
export function sbom(root, { name, version }, epoch) {
  const listed = execFileSync(
    'npm',
    [
      'sbom',
      '--sbom-format',
      'cyclonedx',
      '--sbom-type',
      'application',
      '--omit',
      'dev',
      '--package-lock-only',
    ],
    { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  )
  const { metadata, components, dependencies } = JSON.parse(listed)
  const timestamp = new Date(epoch * 1000).toISOString()
  // npm names it after the folder.
  const described = { ...metadata, timestamp, component: { ...metadata.component, name, version } }
  const content = { metadata: described, components, dependencies }
  const hex = createHash('sha256').update(JSON.stringify(content)).digest('hex')
  // RFC 9562 5.8: a UUID of version 8 has bits of our own.
  const uuid = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `a${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ]
  const document = {
    $schema: `http://cyclonedx.org/schema/bom-${VERSION}.schema.json`,
    bomFormat: 'CycloneDX',
    specVersion: VERSION,
    serialNumber: `urn:uuid:${uuid.join('-')}`,
    version: 1,
    ...content,
  }
  return `${JSON.stringify(document, undefined, 2)}\n`
}
