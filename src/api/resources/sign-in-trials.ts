/** `POST /externalauths/NAME/test`, `POST /authdomains/NAME/test`: servers tried step by step. */
import { type Static, Type } from 'typebox'
import { BusyError } from '../../identity/errors.ts'
import type { TestRequest } from '../../identity/methods/method.ts'
import type { TrialStep } from '../../identity/trials.ts'
import { Secret } from '../../model/secret.ts'
import { type ApiRequest, callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, record } from '../access/events.ts'
import { paramsSchema } from '../collection/paths.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { exact, oneOf, titled } from '../schema/fields.ts'

const STEPS = [
  'reached',
  'tls',
  'bound',
  'user_found',
  'groups',
  'signed_in',
  'answered',
  'mapped',
] as const satisfies readonly TrialStep['step'][]
const Body = titled(
  'SignInTest',
  exact({
    user_name: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: 'as the servers know it, without the domain; without one only the servers are tried',
        examples: ['alice'],
      }),
    ),
    password: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1024, description: 'of that user; is proved, and not kept' }),
    ),
  }),
)
const Answer = titled(
  'SignInTestResult',
  exact({
    ok: Type.Boolean({ description: 'all steps passed' }),
    steps: Type.Array(
      exact({
        server: Type.String({ description: 'name of the external authentication; empty for the mappings' }),
        step: oneOf(STEPS, 'the first that fails ends the trial of its server'),
        ok: Type.Boolean(),
        detail: Type.String({ description: 'the finding, or the remedy; holds no secret' }),
      }),
    ),
  }),
)

export function registerSignInTrials(app: Api, { deps }: Context): void {
  const { audit, store, trials } = deps
  const schemaOf = (path: string, tags: string[], summary: string) => ({
    tags,
    summary,
    description: 'Ten times a minute for each caller, one at a time, 60 s each.',
    params: paramsSchema(path),
    body: Body,
    response: { 200: Answer, ...errorResponses(400, 401, 403, 404, 413, 415, 503) },
  })
  const auths = '/externalauths/:ref/test'
  const domains = '/authdomains/:ref/test'

  app.post(
    auths,
    { schema: schemaOf(auths, ['External authentications'], 'Try the servers step by step') },
    async (request) => {
      const auth = await store.externalAuths.find(refOf(request))
      if (!auth) throw new ApiError('not_found')
      const object = { object_type: 'externalauth', object: auth.authenticationName }
      return await tried(request, object, (caller, asked) => trials.ofAuth(caller, auth, asked))
    },
  )

  app.post(
    domains,
    { schema: schemaOf(domains, ['Authentication domains'], 'Try the servers and mappings step by step') },
    async (request) => {
      const domain = await store.authDomains.find(refOf(request))
      if (!domain) throw new ApiError('not_found')
      const object = { object_type: 'authdomain', object: domain.domainName }
      return await tried(request, object, (caller, asked) => trials.ofDomain(caller, domain, asked))
    },
  )

  async function tried(
    request: ApiRequest & { body: Static<typeof Body> },
    object: { object_type: string; object: string },
    run: (caller: string, asked: TestRequest) => Promise<TrialStep[]>,
  ): Promise<Static<typeof Answer>> {
    const { user_name: userName, password: text } = request.body
    if (text !== undefined && userName === undefined)
      throw fieldError('invalid_field', 'user_name', 'a password is of a user: name the user')
    const caller = callerOf(request)
    await record(audit, request, 'sign_in.test', {
      ...actor(caller),
      ...object,
      ...(userName !== undefined && { account: userName }),
    })
    const password = text === undefined ? undefined : Secret.of(text)
    try {
      const steps = await run(caller.name, {
        ...(userName !== undefined && { userName }),
        ...(password && { password }),
      })
      return { ok: steps.every(({ ok }) => ok), steps }
    } catch (error) {
      if (error instanceof BusyError) throw new ApiError('busy')
      throw error
    } finally {
      password?.wipe()
    }
  }
}

const refOf = (request: ApiRequest): string => (request.params as { ref: string }).ref
