/**
 * Accounts of Unix systems, over SSH: passwords by `passwd`, as the account itself, or `chpasswd`, as root or by sudo; keys
 * in the file that sshd reads unless it is told otherwise. Commands are constant: names and secrets go by their input.
 */
import ssh2 from 'ssh2'
import type { SecretChange, SignIn, SignInSecret } from '../../src/contract/change.ts'
import { ChangeError, type ChangePlugin, said } from './plugin.ts'
import { SshTarget, type Talk } from './ssh-target.ts'

/** Milliseconds for which an unknown question stands before it counts as one. */
const SILENCE_MS = 4_000
const PATHS = 'PATH=/usr/sbin:/usr/bin:/sbin:/bin'
/** In one language: prompts are recognized by their words. */
const PASSWD = `env ${PATHS} LC_ALL=C LANGUAGE=C LANG=C passwd`
const CHPASSWD = `env ${PATHS} LC_ALL=C chpasswd`
const DONE = 'sallyport-done'
const MARK = 'sallyport-input'

const RETYPE = /\b(retype|re-enter|reenter|repeat|confirm|again|verify)\b[^\n]*[:?]\s*$/i
const NEW = /\bnew\b[^\n]*\bpassword\b[^\n]*[:?]\s*$/i
const CURRENT = /(\b(current|old|login|existing)\b[^\n]*\bpassword\b|^password)[^\n]*[:?]\s*$/i
const REFUSED =
  /bad password|too (short|simple|similar|weak)|dictionary|palindrome|unchanged|already (used|been used)|must (choose|be)|minimum|have to wait|pam_chauthtok|not changed|weak/i
const FORBIDDEN =
  /authentication (token|failure)|permission denied|not allowed|password is required|not in the sudoers|may not run/i

export const unix: ChangePlugin = {
  async verify(target, as, signal) {
    try {
      const opened = await SshTarget.open(target, as, signal)
      opened.close()
      return 'valid'
    } catch (error) {
      if (error instanceof ChangeError && error.code === 'refused_sign_in') return 'invalid'
      throw error
    }
  },

  async change(target, change, signal) {
    requirePlain(change)
    const opened = await SshTarget.open(target, change.by, signal)
    try {
      if (change.next.type === 'ssh_key') {
        await editKeys(opened, change, change.next.publicKey.trim(), '')
      } else if (change.isAdministrator) await setByAdministrator(opened, change)
      else await setOwn(opened, change)
    } finally {
      opened.close()
    }
  },

  async retire(target, { account, by, isAdministrator, old }, signal) {
    if (old.type !== 'ssh_key') return
    const opened = await SshTarget.open(target, by, signal)
    try {
      await editKeys(opened, { account, by, isAdministrator }, '', publicPart(old))
    } finally {
      opened.close()
    }
  },
}

/** Refuses values that would be more than one line of a command's input. @throws ChangeError */
function requirePlain({ account, next }: SecretChange): void {
  if (!/^[a-z0-9_][a-z0-9_.@\\-]{0,63}\$?$/i.test(account.login))
    throw new ChangeError('unsupported', 'the login is none of a Unix account')
  if (next.type === 'enable') throw new ChangeError('unsupported', 'a Unix account has no enable password')
  if (next.type === 'password' && /[\u0000-\u001f\u007f:]/.test(next.password))
    throw new ChangeError('unsupported', 'a Unix password has no colon and no control characters')
}

/** Runs `passwd` on a terminal; each prompt is answered once, and none that is unknown. */
async function setOwn(opened: SshTarget, { account, next }: SecretChange): Promise<void> {
  if (next.type !== 'password' || account.secret.type !== 'password')
    throw new ChangeError('unsupported', 'an account changes its own password by its password')
  const current = account.secret.password
  const answered = new Set<string>()
  let silence: NodeJS.Timeout | undefined
  const hidden = (text: string) => lastSaid(text, current, next.password)
  const onText = (text: string, talk: Talk) => {
    clearTimeout(silence)
    const known = promptOf(text)
    if (known === undefined) {
      if (text.trim() === '' || text.endsWith('\n')) return
      silence = setTimeout(
        () =>
          talk.fail(new ChangeError('unexpected_answer', `passwd asks what is not known: ${hidden(text)}`)),
        SILENCE_MS,
      )
      return
    }
    // Asks again: the answer was refused.
    if (answered.has(known)) {
      talk.fail(
        known === 'current'
          ? new ChangeError('not_permitted', `passwd refuses the present password: ${hidden(text)}`)
          : new ChangeError('refused_password', `the target refuses the new password: ${hidden(text)}`),
      )
      return
    }
    answered.add(known)
    talk.write(`${known === 'current' ? current : next.password}\n`)
  }
  try {
    const { code, output } = await opened.run(PASSWD, { onText })
    if (code === 0 && answered.has('retype')) return
    if (REFUSED.test(output) && answered.has('new'))
      throw new ChangeError('refused_password', `the target refuses the new password: ${hidden(output)}`)
    if (FORBIDDEN.test(output)) throw new ChangeError('not_permitted', `passwd refuses: ${hidden(output)}`)
    throw new ChangeError('unexpected_answer', `passwd ended with ${code ?? 'no'} code: ${hidden(output)}`)
  } finally {
    clearTimeout(silence)
  }
}

