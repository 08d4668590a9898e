/** The shape of a cage's report, as it comes from a process that may be hostile. */
import { Type } from 'typebox'

export const CageReportSchema = Type.Object(
  {
    uid: Type.Integer(),
    gid: Type.Integer(),
    capabilities: Type.Boolean(),
    noNewPrivileges: Type.Boolean(),
    landlock: Type.Optional(Type.Integer({ minimum: 0 })),
    seccomp: Type.Boolean(),
    dumpable: Type.Boolean(),
    permission: Type.Boolean(),
    missing: Type.Array(Type.String({ maxLength: 1_000 }), { maxItems: 32 }),
  },
  { additionalProperties: false },
)
