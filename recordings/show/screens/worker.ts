/** The thread that draws the screens of watched sessions. */
import { parentPort } from 'node:worker_threads'
import { giveWay } from '../../../src/threads/priority.ts'
import { type FollowedFrame, RecordingFollower } from './follower.ts'
import type { FromDrawer, ToDrawer } from './messages.ts'

/** Of 19: users of a session take precedence over viewers. */
const NICENESS = 5

giveWay(NICENESS)

interface Followed {
  follower: RecordingFollower
  /** Serializes the requests. */
  turn: Promise<void>
  /** Timer of the next report of changes. */
  telling: NodeJS.Timeout | undefined
  /** Earliest time of the next report. */
  next: number
}

/** Milliseconds between two reports of changes, and the same as a multiple of their drawing time. */
const PACE_MS = 100
const PACE_TIMES = 4

const followed = new Map<string, Followed>()

async function state(
  { follower }: Followed,
  { request, session, frames }: ToDrawer & { kind: 'state' },
): Promise<void> {
  let answer: FromDrawer
  try {
    answer = { kind: 'state', request, channels: await follower.state(frames) }
  } catch (error) {
    // The next request starts with a new follower.
    if (followed.get(session)?.follower === follower) followed.delete(session)
    await follower.close().catch(() => undefined)
    answer = { kind: 'failed', request, reason: error instanceof Error ? error.message : String(error) }
  }
  parentPort?.postMessage(answer)
}

/** Reports the changes when a report is due. */
function tellLater(session: string, one: Followed): void {
  const wait = Math.max(0, one.next - performance.now())
  one.telling ??= setTimeout(() => {
    inTurn(session, one, async () => {
      one.telling = undefined
      const began = performance.now()
      const changes = one.follower.changes()
      one.next = began + Math.max(PACE_MS, PACE_TIMES * (performance.now() - began))
      if (changes.length > 0)
        parentPort?.postMessage({ kind: 'changes', session, changes } satisfies FromDrawer)
    })
  }, wait)
}

/** Runs after the earlier requests; an error ends the following. */
function inTurn(session: string, one: Followed, act: () => Promise<void>): void {
  one.turn = one.turn.then(async () => {
    if (followed.get(session) !== one) return
    try {
      await act()
    } catch {
      followed.delete(session)
      await one.follower.close().catch(() => undefined)
      parentPort?.postMessage({ kind: 'lost', session } satisfies FromDrawer)
    }
  })
}

function take(session: string, one: Followed, frames: readonly FollowedFrame[]): void {
  inTurn(session, one, async () => {
    await one.follower.take(frames)
    tellLater(session, one)
  })
}

parentPort?.on('message', (message: ToDrawer) => {
  const { session } = message
  const known = followed.get(session)
  if (message.kind === 'forget') {
    followed.delete(session)
    clearTimeout(known?.telling)
    // Complete a running request first.
    known?.turn.then(() => known.follower.close()).catch(() => undefined)
    return
  }
  if (message.kind === 'frames') {
    if (known) take(session, known, message.frames)
    return
  }
  const one = known ?? {
    follower: new RecordingFollower(message.path, message.key),
    turn: Promise.resolve(),
    telling: undefined,
    next: 0,
  }
  if (!known) followed.set(session, one)
  one.turn = one.turn.then(() => state(one, message))
})
