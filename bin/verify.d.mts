export interface VerifierKey {
  raw: Buffer
  id: string
}
export interface VerifierFault {
  code: string
  message: string
  offset?: number
  row?: number
}
export interface VerifierEvidence {
  closed?: { size: number; digest: string }
  noted?: { size: number; digest: string; milliseconds: number }
  lost?: string
  ended?: boolean
  deleted?: string
}
export function keyOf(raw: Uint8Array): VerifierKey
export function verifyRecording(
  path: string,
  options: { keys: VerifierKey[]; session?: string; expected?: VerifierEvidence },
): {
  ok: boolean
  session?: string
  begin?: number
  state?: string
  size?: number
  digest?: string
  fault?: VerifierFault
}
export function verifyAudit(
  path: string,
  options: { keys: VerifierKey[]; heads?: { sequence: number; hash: string }[] },
): {
  ok: boolean
  rows: number
  removed?: number
  head: string
  sessions: Map<string, VerifierEvidence>
  since?: number
  fault?: VerifierFault
}
