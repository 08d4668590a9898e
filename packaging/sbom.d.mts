export function sbom(root: string, product: { name: string; version: string }, epoch: number): string
