export function buildDeb(options: {
  root: string
  layOut: (into: string) => void
  version: string
  cpu: string
  out: string
  epoch: number
}): string
