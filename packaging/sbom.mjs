/** The bill of materials: npm's, of the lock file without the packages for development. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const VERSION = '1.6'

/** Returns the text of the CycloneDX document, equal for equal sources. `epoch`: its time in seconds. */
export function sbom(root, { name, version }, epoch) {
  const listed = execFileSync(
    'npm',
    ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'],
    { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  )
  const { metadata, ...all } = JSON.parse(listed)
  const shipped = withoutDevelopment(all, shippedPackages(root), metadata.component)
  const components = shipped.components.map((component) => withLicence(root, component))
  const timestamp = new Date(epoch * 1000).toISOString()
  // npm names it after the folder.
  const described = { ...metadata, timestamp, component: { ...metadata.component, name, version } }
  const content = { metadata: described, components, dependencies: shipped.dependencies }
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

/** Returns NAME@VERSION of each package of the lock file that is not for development alone. */
function shippedPackages(root) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  return new Set(
    Object.entries(packages)
      .filter(([path, { dev }]) => path !== '' && !dev)
      .map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`),
  )
}

/** npm's `--omit dev` leaves out packages for development with all that these need, even if the product needs it too. */
function withoutDevelopment({ components, dependencies }, shipped, product) {
  const isListed = (reference) => shipped.has(reference) || reference === product['bom-ref']
  return {
    components: components.filter((component) => shipped.has(component['bom-ref'])),
    dependencies: dependencies
      .filter(({ ref }) => isListed(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => shipped.has(other)) })),
  }
}

/** npm does not read the list `licenses`, which older packages have. */
function withLicence(root, component) {
  if (component.licenses !== undefined) return component
  const file = join(root, 'node_modules', component.name, 'package.json')
  const { licenses } = JSON.parse(readFileSync(file, 'utf8'))
  return { ...component, licenses: licenses.map(({ type }) => ({ license: { id: type } })) }
}
