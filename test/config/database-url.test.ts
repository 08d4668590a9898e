import { expect, test } from 'vitest'
import { readDatabaseUrl } from '../../src/config/database-url.ts'
import { placeText } from '../../src/model/database.ts'

const read = (url: string) => readDatabaseUrl(url, (file) => `/data/${file}`)

test('a server is named with its user and its database', () => {
  const place = read('postgres://bastion:p%40ss%2F@db.example.com:5433/sally?sslrootcert=ca.pem')
  expect(place).toMatchObject({
    postgres: {
      hosts: [{ host: 'db.example.com', port: 5433 }],
      user: 'bastion',
      database: 'sally',
      tls: { ca: '/data/ca.pem' },
    },
  })
  if (!('postgres' in place)) throw new Error('no server')
  expect(place.postgres.password?.revealText()).toBe('p@ss/')
  expect(placeText(place)).toBe('postgres://bastion@db.example.com:5433/sally')
  expect(JSON.stringify(place)).not.toContain('p@ss')
})

test('without a mode the certificate is checked, by the authorities that Node trusts', () => {
  expect(read('postgresql://u@[::1]/d')).toEqual({
    postgres: { hosts: [{ host: '::1', port: 5432 }], user: 'u', database: 'd', tls: {} },
  })
  expect(read('postgres://u@h/d?sslmode=verify-full')).toMatchObject({ postgres: { tls: {} } })
  expect(read('postgres://u@h/d?sslmode=disable')).toEqual({
    postgres: { hosts: [{ host: 'h', port: 5432 }], user: 'u', database: 'd' },
  })
})

test('several hosts, and a certificate of this side', () => {
  const place = read('postgres://u@db1,[::1]:5433,192.0.2.1/d?sslcert=me.crt&sslkey=me.key')
  expect(place).toEqual({
    postgres: {
      hosts: [
        { host: 'db1', port: 5432 },
        { host: '::1', port: 5433 },
        { host: '192.0.2.1', port: 5432 },
      ],
      user: 'u',
      database: 'd',
      tls: { client: { certificate: '/data/me.crt', key: '/data/me.key' } },
    },
  })
  expect(placeText(place)).toBe('postgres://u@db1:5432,[::1]:5433,192.0.2.1:5432/d')
})

test.each([
  ['postgres://u:hunter2@a,,b/d', 'several HOST:PORT'],
  ['postgres://u:hunter2@a,/d', 'several HOST:PORT'],
  ['postgres://u:hunter2@a:1,b:x/d', 'several HOST:PORT'],
  ['postgres://u:hunter2@a,b,c,d,e,f,g,h,i/d', 'at most 8 hosts'],
  ['postgres://u:hunter2@/d', 'several HOST:PORT'],
  ['postgres://h/d', 'a user'],
  ['postgres://u:hunter2@h', 'a database'],
  ['postgres://u:hunter2@h/d/e', 'a database'],
  ['postgres://u:hunter2%@h/d', 'two hexadecimal digits'],
  ['postgres://u:hunter2@h/d?sslmode=require', 'sslmode=verify-full'],
  ['postgres://u:hunter2@h/d?sslmode=prefer', 'sslmode=verify-full'],
  ['postgres://u:hunter2@h/d?sslmode=disable&sslmode=verify-full', 'each once'],
  ['postgres://u:hunter2@h/d?sslmode=disable&sslrootcert=x', 'no meaning'],
  ['postgres://u:hunter2@h/d?sslcert=x', 'sslcert and sslkey'],
  ['postgres://u:hunter2@h/d?sslmode=disable&sslcert=x&sslkey=y', 'no meaning'],
  ['postgres://u:hunter2@h/d?options=-csearch_path%3Dx', 'only the parameters'],
  ['postgres://u:hunter2@h/d#x', 'several HOST:PORT'],
])('a URL that is not understood is refused, without its password: %s', (url, words) => {
  expect(() => read(url)).toThrow(words)
  expect(() => read(url)).not.toThrow('hunter2')
})
