/** Every client program that the tests run against a server, ours or a real one. */
export * from './home.ts'
export * from './openssh.ts'
export * from './putty.ts'
export * from './python.ts'
