/** A bastion with users without a stored account: some type a login at the target, one is mapped there. */

import { randomUUID } from 'node:crypto'
import { chmodSync } from 'node:fs'
import { type Home, type Login, writeHomeFile } from '../peers/home.ts'
import { ALL_RIGHTS, type Bastion, type BastionOptions, startBastion } from './bastion.ts'

export const ASKED_PASSWORD = 'asked password'

export interface LogonBastion extends Bastion {
  /** Login to srv1 for a user who types login and password there. */
  asked(more?: Partial<Login> & { account?: string }): Login
  /** Login to srv1 for a user whose name and password are those of the account there. */
  mapped(more?: Partial<Login>): Login
}

/**
 * `asked` and `keyed` (by public key) may log in at srv1:ssh with any login; the account's namesake as
 * itself.
 */
export async function startLogonBastion(options: BastionOptions = {}): Promise<LogonBastion> {
  const bastion = await startBastion(options)
  const { account, key } = bastion
  const { must } = bastion.broker
  const person = (user_name: string, password: string, keys: string[] = []) =>
    must('POST', '/users', {
      user_name,
      display_name: user_name,
      email: `${user_name}@example.com`,
      profile: 'user',
      user_auths: ['local_password', 'local_sshkey'],
      password,
      ssh_public_keys: keys,
    })
  const grant = async (group: string, users: string[], session: Record<string, string[]>) => {
    await must('POST', '/usergroups', { group_name: group, users })
    await must('POST', '/targetgroups', { group_name: group, session })
    await must('POST', '/authorizations', {
      user_group: group,
      target_group: group,
      authorize_sessions: true,
      subprotocols: ALL_RIGHTS,
    })
  }
  await person('asked', ASKED_PASSWORD, [key.publicKey])
  await person(account.name, account.password, [key.publicKey])
  await grant('interactive', ['asked'], { interactive_logins: ['srv1:ssh'] })
  await grant('mapping', [account.name], { account_mappings: ['srv1:ssh'] })
  const port = bastion.broker.ports.ssh
  return {
    ...bastion,
    asked: ({ account: named = '', ...more } = {}) => ({
      port,
      user: `asked+${named}@srv1`,
      password: ASKED_PASSWORD,
      ...more,
    }),
    mapped: (more = {}) => ({ port, user: `${account.name}+@srv1`, password: account.password, ...more }),
  }
}

/** Adds to the home an askpass program that distinguishes the target's prompts from the bastion's. */
export function answering(home: Home, { login, password }: { login: string; password: string }): Home {
  const askpass = writeHomeFile(
    home,
    `answers-${randomUUID()}`,
    `#!/bin/sh
case "$1" in
  *"Login at srv1:ssh"*) printf '%s\\n' '${login}' ;;
  *"at srv1:ssh"*) printf '%s\\n' '${password}' ;;
  *) printf '%s\\n' "$PEER_PASSWORD" ;;
esac
`,
  )
  chmodSync(askpass, 0o700)
  return {
    ...home,
    env: (own) => ({ ...home.env(own ?? ''), SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: 'force' }),
  }
}
