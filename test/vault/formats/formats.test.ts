/** Keys in the forms of OpenSSH, PKCS#8 and PuTTY, read by the programs that they are for. */
import { createPublicKey } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ssh2 from 'ssh2'
import { afterAll, describe, expect, test } from 'vitest'
import { Secret } from '../../../src/model/secret.ts'
import { KeyRewriter, RewriterBusyError } from '../../../src/vault/formats/rewriter.ts'
import { opensshKey } from '../../identity/keys.ts'
import { run } from '../../peers/process.ts'
import { describeWithPeers, findProgram } from '../../peers/program.ts'

const OWNER = '01K9T5RZ8Q4W6X2C3V1B0N7M5J'
const PASSPHRASE = 'füße & 7 "marks"'
const folder = mkdtempSync(join(tmpdir(), 'sallyport-formats-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function written(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

async function output(program: Parameters<typeof findProgram>[0], args: string[]): Promise<string> {
  const { stdout, stderr, code } = await run(findProgram(program), args)
  expect(code, stderr).toBe(0)
  return stdout
}

/** The type and the number of a line of a public key. */
const lineOf = (text: string) => text.trim().split(' ').slice(0, 2).join(' ')

describeWithPeers('a key', ['ssh-keygen', 'puttygen', 'openssl'], () => {
  const rewriter = new KeyRewriter()
  const keys = (
    [
      ['ed25519', undefined, ''],
      ['ecdsa', 256, ''],
      ['ecdsa', 521, ''],
      ['rsa', 2048, ''],
      ['ed25519', undefined, 'old words'],
    ] as const
  ).map(([type, bits, old]) => ({
    title: `${type} ${bits ?? ''} ${old}`,
    old,
    ...opensshKey(type, bits, old),
  }))
  const rewritten = async (
    { file, old }: (typeof keys)[number],
    format: 'openssh' | 'pkcs8' | 'putty',
    passphrase: string | undefined,
    owner = OWNER,
  ) => {
    const words = old === '' ? undefined : Secret.of(old)
    return (await rewriter.rewrite(owner, Secret.of(file), words, format, passphrase)).revealText()
  }

  describe.each(keys)('$title', (key) => {
    // Each passphrase of OpenSSH's costs a second.
    test.each(key.title.startsWith('ecdsa') ? [undefined] : [undefined, PASSPHRASE])(
      'as OpenSSH has it, passphrase %s',
      async (passphrase) => {
        const path = written('openssh', await rewritten(key, 'openssh', passphrase))
        const shown = await output('ssh-keygen', ['-y', '-P', passphrase ?? '', '-f', path])
        expect(lineOf(shown)).toBe(lineOf(key.line))
        if (passphrase !== undefined) {
          const wrong = await run(findProgram('ssh-keygen'), ['-y', '-P', 'other', '-f', path])
          expect(wrong.code).not.toBe(0)
        }
      },
    )

    test.each([undefined, PASSPHRASE])('as PKCS#8, passphrase %s', async (passphrase) => {
      const path = written('pkcs8', await rewritten(key, 'pkcs8', passphrase))
      const words = written('words', `${passphrase ?? ''}\n`)
      const shown = await output('openssl', ['pkey', '-in', path, '-passin', `file:${words}`, '-pubout'])
      const parsed = ssh2.utils.parseKey(key.line)
      if (parsed instanceof Error) throw parsed
      const expected = createPublicKey(parsed.getPublicPEM())
      expect(shown).toBe(expected.export({ type: 'spki', format: 'pem' }))
    })

    test.each([undefined, PASSPHRASE])('as PuTTY has it, passphrase %s', async (passphrase) => {
      const path = written('putty.ppk', await rewritten(key, 'putty', passphrase))
      const words = written('words', passphrase ?? '')
      // Reads the private part too: `-O public-openssh` alone would not.
      const back = join(folder, 'back')
      rmSync(back, { force: true })
      const args = [path, '--old-passphrase', words, '--new-passphrase', '/dev/null', '-o', back]
      await output('puttygen', [...args, '-O', 'private-openssh-new'])
      // With the comment.
      expect((await output('ssh-keygen', ['-y', '-P', '', '-f', back])).trim()).toBe(key.line)
    })
  })

  test('that cannot be read is refused without any of it, and the next ones are not', async () => {
    const broken = { ...keys[0]!, file: 'canary' }
    await expect(rewritten(broken, 'putty', undefined)).rejects.toThrow('the stored key cannot be read')
    expect(await rewritten(keys[0]!, 'putty', undefined)).toContain('PuTTY-User-Key-File-3')
  })

  test.each([
    ['of its user, two', () => OWNER, 18],
    ['of all, sixteen', (index: number) => `user ${index}`, 4],
  ])('waits with few others: %s', async (_title, ownerOf, expected) => {
    const all = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) => rewritten(keys[0]!, 'pkcs8', undefined, ownerOf(index))),
    )
    const refused = all.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    expect(refused).toHaveLength(expected)
    for (const reason of refused) expect(reason).toBeInstanceOf(RewriterBusyError)
  })
})
