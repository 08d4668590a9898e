import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { certificates } from '../../src/commands/certificates.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-certificates-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const file = (name: string) => join(folder, name)

beforeAll(async () => {
  for (const name of ['one', 'two']) {
    const made = await generate([{ name: 'commonName', value: name }], { keyType: 'ec' })
    writeFileSync(file(`${name}.pem`), made.cert)
    writeFileSync(file(`${name}.key`), made.private)
  }
  writeFileSync(file('rubbish.pem'), 'rubbish')
})

const found = (certificate: string, key: string, now = Date.now()) => {
  const listener = { host: '::', port: 5900, certificate: file(certificate), key: file(key) }
  return certificates(
    {
      dataDir: folder,
      listen: { vnc: { ...listener, securityTypes: [], allowClear: [] }, https: { host: '::', port: 443 } },
    },
    now,
  )
}

test('a certificate that is shown with its own key is well', () => {
  expect(found('one.pem', 'one.key')).toEqual([{ level: 'ok', subject: 'vnc cert', text: file('one.pem') }])
})

test.each([
  ['with the key of another', 'one.pem', 'two.key'],
  ['that is not there', 'none.pem', 'one.key'],
  ['without its key', 'one.pem', 'none.key'],
  ['that is none', 'rubbish.pem', 'one.key'],
])('one %s is an error that names it', (_, certificate, key) => {
  expect(found(certificate, key)).toEqual([
    { level: 'error', subject: 'vnc cert', text: expect.stringContaining(file(certificate)) },
  ])
})

test('one that is over is a warning', () => {
  const later = Date.now() + 20 * 366 * 86_400_000
  expect(found('one.pem', 'one.key', later)).toMatchObject([{ level: 'warning', subject: 'vnc cert' }])
})

test('a self-signed one of before, that was an authority too, is a warning', async () => {
  const dataDir = file('data')
  mkdirSync(join(dataDir, 'tls'), { recursive: true })
  const authority = await generate([{ name: 'commonName', value: 'bastion' }], {
    keyType: 'ec',
    extensions: [{ name: 'basicConstraints', cA: true }],
  })
  writeFileSync(join(dataDir, 'tls', 'cert.pem'), authority.cert)
  expect(certificates({ dataDir, listen: {} }, Date.now())).toEqual([
    { level: 'warning', subject: 'own cert', text: expect.stringContaining('is an authority') },
  ])
})