/** Returns the end of the target's text. Secrets are hidden before it is cut, since a part of one would stay. */
function lastSaid(text: string, ...secrets: readonly string[]): string {
  const hidden = secrets
    .filter((secret) => secret !== '')
    .reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text)
  return said(hidden.slice(-200))
}

function promptOf(text: string): 'current' | 'new' | 'retype' | undefined {
  const last = text.slice(text.lastIndexOf('\n') + 1)
  if (RETYPE.test(last)) return 'retype'
  if (NEW.test(last)) return 'new'
  return CURRENT.test(last.trimStart()) ? 'current' : undefined
}

async function setByAdministrator(opened: SshTarget, { account, by, next }: SecretChange): Promise<void> {
  if (next.type !== 'password') return
  const { command, input } = await elevated(opened, by, CHPASSWD)
  const ran = await opened.run(command, { input: `${input}${account.login}:${next.password}\n` })
  requireDone(ran.code, ran.output, by.secret, next.password)
}

/** Returns the command as root, and the line of input that precedes its own. @throws ChangeError `not_permitted` */
async function elevated(
  opened: SshTarget,
  by: SignIn,
  command: string,
  as?: string,
): Promise<{ command: string; input: string }> {
  const { code, output } = await opened.run('id -u')
  if (code === 0 && output.trim() === '0')
    return { command: as === undefined ? command : `su -s /bin/sh ${as} -c ${quoted(command)}`, input: '' }
  const user = as === undefined ? '' : ` -H -u ${as}`
  const asShell = as === undefined ? command : `sh -c ${quoted(command)}`
  const free = await opened.run(`sudo -n${user} true`)
  if (free.code === 0) return { command: `sudo -n${user} ${asShell}`, input: '' }
  if (by.secret.type !== 'password')
    throw new ChangeError('not_permitted', 'the administrator is not root, and sudo asks for a password')
  // -k: a password is asked for in any case. Where it is not all the same, the command would read it as its own input, so
  // that it begins only behind a line of ours.
  const marked = `IFS= read -r mark; [ "$mark" = ${MARK} ] || { echo "not allowed: sudo asks for no password" >&2; exit 4; }
${command}`
  return {
    command: `sudo -k -S -p ''${user} sh -c ${quoted(marked)}`,
    input: `${by.secret.password}\n${MARK}\n`,
  }
}

/**
 * Adds a line to the account's authorized_keys, and removes those with the key `drop`, in one step: the file is replaced by
 * a whole one. It runs as the account, so that no link of it leads elsewhere.
 */
const EDIT = `set -eu
umask 077
IFS= read -r add
IFS= read -r drop
mkdir -p "$HOME/.ssh"
file="$HOME/.ssh/authorized_keys"
if [ -L "$file" ]; then echo "authorized_keys is a link" >&2; exit 3; fi
[ -e "$file" ] || : > "$file"
part=$(mktemp "$HOME/.ssh/.sallyport.XXXXXX")
trap 'rm -f "$part"' EXIT
cp -p "$file" "$part"
if [ -n "$drop" ]; then grep -vF -e "$drop" "$file" > "$part" || [ $? -eq 1 ]; fi
if [ -n "$add" ] && ! grep -qxF -e "$add" "$part"; then
  if [ -s "$part" ] && [ -n "$(tail -c 1 "$part")" ]; then echo >> "$part"; fi
  printf "%s\\n" "$add" >> "$part"
fi
mv -f "$part" "$file"
echo ${DONE}`

async function editKeys(
  opened: SshTarget,
  { account, by, isAdministrator }: Pick<SecretChange, 'account' | 'by' | 'isAdministrator'>,
  add: string,
  drop: string,
): Promise<void> {
  const { command, input } = isAdministrator
    ? await elevated(opened, by, EDIT, account.login)
    : { command: `sh -c ${quoted(EDIT)}`, input: '' }
  const { code, output } = await opened.run(command, { input: `${input}${add}\n${drop}\n` })
  requireDone(code === 0 && !output.includes(DONE) ? undefined : code, output, by.secret)
}

function requireDone(code: number | undefined, output: string, by: SignInSecret, next = ''): void {
  if (code === 0) return
  const text = lastSaid(output, by.type === 'password' ? by.password : '', next)
  if (FORBIDDEN.test(output)) throw new ChangeError('not_permitted', `the target refuses: ${text}`)
  if (REFUSED.test(output))
    throw new ChangeError('refused_password', `the target refuses the new password: ${text}`)
  throw new ChangeError('unclear', `the command ended with ${code ?? 'no'} code: ${text}`)
}

/** Returns type and blob of a key, as a line of authorized_keys has them. @throws ChangeError */
function publicPart(secret: Extract<SignInSecret, { type: 'ssh_key' }>): string {
  const parsed = ssh2.utils.parseKey(secret.privateKey, secret.passphrase)
  if (parsed instanceof Error) throw new ChangeError('unsupported', 'the old private key cannot be read')
  return `${parsed.type} ${parsed.getPublicSSH().toString('base64')}`
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
