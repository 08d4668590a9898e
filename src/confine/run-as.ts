/** The user of session workers, by its name in the configuration. */
import { readFileSync } from 'node:fs'

export interface User {
  uid: number
  gid: number
}

const PASSWD = '/etc/passwd'

/**
 * Returns the user's numbers; a worker has its first group and no other. Throws an error that names the remedy if
 * there is no such user, or if it is root.
 */
export function userOf(name: string, passwd = PASSWD): User {
  for (const line of readFileSync(passwd, 'utf8').split('\n')) {
    const [login, , uid, gid] = line.split(':')
    if (login !== name || !isNumber(uid) || !isNumber(gid)) continue
    if (Number(uid) === 0)
      throw new Error(`run_as: ${name} is root, whom no boundary holds: name another user`)
    return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error(
    `run_as: ${passwd} has no user ${name}: useradd --system --no-create-home --shell /usr/sbin/nologin ${name}`,
  )
}

const isNumber = (text: string | undefined): text is string => text !== undefined && /^\d{1,10}$/.test(text)
