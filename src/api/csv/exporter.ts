/** Exports a type's objects as a table, piece by piece: only one page is held in memory. */
import { cellOf, type Value } from '../../csv/cells.ts'
import { BOM, headerOf, linesOf } from '../../csv/writer.ts'
import type { Id } from '../../model/objects.ts'
import type { ApiRequest } from '../access/caller.ts'
import type { ResourceContext } from '../access/context.ts'
import type { CsvName } from '../access/table-names.ts'
import { Names } from '../collection/references.ts'
import { Turns } from '../http/pauses.ts'
import { type Column, valueAt } from './columns.ts'
import { type AnyResource, type Body, tableOf } from './tables.ts'

/** Number of objects per page. */
const PAGE = 500

/** Yields pieces of text. The columns are those of an import, except the secret ones. */
export async function* exportTable(
  context: ResourceContext,
  request: ApiRequest,
  name: CsvName,
  separator: string,
): AsyncGenerator<string> {
  const { store } = context.deps
  const table = tableOf(name, context)
  const columns = table.columns.filter(({ kind }) => kind !== 'secret')
  const turns = new Turns()
  yield BOM + linesOf([headerOf(columns.map((column) => column.name))], separator)
  const lines = async (resource: AnyResource, objects: readonly { id: Id }[], device?: string) => {
    const names = new Names(store, { isForTable: true })
    const shown: Body[] = await Promise.all(objects.map((object) => resource.show(object, names)))
    const views = table.written ? shown.map(table.written) : shown
    const rows = views.map((view) => rowOf(columns, device === undefined ? view : { ...view, device }))
    return linesOf(rows, separator)
  }
  if (table.single) {
    const { resource } = table.single
    for await (const page of pagesOf((page) => resource.list(request, page))) {
      yield await lines(resource, page)
      await turns.next()
    }
  }
  if (table.ofDevice) {
    const { resource } = table.ofDevice
    for await (const devices of pagesOf((page) => store.devices.list(page))) {
      for (const device of devices) {
        const parent = { ...request, params: { device: device.id } }
        const { items } = await resource.list(parent, { limit: -1, offset: 0 })
        if (items.length > 0) yield await lines(resource, items, device.deviceName)
        await turns.next()
      }
    }
  }
}

function rowOf(columns: readonly Column[], view: Body): string[] {
  return columns.map(({ kind, path }) => cellOf(kind, valueAt(view, path) as Value | undefined))
}

interface Page {
  limit: number
  offset: number
  sort: string[]
}

/**
 * Yields all objects once, sorted by id, so that deleting one does not make a later page skip objects. An
 * object added meanwhile may be missing.
 */
async function* pagesOf<T extends { id: Id }>(
  list: (page: Page) => Promise<{ items: T[] }>,
): AsyncGenerator<T[]> {
  let next = 0
  let last = ''
  for (;;) {
    // Read the previous page's last object again: if it is not the first one found, earlier objects were
    // deleted.
    const offset = Math.max(0, next - 1)
    const { items } = await list({ limit: PAGE + 1, offset, sort: ['id'] })
    const first = items[0]?.id
    if (next > 0 && (first === undefined || last < first)) {
      next = Math.max(0, next - PAGE)
      continue
    }
    const fresh = items.filter(({ id }) => last < id)
    if (fresh.length > 0) yield fresh
    last = fresh.at(-1)?.id ?? last
    next = offset + items.length
    if (items.length <= PAGE) return
  }
}
