/** Converts events of the audit log for the index. */
import type { StoredEvent } from '../audit/chain.ts'
import type { ContentEvent } from './contents.ts'

/** Returns undefined if the event does not concern the index. */
export function contentEventOf({ code, time, fields }: StoredEvent): ContentEvent | undefined {
  if (typeof fields.session !== 'string') return undefined
  const { session } = fields
  const line = (field: 'command' | 'file', text: unknown): ContentEvent | undefined =>
    typeof text === 'string' && text !== '' ? { kind: 'line', session, field, time, text } : undefined
  switch (code) {
    case 'session.open':
      return { kind: 'begin', session, begin: time }
    case 'command':
      return line('command', fields.object)
    case 'file.transfer':
    case 'file.denied':
    case 'file.failed':
      return line('file', fields.path)
    case 'recording.deleted':
      return { kind: fields.result === 'failure' ? 'back' : 'gone', session }
    default:
      return undefined
  }
}
