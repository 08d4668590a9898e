/** Changes of passwords and keys at OpenSSH's server, with throw-away users, by themselves and by administrators. */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { unix } from '../../../proxies/rotation/unix.ts'
import type { ChangeTarget, SignIn, SignInSecret } from '../../../src/contract/change.ts'
import { generateKey } from '../../peers/keys.ts'
import { describeWithPeers } from '../../peers/program.ts'
import { type Sshd, startSshd } from '../../peers/sshd.ts'
import { canCreateUsers, createSystemUser, type SystemUser } from '../../peers/users.ts'

const NEXT = "Gq7'$(id);#Zt\\9"
const FAR = AbortSignal.timeout(120_000)

describeWithPeers('a Unix account over SSH', ['sshd', 'ssh-keygen'], () => {
  let folder: string
  let sshd: Sshd
  const users: SystemUser[] = []

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-unix-'))
    chmodSync(folder, 0o755)
    sshd = await startSshd({
      extraConfig: ['AuthorizedKeysFile .ssh/authorized_keys', 'AllowUsers *', 'MaxAuthTries 20'],
    })
  })
  afterEach(async () => {
    for (const user of users.splice(0)) await user.remove()
  })
  afterAll(async () => {
    await sshd?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const target = (): ChangeTarget => ({
    host: sshd.host,
    port: sshd.port,
    parameters: {},
    trust: { hostKeys: sshd.hostKeys.map(({ publicKey }) => publicKey.split(' ')[1] ?? '') },
  })
  const madeUser = async (shell?: string) => {
    const user = await createSystemUser(shell === undefined ? {} : { shell })
    users.push(user)
    return user
  }
  const by = (login: string, secret: SignInSecret | string): SignIn => ({
    login,
    secret: typeof secret === 'string' ? { type: 'password', password: secret } : secret,
  })
  const password = (text: string) => ({ type: 'password', password: text }) as const
  const verify = (as: SignIn) => unix.verify(target(), as, FAR)
  /** A login shell that gets each command as `$2`. */
  const shellOf = (name: string, script: string) => {
    const path = join(folder, name)
    writeFileSync(path, `#!/bin/bash\n${script}\n`, { mode: 0o755 })
    return path
  }

  it.runIf(canCreateUsers())('changes its own password, and the old one is refused', async () => {
    const user = await madeUser()
    const account = by(user.name, user.password)
    expect(await verify(account)).toBe('valid')
    expect(await verify(by(user.name, 'wrong'))).toBe('invalid')
    await unix.change(target(), { account, by: account, isAdministrator: false, next: password(NEXT) }, FAR)
    expect(await verify(by(user.name, NEXT))).toBe('valid')
    expect(await verify(account)).toBe('invalid')
  })

  it.runIf(canCreateUsers())(
    'reports a password that the target refuses, and keeps the old one',
    async () => {
      const user = await madeUser()
      const account = by(user.name, user.password)
      const change = { account, by: account, isAdministrator: false, next: password('abc') }
      await expect(unix.change(target(), change, FAR)).rejects.toMatchObject({ code: 'refused_password' })
      expect(await verify(account)).toBe('valid')
      const wrong = { ...change, by: by(user.name, 'wrong') }
      await expect(unix.change(target(), wrong, FAR)).rejects.toMatchObject({ code: 'refused_sign_in' })
    },
  )

  it.runIf(canCreateUsers())('has its password set, and its keys changed, by root', async () => {
    const key = await generateKey(folder)
    mkdirSync('/root/.ssh', { recursive: true, mode: 0o700 })
    const keys = '/root/.ssh/authorized_keys'
    const before = readOr(keys)
    writeFileSync(keys, `${before}${before === '' || before.endsWith('\n') ? '' : '\n'}${key.publicKey}\n`, {
      mode: 0o600,
    })
    try {
      const user = await madeUser()
      const root = by('root', { type: 'ssh_key', privateKey: key.privateKey })
      const account = by(user.name, 'not the password at all')
      await unix.change(target(), { account, by: root, isAdministrator: true, next: password(NEXT) }, FAR)
      expect(await verify(by(user.name, NEXT))).toBe('valid')
      const { privateKey, publicKey } = await generateKey(folder)
      const next = { type: 'ssh_key', privateKey, publicKey } as const
      await unix.change(target(), { account, by: root, isAdministrator: true, next }, FAR)
      expect(await verify(by(user.name, next))).toBe('valid')
    } finally {
      writeFileSync(keys, before, { mode: 0o600 })
    }
  })

  it.runIf(canCreateUsers())('adds its new key beside the old one, and removes that one later', async () => {
    const user = await madeUser()
    const old = await generateKey(folder, { comment: 'old', passphrase: 'open' })
    const other = await generateKey(folder, { comment: 'other' })
    const next = await generateKey(folder, { comment: 'next' })
    const ssh = join(user.home, '.ssh')
    mkdirSync(ssh, { mode: 0o700 })
    const file = join(ssh, 'authorized_keys')
    // No newline at the end.
    writeFileSync(file, `from="127.0.0.1" ${old.publicKey}\n# kept\n${other.publicKey}`, { mode: 0o600 })
    chown(user, ssh, file)
    const oldSecret = { type: 'ssh_key', privateKey: old.privateKey, passphrase: 'open' } as const
    const account = by(user.name, oldSecret)
    const change = {
      account,
      by: account,
      isAdministrator: false,
      next: { type: 'ssh_key', privateKey: next.privateKey, publicKey: next.publicKey },
    } as const
    for (let twice = 0; twice < 2; twice++) await unix.change(target(), change, FAR)
    expect(await verify(account)).toBe('valid')
    const changed = by(user.name, { type: 'ssh_key', privateKey: next.privateKey })
    expect(await verify(changed)).toBe('valid')
    const retired = { account: changed, by: changed, isAdministrator: false, old: oldSecret }
    for (let twice = 0; twice < 2; twice++) await unix.retire?.(target(), retired, FAR)
    expect(await verify(account)).toBe('invalid')
    expect(readOr(file)).toBe(`# kept\n${other.publicKey}\n${next.publicKey}\n`)
  })

  it.runIf(canCreateUsers())('sends nothing to a target that shows another host key', async () => {
    const user = await madeUser()
    const account = by(user.name, user.password)
    const { publicKey } = await generateKey(folder)
    for (const hostKeys of [[], [publicKey.split(' ')[1] ?? '']]) {
      const stranger = { ...target(), trust: { hostKeys } }
      await expect(unix.verify(stranger, account, FAR)).rejects.toMatchObject({ code: 'untrusted' })
    }
    expect(sshd.log()).not.toContain(`for ${user.name} from`)
  })

  it.runIf(canCreateUsers())('does not believe a target that misbehaves', async () => {
    const tries = [
      ['language', 'printf "Mot de passe actuel : "; sleep 60', 'unexpected_answer'],
      ['flood', 'yes flood', 'unexpected_answer'],
      ['silent', 'echo done; exit 0', 'unexpected_answer'],
      ['again', 'while :; do printf "New password: "; read -r x; done', 'refused_password'],
      ['secret', 'printf "New password: "; read -r x; echo "no: $x"; exit 1', 'unexpected_answer'],
      ['cut', 'printf "New password: "; read -r x; kill -9 $PPID', 'unclear'],
    ] as const
    const failures = await Promise.all(
      tries.map(async ([name, script]) => {
        const user = await madeUser(shellOf(name, script))
        const account = by(user.name, user.password)
        const change = { account, by: account, isAdministrator: false, next: password(NEXT) }
        return unix.change(target(), change, FAR).catch((error: unknown) => error as Error)
      }),
    )
    expect(failures.map((error) => (error as { code?: string } | undefined)?.code)).toEqual(
      tries.map(([, , code]) => code),
    )
    for (const error of failures) expect(String(error)).not.toContain(NEXT)
  })

  it.runIf(canCreateUsers())('gives up at once when its time has come', async () => {
    const user = await madeUser(shellOf('hangs', 'sleep 600'))
    const account = by(user.name, user.password)
    const change = { account, by: account, isAdministrator: false, next: password(NEXT) }
    const signal = AbortSignal.timeout(1_000)
    await expect(unix.change(target(), change, signal)).rejects.toMatchObject({ code: 'timeout' })
  })
})

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function chown({ uid }: SystemUser, ...paths: string[]): void {
  for (const path of paths) chownSync(path, uid, uid)
}
