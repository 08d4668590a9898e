/** The client's end of the connection sequence against a real target. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { UPDATE } from '../../../../proxies/rdp/codec/updates.ts'
import { describeWithPeers } from '../../../peers/program.ts'
import { startXrdp, XRDP_PEERS, type Xrdp } from '../../../peers/rdp/xrdp.ts'
import { createSystemUser, type SystemUser } from '../../../peers/users.ts'
import { until } from '../../../until.ts'
import { openTarget, type Session } from './target.ts'

describeWithPeers('xrdp as a target', [...XRDP_PEERS], () => {
  let user: SystemUser
  let xrdp: Xrdp
  let session: Session | undefined

  beforeAll(async () => {
    user = await createSystemUser()
    xrdp = await startXrdp('id -un >"$HOME/who"; exec xterm')
  })
  afterAll(async () => {
    session?.close()
    await xrdp.stop()
    await user.remove()
  })

  test('signs the injected account in and draws its desktop', async () => {
    session = await openTarget(xrdp.port, { domain: '', login: user.name, password: user.password }, 32)
    const { updates } = session
    const soFar = () => `${JSON.stringify(session)} ${xrdp.log()}`
    await until(
      () => `a bitmap; came: ${soFar()}`,
      () => updates.includes(UPDATE.bitmap) || undefined,
    )
    const who = join(user.home, 'who')
    await until(
      () => `the desktop's program; came: ${soFar()}`,
      () => (existsSync(who) && readFileSync(who, 'utf8') !== '') || undefined,
    )
    expect(readFileSync(who, 'utf8').trim()).toBe(user.name)
    expect(session.desktop).toEqual({ width: 800, height: 600, depth: 32 })
    expect(updates).not.toContain(UPDATE.surfaceCommands)
    expect(session.error).toBeUndefined()
    expect(session.disconnect).toBeUndefined()
  })
})
