/** Settings of the fronts after a reload: workers that begin before and after it have to be alike. */
import { expect, test } from 'vitest'
import { changedSettings } from '../../src/broker/front-settings.ts'
import type { FrontSettings } from '../../src/contract/front-settings.ts'

const BEGUN: FrontSettings = {
  hostname: 'bastion',
  loginGraceMs: 60_000,
  motd: 'old',
  ssh: { hostKeys: ['key'], nextHostKeys: ['next'], hostCertificates: [] },
  telnet: { allow: ['192.0.2.0/24'] },
}

test('host keys, names and times stay as they were at the start', () => {
  const certificate = { blob: Buffer.of(1), key: Buffer.of(2), validBefore: 3 }
  const changed = changedSettings(BEGUN, {
    hostname: 'other',
    loginGraceMs: 1,
    banner: 'new',
    ssh: { hostKeys: ['other key'], nextHostKeys: [], hostCertificates: [certificate] },
    telnet: { allow: [] },
  })
  expect(changed).toEqual({
    hostname: 'bastion',
    loginGraceMs: 60_000,
    banner: 'new',
    ssh: { hostKeys: ['key'], nextHostKeys: ['next'], hostCertificates: [certificate] },
    telnet: { allow: [] },
  })
})

test('fronts that were begun stay, and no other one begins', () => {
  const { telnet, ...without } = BEGUN
  const changed = changedSettings(BEGUN, { ...without, rlogin: { allow: [] } })
  expect(changed).toEqual(BEGUN)
})
