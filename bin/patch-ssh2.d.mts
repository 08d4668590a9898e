export interface Hunk {
  /** Index of the first line in the published file. */
  at: number
  before: string[]
  after: string[]
}
export const PATCH: string
export function ssh2Folder(): string
export function parsePatch(text: string): { path: string; hunks: Hunk[] }[]
export function applyHunks(text: string, hunks: readonly Hunk[]): string | undefined
export function patchSsh2(folder: string): boolean
