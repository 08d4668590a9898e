/**
 * How often a test with chance in it repeats itself. `SALLYPORT_TEST_LONG=1 npm test -- FILE` is the long run, for a
 * change of what it tests.
 */
export const times = (usual: number, long: number): number =>
  process.env['SALLYPORT_TEST_LONG'] === undefined ? usual : long
