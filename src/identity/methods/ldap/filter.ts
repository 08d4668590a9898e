/** Filters (RFC 4515) that are built of values, never pasted, and the check of those that administrators write. */
import { AndFilter, EqualityFilter, type Filter, FilterParser, OrFilter } from 'ldapts'

/** Longest filter of an administrator, in characters. */
export const MAX_FILTER = 2048
const ATTRIBUTE = '[A-Za-z][A-Za-z0-9-]*'
const RULE = `(?:${ATTRIBUTE}|\\d+(?:\\.\\d+)+)`
const CHARACTER = String.raw`[^*\\]|\\[0-9A-Fa-f]{2}`
const VALUE = `(?:${CHARACTER})*`
/** An item of RFC 4515 3, with an attribute by name. */
const ITEM = new RegExp(
  `^(?:${ATTRIBUTE}(?:[<>~]=${VALUE}|=(?:${CHARACTER}|\\*)*|(?::dn)?(?::${RULE})?:=${VALUE})|(?::dn)?:${RULE}:=${VALUE})$`,
  'u',
)
/** Stands for a filter that was read. */
const READ = '\0'
/** Most parentheses: the library's parser is recursive. */
const MAX_PARENTHESES = 64

/** Returns what is wrong with a filter of RFC 4515, or undefined. */
export function userFilterFlaw(text: string): string | undefined {
  if (text.length > MAX_FILTER) return `a filter has at most ${MAX_FILTER} characters`
  if (!text.startsWith('(')) return 'a filter begins with a parenthesis, such as (objectClass=person)'
  if (text.split('(').length - 1 > MAX_PARENTHESES)
    return `a filter has at most ${MAX_PARENTHESES} parentheses`
  if (!isFilter(text)) return 'no filter of RFC 4515: an item is not valid, or a parenthesis is missing'
  try {
    FilterParser.parseString(text)
    return undefined
  } catch (error) {
    return `no filter of RFC 4515: ${(error as Error).message.slice(0, 200)}`
  }
}

/** Reads a filter from its innermost items outwards. The library's parser takes some that are none. */
function isFilter(text: string): boolean {
  if (text.includes(READ)) return false
  let before = ''
  let rest = text.replaceAll(/\(([^()&|!][^()]*)\)/g, (all, item) => (ITEM.test(item) ? READ : all))
  while (rest !== before) {
    before = rest
    rest = rest.replaceAll(/\([&|]\0+\)|\(!\0\)/g, READ)
  }
  return rest === READ
}

/** Returns the filter of the person whose attribute has this value. @throws Error if `userFilter` is none */
export function personFilter(attribute: string, value: string, userFilter: string | undefined): Filter {
  const named = new EqualityFilter({ attribute, value })
  if (userFilter === undefined) return named
  return new AndFilter({ filters: [named, FilterParser.parseString(userFilter)] })
}

/** Returns the filter of groups with any of these members, by the attributes of groupOfNames and groupOfUniqueNames. */
export function groupsOf(members: readonly string[]): Filter {
  return new OrFilter({
    filters: members.flatMap((value) =>
      ['member', 'uniqueMember'].map((attribute) => new EqualityFilter({ attribute, value })),
    ),
  })
}
