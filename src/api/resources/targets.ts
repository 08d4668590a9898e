/** Targets that a user may open: the caller's list, and the authorizations behind it. */
import { type Static, Type } from 'typebox'
import { requiresFactor } from '../../model/conditions.ts'
import { formatCanonical } from '../../model/login.ts'
import { FACTOR_POLICIES, type FactorPolicy, TARGET_KINDS, type User } from '../../model/objects.ts'
import { reaches } from '../../model/profiles.ts'
import { grantedRights, PROTOCOLS, RIGHTS } from '../../model/rights.ts'
import type { Fields } from '../../search/fields.ts'
import type { TargetRow } from '../../store/store.ts'
import { sendList } from '../access/answers.ts'
import { callerOf, userOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { fieldsOf, ListQuery, listQuery, pageOf, pick } from '../collection/listing.ts'
import { hasOperator, pageOfAll, patternOn } from '../collection/search.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { exact, oneOf, titled } from '../schema/fields.ts'

const place = {
  target: Type.String({
    description:
      'canonical name: ACCOUNT@DOMAIN:DEVICE:SERVICE; ACCOUNT@DEVICE:SERVICE by account mapping; @DEVICE:SERVICE for interactive login',
  }),
  kind: oneOf(TARGET_KINDS, 'stored account, account mapping, or interactive login'),
  account: Type.String({ description: 'empty: asked for' }),
  domain: Type.String({ description: 'empty: no stored account' }),
  device: Type.String(),
  service: Type.String(),
  protocol: oneOf(PROTOCOLS, 'protocol'),
  subprotocols: Type.Array(oneOf(RIGHTS, 'right'), { description: 'what a session there may do' }),
}
const secondFactor = oneOf(FACTOR_POLICIES, 'required: a session there begins after a one-time code')
const TargetView = titled(
  'Target',
  exact({
    ...place,
    description: Type.String({ description: "the device's" }),
    second_factor: secondFactor,
  }),
)
const RightView = titled(
  'SessionRight',
  exact({
    user: Type.String(),
    authorization: Type.String({ description: 'USERGROUP:TARGETGROUP' }),
    authorization_id: Type.String(),
    ...place,
    is_recorded: Type.Boolean(),
    second_factor: secondFactor,
  }),
)
const RightsQuery = Type.Object(
  {
    ...listQuery,
    user: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: 'default: the caller' })),
  },
  { additionalProperties: false },
)
const tags = ['Targets']

const placeFields = {
  target: { kind: 'name' },
  kind: { kind: 'label' },
  account: { kind: 'name' },
  domain: { kind: 'name' },
  device: { kind: 'name' },
  service: { kind: 'name' },
  protocol: { kind: 'label' },
  subprotocols: { kind: 'label' },
} as const satisfies Fields
export const TARGET_FIELDS = {
  ...placeFields,
  description: { kind: 'text' },
  second_factor: { kind: 'label' },
} as const satisfies Fields
export const SESSION_RIGHT_FIELDS = {
  user: { kind: 'name' },
  authorization: { kind: 'name' },
  authorization_id: { kind: 'id' },
  ...placeFields,
  is_recorded: { kind: 'flag' },
  second_factor: { kind: 'label' },
} as const satisfies Fields

function namesOf(row: TargetRow) {
  return {
    account: row.accountName,
    domain: row.domainName,
    device: row.deviceName,
    service: row.serviceName,
  }
}

function nameOf(names: ReturnType<typeof namesOf>): string {
  const { account, domain, device, service } = names
  return domain === '' ? formatCanonical(names) : `${account}@${domain}:${device}:${service}`
}

function placeOf(row: TargetRow, rows: readonly TargetRow[]) {
  const names = namesOf(row)
  return {
    target: nameOf(names),
    kind: row.kind,
    ...names,
    protocol: row.protocol,
    subprotocols: grantedRights(
      row.protocol,
      rows.map((one) => one.authorizationSubprotocols),
      row.serviceSubprotocols,
    ),
  }
}

/**
 * Groups the rows of each target: several authorizations may grant it, but it is one line with the union of
 * their rights.
 */
function targetsOf(rows: readonly TargetRow[]): TargetRow[][] {
  return [...Map.groupBy(rows, (row) => `${row.kind} ${row.accountId} ${row.serviceId}`).values()]
}

function showTarget(same: readonly TargetRow[]): Static<typeof TargetView> {
  const first = same[0]!
  return {
    ...placeOf(first, same),
    description: first.deviceDescription,
    second_factor: factorOf(same),
  }
}

/** One authorization that requires none is enough. */
const factorOf = (rows: readonly TargetRow[]): FactorPolicy =>
  rows.every(({ conditions }) => requiresFactor(conditions)) ? 'required' : 'none'

export function registerTargets(app: Api, { deps, answers }: Context): void {
  const { store } = deps

  app.get(
    '/targets',
    {
      schema: {
        tags,
        summary: "The caller's targets",
        querystring: ListQuery,
        response: { 200: Type.Array(TargetView), ...errorResponses(400, 401, 403) },
      },
    },
    async (request, reply) => {
      const fields = fieldsOf(request.query, TargetView)
      const { q, ...query } = request.query
      const pattern = q === undefined || q.trim() === '' || hasOperator(q) ? undefined : patternOn(q)
      const page = pageOf(pattern ? query : request.query, request)
      const targets = targetsOf(await store.access.sessionTargets(userOf(request).id, deps.clock()))
      const matching = pattern ? targets.filter(([first]) => pattern(namesOf(first!))) : targets
      const { items, total } = pageOfAll(matching, page, TARGET_FIELDS, showTarget)
      return sendList(answers, request, reply, { items, total }, (some) =>
        some.map((one) => pick(one, fields)),
      )
    },
  )

  app.get(
    '/sessionrights',
    {
      schema: {
        tags,
        summary: 'Authorizations by which a user may open targets',
        description:
          "The caller's own for every user; those of others with the right to view authorizations.",
        querystring: RightsQuery,
        response: { 200: Type.Array(RightView), ...errorResponses(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      const { user: name, ...query } = request.query
      const fields = fieldsOf(query, RightView)
      const user = name === undefined ? userOf(request) : await named(name)
      const rows = await store.access.sessionTargets(user.id, deps.clock())
      const { items, total } = pageOfAll(rows, pageOf(query, request), SESSION_RIGHT_FIELDS, (row) => ({
        user: user.userName,
        authorization: row.authorizationName,
        authorization_id: row.authorizationId,
        ...placeOf(row, [row]),
        is_recorded: row.isRecorded,
        second_factor: factorOf([row]),
      }))
      return sendList(answers, request, reply, { items, total }, (some) =>
        some.map((one) => pick(one, fields)),
      )

      async function named(ref: string): Promise<User> {
        const caller = callerOf(request)
        const user = await store.users.find(ref)
        if (user && user.id === caller.user?.id) return user
        if (!reaches(caller.rights.authorizations, 'view')) throw new ApiError('forbidden')
        if (!user) throw new ApiError('not_found')
        return user
      }
    },
  )
}
