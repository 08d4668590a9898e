export function builtProgram(root: string): string | undefined
export function build(root: string, options: { checks: boolean }): void
