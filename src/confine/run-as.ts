/** The user of session workers. */
import { readFileSync } from 'node:fs'

export interface User {
  uid: number
  gid: number
}

const PASSWD = '/etc/passwd'
const DEFAULT = 'sallyport-session'
/** User ids that systemd's conventions leave unused (UIDS-GIDS.md), mapped in containers too. */
const FIRST_UNUSED = 65_520
const LAST_UNUSED = 65_533

/** CAP_KILL, CAP_SETGID and CAP_SETUID (linux/capability.h). */
const SET_USER = (1n << 5n) | (1n << 6n) | (1n << 7n)

/** Whether this process may start others as another user, and end them: root, or with the capabilities for it. */
export function maySetUser(status = '/proc/self/status'): boolean {
  if (process.getuid?.() === 0) return true
  try {
    const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync(status, 'utf8'))?.[1]
    return effective !== undefined && (BigInt(`0x${effective}`) & SET_USER) === SET_USER
  } catch {
    return false
  }
}

/**
 * Returns the user of session workers, with the first group of that user and no other: `name` from the
 * configuration, else `sallyport-session`, else ids of no user. Throws an error with the remedy if the configured
 * user does not exist, or is root.
 */
export function workerUser(name: string | undefined, passwd = PASSWD): User {
  const users = usersOf(passwd)
  const user = users.get(name ?? DEFAULT)
  if (user?.uid === 0) throw new Error(`run_as: ${name} is root, whom no boundary holds: name another user`)
  if (user !== undefined) return user
  if (name !== undefined) {
    throw new Error(
      `run_as: ${passwd} has no user ${name}: useradd --system --no-create-home --shell /usr/sbin/nologin ${name}`,
    )
  }
  const taken = new Set([...users.values()].flatMap(({ uid, gid }) => [uid, gid]))
  for (let id = LAST_UNUSED; id >= FIRST_UNUSED; id--) if (!taken.has(id)) return { uid: id, gid: id }
  throw new Error(`run_as: name a user for session workers: ${passwd} uses all ids up to ${LAST_UNUSED}`)
}

/** Returns the users by name; the first line of a name counts. */
function usersOf(passwd: string): ReadonlyMap<string, User> {
  const users = new Map<string, User>()
  for (const line of readFileSync(passwd, 'utf8').split('\n')) {
    const [login, , uid, gid] = line.split(':')
    if (!login || users.has(login) || !isNumber(uid) || !isNumber(gid)) continue
    users.set(login, { uid: Number(uid), gid: Number(gid) })
  }
  return users
}

const isNumber = (text: string | undefined): text is string => text !== undefined && /^\d{1,10}$/.test(text)
