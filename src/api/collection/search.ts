/** The parameter `q`: converts its text to a search of the store, or of objects in memory. */
import type { FastifyRequest } from 'fastify'
import { nameKey } from '../../model/names.ts'
import { bind, type Search, type Variables } from '../../search/bind.ts'
import { isLike, meets } from '../../search/evaluate.ts'
import { type Fields, likeForm } from '../../search/fields.ts'
import { MAX_EXPRESSION, MAX_WILDCARDS, SearchError } from '../../search/grammar.ts'
import { parse } from '../../search/parser.ts'
import type { Page } from '../../store/store.ts'
import { callerOf } from '../access/caller.ts'
import { addressOf } from '../access/events.ts'
import { fieldError } from '../http/errors.ts'

/** Variables and their meaning; the reference shows them, and `variablesOf` sets them. */
export const VARIABLES = {
  user: 'name of the user who asks',
  subject_cn: 'common name of the user who asks: the same name, as long as nobody signs in by certificate',
  profile: 'profile of the user who asks; of an API key alone, its own',
  client_ip: 'address from which the request comes',
} as const satisfies Record<string, string>

function variablesOf(request: FastifyRequest): Variables {
  const { user, profile } = callerOf(request)
  return {
    user: user?.userName,
    subject_cn: user?.userName,
    profile: user?.profile ?? profile,
    client_ip: addressOf(request),
  } satisfies Record<keyof typeof VARIABLES, string | undefined>
}

/** Parses the search; blank text is none. @throws SearchError */
export function searchOf(q: string | undefined, request: FastifyRequest): Search | undefined {
  if (q === undefined || q.trim() === '') return undefined
  return { expression: parse(q), variables: variablesOf(request) }
}

/**
 * Returns the URL with each `&&` within `q` as `%26%26`: clients that do not encode the operator would only
 * send an empty parameter.
 */
export function withOperators(url: string): string {
  return url.replace(
    /([?&]q=)([^&]*(?:&&[^&]*)+)/g,
    (_, name: string, q: string) => name + q.replaceAll('&&', '%26%26'),
  )
}

/**
 * Returns a page of objects in memory. `view` converts an object to its form in the API, which is searched
 * and sorted.
 * @throws SearchError, and ApiError `invalid_field` for an unknown sort key
 */
export function pageOfAll<T, V extends object>(
  all: readonly T[],
  { limit, offset, sort = [], search }: Page,
  fields: Fields,
  view: (object: T) => V,
): { items: V[]; total: number } {
  const end = limit === -1 ? undefined : offset + limit
  if (sort.length === 0 && !search) return { items: all.slice(offset, end).map(view), total: all.length }
  const condition = search && bind(search, fields)
  const views = all.map(view).filter((one) => !condition || meets(one, condition))
  for (const word of sort.toReversed()) {
    const sign = word.startsWith('-') ? -1 : 1
    const key = sortKey(word.replace(/^-/, ''), fields)
    const keyed = views.map((one) => ({ one, key: key(one) }))
    keyed.sort((a, b) => sign * compare(a.key, b.key))
    views.splice(0, views.length, ...keyed.map(({ one }) => one))
  }
  return { items: views.slice(offset, end), total: views.length }
}

function sortKey(name: string, fields: Fields): (object: object) => string | number {
  const field = Object.hasOwn(fields, name) ? fields[name] : undefined
  if (!field) {
    const known = Object.keys(fields).join(', ')
    throw fieldError('invalid_field', 'sort', `cannot sort by "${name}": expected one of ${known}`)
  }
  return (object) => {
    const value = (object as Record<string, unknown>)[name]
    if (typeof value === 'number' || typeof value === 'boolean') return Number(value)
    return field.kind === 'name' ? nameKey(String(value)) : String(value)
  }
}

function compare(a: string | number, b: string | number): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** Whether the text is an expression of the grammar rather than a pattern for canonical names. */
export function hasOperator(q: string): boolean {
  return /[=~<>]|&&|\|\|/.test(q)
}

/**
 * Makes a test of canonical names for a pattern. One without `*` matches anywhere in the name; with `*`,
 * whole parts: `srv*` is every account and service of those devices, `root@*` the account, `*:ssh` the
 * service.
 * @throws SearchError if it is too long
 */
export function patternOn(
  q: string,
): (place: { account: string; domain: string; device: string; service: string }) => boolean {
  const parts = likeForm('name', q.trim()).split('*')
  if (q.length > MAX_EXPRESSION || parts.length - 1 > MAX_WILDCARDS) {
    const limits = `at most ${MAX_EXPRESSION} characters and ${MAX_WILDCARDS} wildcards`
    throw new SearchError('form', 0, limits, 'more')
  }
  const anywhere = parts.length === 1 ? ['', ...parts, ''] : undefined
  return ({ account, domain, device, service }) => {
    const owner = domain === '' ? [`${account}@`] : [`${account}@`, `${domain}:`]
    const names = [...owner, `${device}:`, service].map((name) => likeForm('name', name))
    if (anywhere) return isLike(names.join(''), anywhere)
    return names.some((_, first) =>
      names.some((_, last) => {
        if (last < first) return false
        const stretch = names.slice(first, last + 1).join('')
        return isLike(last === names.length - 1 ? stretch : stretch.slice(0, -1), parts)
      }),
    )
  }
}
