/**
 * A lock between processes: a symbolic link whose target is the holder's pid, since a link is created
 * atomically with its content. A lock whose holder has ended is replaced.
 */
import { readlinkSync, renameSync, symlinkSync, unlinkSync } from 'node:fs'

const POLL_MS = 200
const PATIENCE_MS = 15 * 60 * 1000

function holder(path) {
  try {
    return Number(readlinkSync(path))
  } catch {
    return undefined
  }
}

function alive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Removes a lock that its holder left behind; of several that try, one succeeds. */
function takeAway(path, pid) {
  const aside = `${path}.${process.pid}`
  try {
    renameSync(path, aside)
  } catch {
    return
  }
  if (holder(aside) !== pid && alive(holder(aside))) {
    // Another process was quicker and its lock was moved by mistake: put it back.
    renameSync(aside, path)
    return
  }
  unlinkSync(aside)
}

/**
 * Runs `work` with the lock at `path`; waits for another holder, at most a quarter of an hour. `say` gets one
 * line if there is a wait. Throws the error of `work`, or of a link that cannot be created for another reason
 * than that it exists.
 */
export async function withLock(path, say, work) {
  const deadline = Date.now() + PATIENCE_MS
  let told = false
  for (;;) {
    try {
      symlinkSync(String(process.pid), path)
      break
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
    const pid = holder(path)
    if (pid !== undefined && !alive(pid)) {
      takeAway(path, pid)
      continue
    }
    if (Date.now() > deadline) throw new Error(`${path} is held by process ${pid}: end it or remove the lock`)
    if (!told && pid !== undefined) say(`waiting for process ${pid}, which is at the same work`)
    told = true
    await new Promise((done) => setTimeout(done, POLL_MS))
  }
  const release = () => {
    if (holder(path) === process.pid) unlinkSync(path)
  }
  process.once('exit', release)
  try {
    return await work()
  } finally {
    release()
    process.off('exit', release)
  }
}
