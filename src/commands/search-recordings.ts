/** `sallyport recordings search`: reads the index over sessions, also while the broker runs. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { jsonLine } from '../../recordings/decode/frames/payload.ts'
import { harmless } from '../../recordings/decode/terminal/filter.ts'
import type { Match } from '../contents/contents.ts'
import { ContentDatabase } from '../contents/database.ts'
import { contentMode } from '../contents/open.ts'
import type { SessionRecord } from '../model/objects.ts'
import { CONTENT_FIELDS, type ContentField, phrasesOf } from '../search/words.ts'
import type { Beside } from './beside.ts'
import { UsageError } from './command.ts'

/** The most lines that are shown: the newest. */
const MAX_SHOWN = 1000

export interface SearchRecordings {
  text: string
  /** Empty: all. */
  fields: readonly ContentField[]
  json: boolean
}

/**
 * Prints the newest lines first, and to standard error how many were left out. Exit code 1: nothing found.
 */
export function searchRecordings({
  text,
  fields,
  json,
}: SearchRecordings): (beside: Beside) => Promise<number> {
  const phrases = phrasesOf(text.replace(/\0/g, ' ').split('*'))
  if (typeof phrases === 'string') throw new UsageError(`recordings search takes ${phrases} to look for`)
  const chosen = fields.length > 0 ? fields : CONTENT_FIELDS
  return async ({ config, store, audit }) => {
    const mode = contentMode(config.recordings)
    const path = join(config.dataDir, 'search.db')
    if (mode === 'off') throw new Error('nothing is indexed here: recordings.search is off')
    if (!existsSync(path)) throw new Error(`there is no index ${path} yet: start the broker once (npm start)`)
    if (mode !== 'full' && fields.includes('output')) {
      const why = config.recordings.brokerKey
        ? 'recordings.search is commands'
        : 'only auditors open recordings'
      throw new Error(`output is not indexed here: ${why}`)
    }
    await audit.record('recording.search', { method: chosen.join(' ') })
    const database = new ContentDatabase(path, mode)
    try {
      const tests = chosen.map((field) => ({ field, phrases }))
      const matches = database.newest(tests, MAX_SHOWN)
      const known = new Map<string, SessionRecord | undefined>()
      for (const match of matches) {
        const { session } = match
        if (!known.has(session)) known.set(session, await store.sessions.find(session))
        process.stdout.write(json ? jsonOf(match, known.get(session)) : lineOf(match, known.get(session)))
      }
      if (matches.length === MAX_SHOWN) {
        process.stderr.write(`sallyport: only the newest ${MAX_SHOWN} lines are shown: look for more words\n`)
      }
      return matches.length > 0 ? 0 : 1
    } finally {
      database.close()
    }
  }
}

function lineOf({ session, at, field, excerpt }: Match, record: SessionRecord | undefined): string {
  const who = record ? `${record.user} ${targetOf(record)}` : '-'
  return `${harmless(`${session} ${(at / 1000).toFixed(3).padStart(10)}  ${who}  ${field}: ${excerpt}`)}\n`
}

function jsonOf({ session, at, channel, field, excerpt }: Match, record: SessionRecord | undefined): string {
  const begin = record && new Date(record.begin).toISOString()
  const about = record ? { user: record.user, target: targetOf(record), begin } : {}
  return jsonLine({ session, ...about, time: at / 1000, channel: channel ?? null, field, excerpt })
}

const targetOf = ({ account, domain, device, service }: SessionRecord) =>
  `${account}@${domain}:${device}:${service}`
