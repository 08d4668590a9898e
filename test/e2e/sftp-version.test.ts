/**
 * A client and a target that both support later versions of SFTP agree on 3, which the recording supports.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lftp } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type Bastion, startBastion } from './bastion.ts'

/** `uint32 length, byte INIT, uint32 version`. */
const INIT_OF_3 = Buffer.from([0, 0, 0, 5, 1, 0, 0, 0, 3])

describeWithPeers('a client of version 6', ['lftp'], () => {
  let bastion: Bastion
  /** File with the bytes that the target received. */
  let heard: string

  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-sftp-'))
    heard = join(folder, 'heard')
    chmodSync(folder, 0o755)
    writeFileSync(heard, '')
    // the target's account writes to it
    chmodSync(heard, 0o666)
    const server = `tee -a ${heard} | /usr/lib/openssh/sftp-server`
    bastion = await startBastion({ sshd: { extraConfig: [`ForceCommand ${server}`] } })
  })
  afterAll(async () => {
    await bastion.stop()
    rmSync(join(heard, '..'), { recursive: true, force: true })
  })

  test('asks for 3 at the target, and its files are on record', async () => {
    const file = join(bastion.home.folder, 'one.txt')
    writeFileSync(file, 'of a later version')
    const to = `${bastion.account.home}/one.txt`
    const done = await lftp(bastion.home, bastion.login(), [
      'set sftp:protocol-version 6',
      `put ${file} -o ${to}`,
    ])
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(readFileSync(to, 'utf8')).toBe('of a later version')
    expect(readFileSync(heard).subarray(0, 9)).toEqual(INIT_OF_3)
    const [event] = await bastion.events('file.transfer', 1)
    expect(event).toMatchObject({ path: to, size: 18, result: 'success' })
  })
})
