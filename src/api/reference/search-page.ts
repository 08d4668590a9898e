/** The reference's section on searching. A test runs its examples; docs/api.md shows the same ones. */

import type { Kind } from '../../search/fields.ts'
import {
  GRAMMAR,
  MAX_COMPARISONS,
  MAX_DEPTH,
  MAX_EXPRESSION,
  MAX_PATTERNS,
  MAX_WILDCARDS,
} from '../../search/grammar.ts'
import { VARIABLES } from '../collection/search.ts'
import { escaped, table } from './html.ts'
import { SEARCHABLE } from './searchable.ts'

export const EXAMPLES: readonly { path: string; q: string; finds: string }[] = [
  { path: '/users', q: 'user_name=ops1', finds: 'the user of that name' },
  { path: '/users', q: 'profile=auditor || profile=approver', finds: 'users with one of two profiles' },
  {
    path: '/users',
    q: 'is_disabled=false && (expiration_date="" || expiration_date~2031)',
    finds: 'users who may work, without an end or until some time in 2031',
  },
  { path: '/users', q: 'groups=linux-admins && email~*@example.com', finds: 'members with such an address' },
  { path: '/usergroups', q: `users=\${user}`, finds: 'groups of the one who asks' },
  { path: '/devices', q: 'device_name~web*', finds: 'devices whose name begins with web' },
  { path: '/devices', q: 'description~"rack 7"', finds: 'devices with that anywhere in their description' },
  { path: '/devices', q: 'description~"*50\\*"', finds: 'descriptions that end in 50 and a star' },
  { path: '/devices/srv1/services', q: 'port=22', finds: 'services of the device at that port' },
  { path: '/accounts', q: 'device=srv1 && credentials.type=ssh_key', finds: 'its accounts that have a key' },
  { path: '/accounts', q: 'device=""', finds: 'accounts of global domains' },
  { path: '/targetgroups', q: 'session.accounts~root@*:srv1:*', finds: 'groups that hold root on srv1' },
  {
    path: '/authorizations',
    q: 'user_group=linux-admins && is_recorded=true',
    finds: 'what that group is given',
  },
  { path: '/sessions', q: 'user=ops1 && begin~2031-06', finds: 'sessions of a user in June 2031' },
  {
    path: '/sessions',
    q: 'user=ops1 && begin>=2031-05-30 && begin<2031-06',
    finds: 'sessions of a user from a day on, and before a month',
  },
  { path: '/sessions', q: 'bytes_out>1000000', finds: 'sessions that showed more than a megabyte' },
  { path: '/sessions', q: `source_ip=\${client_ip}`, finds: 'sessions from the address of the one who asks' },
  { path: '/targets', q: 'srv*', finds: 'no operator: targets of which a part begins with srv' },
  {
    path: '/targets',
    q: 'root@local:srv1',
    finds: 'no operator, no star: targets with that in their canonical name',
  },
  { path: '/targets', q: 'device=srv1 && protocol=SSH', finds: 'targets on that device' },
]

const KINDS: Readonly<Record<Kind, string>> = {
  name: 'a name: without regard to case',
  label: 'a word: without regard to the case of a to z',
  text: 'text: = letter by letter, ~ without regard to the case of a to z',
  id: 'an id',
  flag: '= true or = false',
  integer: '= an integer; <, <=, >, >= in its order',
  time: '= a time (RFC 3339, 2031-12-31T23:59:59Z); ~ the beginning of one in UTC (2031-12); <, <=, >, >= either of them',
}

/** Returns `<h2 id="search">` and its section. */
export function searchPart(): string {
  const code = (text: string) => `<code>${escaped(text)}</code>`
  const fields = Object.entries(SEARCHABLE).map(([path, known]) => [
    path,
    Object.entries(known)
      .map(([name, { kind }]) => `${name} (${kind})`)
      .join(', '),
  ])
  return [
    '<h2 id="search">Search</h2>',
    `<p>Every collection takes the parameter ${code('q')} with an expression, and answers with the objects that meet it. ${code('X-Total-Count')} tells how many those are on all pages. Blank text asks for nothing: all objects are the answer.</p>`,
    `<pre>${escaped(GRAMMAR)}</pre>`,
    '<ul>',
    `<li>${code('field=value')} is exact, ${code('field~value')} means contains. With a wildcard ${code('*')} the value after ${code('~')} stands for the whole: ${code('web*')} is what begins with web. ${code('<')}, ${code('<=')}, ${code('>')} and ${code('>=')} compare integers and times; a beginning of a time stands for all of it: ${code('end>2031-06')} is after that month. After ${code('=')} a star is a star; after ${code('~')} it is one as ${code('"\\*"')}.</li>`,
    `<li>${code('&&')} binds tighter than ${code('||')}. White space is free, but not within a word: put values with spaces or other signs in double quotes.</li>`,
    `<li>Of a list, one member is enough. ${code('field=""')} finds where there is nothing: no value, empty text, an empty list. ${code('field~*')} finds where there is something.</li>`,
    `<li>In a URL ${code('&&')} is ${code('%26%26')} and ${code('+')} is ${code('%2B')} (curl: ${code("-G --data-urlencode 'q=…'")}). A bare ${code('&&')} within q is understood too.</li>`,
    `<li>On ${code('/targets')}, q without an operator is a pattern on the canonical name ${code('ACCOUNT@DOMAIN:DEVICE:SERVICE')}: without a star it may stand anywhere in it, with stars it stands for one or more whole parts of it.</li>`,
    `<li>At most ${MAX_EXPRESSION} characters, ${MAX_COMPARISONS} comparisons, ${MAX_PATTERNS} of them with ${code('~')}, ${MAX_WILDCARDS} wildcards in a value, ${MAX_DEPTH} parentheses in one another.</li>`,
    `<li>An expression that cannot be read is 400 ${code('invalid_search')}, a field that does not exist 400 ${code('unknown_field')} with the names of those that do; ${code('details[0].position')} is the offset of the fault, in characters from 0.</li>`,
    '</ul>',
    table(
      ['path', 'q', 'finds'],
      EXAMPLES.map(({ path, q, finds }) => [path, q, finds]),
    ),
    '<p>Variables, outside quotes. What they stand for is never read as a wildcard or an operator; one that stands for nothing is an error.</p>',
    table(
      ['variable', 'stands for'],
      Object.entries(VARIABLES).map(([name, meaning]) => [`\${${name}}`, meaning]),
    ),
    '<p>Fields, and what their values are compared as.</p>',
    table(['kind', 'compared as'], Object.entries(KINDS)),
    table(['collection', 'fields'], fields),
    `<p>${code('sort')} takes the same fields but lists, ${code('-')} before one for descending.</p>`,
  ].join('')
}
