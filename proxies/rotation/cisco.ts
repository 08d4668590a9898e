/**
 * Network devices with a command line in the manner of Cisco's IOS, over SSH or Telnet. Each step waits for a prompt that it
 * knows; a secret goes only to the prompts of the sign-in and of `enable`, and into the one command that sets it.
 */
import type { ChangeTarget, SecretChange, SignIn } from '../../src/contract/change.ts'
import { atDevice } from './cisco-shell.ts'
import { ChangeError, type ChangePlugin } from './plugin.ts'
import type { ScreenTalk } from './screen-talk.ts'
import { passwordOf, textOf } from './secrets.ts'

const LOGIN = /^\s*(?:user ?name|login|user):\s*$/i
const PASSWORD = /^\s*password:\s*$/i
/** The device's name, and the mode. */
const PROMPT = /^([A-Za-z0-9_.:@/~-]{1,80})([>#])\s*$/
const SIGN_IN = { login: LOGIN, password: PASSWORD, prompt: PROMPT }
/** A line by which such devices refuse a command. */
const COMPLAINT =
  /^\s*(%|error\b|invalid\b|incomplete\b|unknown\b|unrecognized\b|ambiguous\b|access denied|permission denied|command rejected).*$/im
const NO_RIGHT = /authori[sz]ation|permission|privilege|access denied|not allowed/i
/** Lines by which `write memory` reports a failure. */
const UNSAVED = /\b(fail|failed|can't|cannot|denied|read-only|no space)\b/i
/** Space and `?` mean something at any place of a line, the others at some; the rest of ASCII is safe. */
const SAFE = /^[A-Za-z0-9$%&()*+,./:<=>@[\]^_`{}~-]{1,64}$/
const SAFE_LOGIN = /^[A-Za-z0-9._@-]{1,64}$/

export const cisco: ChangePlugin = {
  async verify(target, as, signal) {
    const secrets = [passwordOf(as), as.enable ?? '']
    try {
      return await atDevice(target, as, signal, secrets, async (talk) => {
        const device = await signIn(talk, as)
        if (as.enable !== undefined) await enable(talk, device, as.enable)
        return 'valid' as const
      })
    } catch (error) {
      if (error instanceof ChangeError && error.code === 'refused_sign_in') return 'invalid'
      throw error
    }
  },

  async change(target, change, signal) {
    const { account, by, next } = change
    const command = commandOf(target, change)
    const secrets = [account, by].flatMap((one) => [passwordOf(one), one.enable ?? ''])
    if (next.type !== 'ssh_key') secrets.unshift(next.password)
    await atDevice(target, by, signal, secrets, async (talk) => {
      const device = await signIn(talk, by)
      if (!device.isPrivileged) await enable(talk, device, by.enable)
      await configure(talk, device, command)
      if (target.parameters['skip_save'] !== true) await save(talk, device)
    })
  },
}

/** The device that has let us in, by its prompt. */
interface Device {
  name: string
  isPrivileged: boolean
}

function commandOf({ parameters }: ChangeTarget, { account, next }: SecretChange): string {
  if (next.type === 'ssh_key')
    throw new ChangeError('unsupported', 'this kind of target knows passwords and enable passwords only')
  if (!SAFE.test(next.password))
    throw new ChangeError(
      'refused_password',
      'the new secret must be of 1 to 64 letters, digits and $%&()*+,./:<=>@[]^_`{}~-',
    )
  if (next.type === 'enable')
    return `${textOf(parameters, 'enable_command') ?? 'enable secret'} ${next.password}`
  const command = textOf(parameters, 'password_command') ?? 'username secret'
  if (command === 'password') return `password ${next.password}`
  if (!SAFE_LOGIN.test(account.login))
    throw new ChangeError('unsupported', 'the login is none that a command of the device can name')
  return command.replace('username', `username ${account.login}`).concat(` ${next.password}`)
}

/** Answers each question once; over SSH there may be none. */
async function signIn(talk: ScreenTalk, as: SignIn): Promise<Device> {
  const answered = new Set<string>()
  for (;;) {
    const { kind, line, text } = await talk.next(SIGN_IN)
    if (kind === 'prompt') return deviceOf(line)
    if (answered.has(kind) || (kind === 'login' && answered.has('password'))) {
      const words = talk.words(text) || 'it asks again'
      throw new ChangeError('refused_sign_in', `the target refused the password of ${as.login}: ${words}`)
    }
    answered.add(kind)
    talk.send(kind === 'login' ? loginOf(as) : passwordOf(as))
  }
}

function loginOf({ login }: SignIn): string {
  if (!SAFE_LOGIN.test(login))
    throw new ChangeError('unsupported', 'the login is none that a device can be asked for')
  return login
}

function deviceOf(line: string): Device {
  const [, name = '', mode] = PROMPT.exec(line) ?? []
  return { name, isPrivileged: mode === '#' }
}

async function enable(talk: ScreenTalk, device: Device, secret: string | undefined): Promise<void> {
  if (secret === undefined || secret === '')
    throw new ChangeError('not_permitted', 'the account is not privileged, and has no secret for `enable`')
  // One that is privileged already is not asked for the secret.
  if (device.isPrivileged) await leavePrivileges(talk, device)
  talk.send('enable')
  const prompts = { password: PASSWORD, ...promptsOf(device) }
  const asked = await talk.next(prompts)
  if (asked.kind === 'privileged')
    throw new ChangeError('unclear', 'the target lets its users `enable` without a secret')
  if (asked.kind === 'user')
    throw new ChangeError('not_permitted', `no \`enable\`: ${talk.words(asked.text)}`)
  talk.send(secret)
  const done = await talk.next(prompts)
  if (done.kind !== 'privileged')
    throw new ChangeError(
      'refused_sign_in',
      `the target refused the secret for \`enable\`: ${talk.words(done.text)}`,
    )
  device.isPrivileged = true
}

async function leavePrivileges(talk: ScreenTalk, device: Device): Promise<void> {
  talk.send('disable')
  const { kind } = await talk.next(promptsOf(device))
  if (kind !== 'user') throw new ChangeError('unclear', 'the target does not leave the privileged mode')
}

async function configure(talk: ScreenTalk, device: Device, command: string): Promise<void> {
  const prompts = promptsOf(device)
  talk.send('configure terminal')
  const begun = await talk.next(prompts)
  if (begun.kind !== 'configuring')
    throw new ChangeError('not_permitted', `no \`configure terminal\`: ${talk.words(begun.text)}`)
  talk.send(command)
  const set = await talk.next(prompts)
  const complaint = COMPLAINT.exec(set.text)?.[0]
  if (complaint !== undefined) {
    const words = `the target refuses the command: ${talk.words(complaint)}`
    throw new ChangeError(NO_RIGHT.test(complaint) ? 'not_permitted' : 'refused_password', words)
  }
  if (set.kind !== 'configuring') throw new ChangeError('unclear', 'the target left the configuration')
  talk.send('end')
  const ended = await talk.next(prompts)
  if (ended.kind !== 'privileged')
    throw new ChangeError('unclear', 'the target does not leave the configuration')
}

async function save(talk: ScreenTalk, device: Device): Promise<void> {
  talk.send('write memory')
  const { text } = await talk.next(promptsOf(device))
  const complaint = COMPLAINT.exec(text)?.[0] ?? UNSAVED.exec(text)?.[0]
  if (complaint !== undefined) {
    throw new ChangeError(
      'unclear',
      `the secret was set, but is lost when the target starts anew: ${talk.words(complaint)}`,
    )
  }
}

/** Returns the prompts of the device in each mode; a name that is long is shortened in the configuration. */
function promptsOf({ name }: Device): Record<'user' | 'privileged' | 'configuring', RegExp> {
  const escaped = (text: string) => text.replaceAll(/[^A-Za-z0-9_]/g, '\\$&')
  const [whole, short] = [escaped(name), escaped(name.slice(0, 20))]
  return {
    user: new RegExp(`^${whole}>\\s*$`),
    privileged: new RegExp(`^${whole}#\\s*$`),
    configuring: new RegExp(`^${short}[^\\s()]{0,60}\\(config[^)]{0,40}\\)#\\s*$`),
  }
}
