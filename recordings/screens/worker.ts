/** The thread that draws the screens of watched sessions. */
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { RecordingFollower } from './follower.ts'
import type { FromDrawer, ToDrawer } from './messages.ts'

/** Of 19: those who work in a session go before those who watch. */
const NICENESS = 5

// On Linux 0 is the calling thread (setpriority(2), C library/kernel differences), elsewhere the whole process.
if (process.platform === 'linux') setPriority(0, NICENESS)

interface Followed {
  follower: RecordingFollower
  /** One request at a time. */
  turn: Promise<void>
}

const followed = new Map<string, Followed>()

async function state(
  { follower }: Followed,
  { request, session, frames }: ToDrawer & { kind: 'state' },
): Promise<void> {
  let answer: FromDrawer
  try {
    answer = { kind: 'state', request, channels: await follower.state(frames) }
  } catch (error) {
    // The next request begins anew.
    if (followed.get(session)?.follower === follower) followed.delete(session)
    await follower.close().catch(() => undefined)
    answer = { kind: 'failed', request, reason: error instanceof Error ? error.message : String(error) }
  }
  parentPort?.postMessage(answer)
}

parentPort?.on('message', (message: ToDrawer) => {
  const { session } = message
  const known = followed.get(session)
  if (message.kind === 'forget') {
    followed.delete(session)
    // A request under way is answered first.
    known?.turn.then(() => known.follower.close()).catch(() => undefined)
    return
  }
  const one = known ?? {
    follower: new RecordingFollower(message.path, message.key),
    turn: Promise.resolve(),
  }
  if (!known) followed.set(session, one)
  one.turn = one.turn.then(() => state(one, message))
})
