export function isBuilt(root: string): boolean
export function build(root: string, options: { checks: boolean }): void
