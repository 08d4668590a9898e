/**
 * Requests of Okta, as it publishes them: "Okta and SCIM Version 2.0"
 * (developer.okta.com/docs/api/openapi/okta-scim/guides/scim-20, in the sections that the names say), and the steps of its
 * "Okta SCIM 2.0 SPEC Test" (developer.okta.com/standards/SCIM/SCIMFiles/Okta-SCIM-20-SPEC-Test.json, exported 2024-05-13), whose
 * names begin with "Required Test". Custom applications send PUT in place of PATCH.
 */
import { filter, type Published } from './entra.ts'
import { GROUP, PATCH, USER } from './setting.ts'

const NAME = 'test.user@okta.local'
const emails = [{ primary: true, value: NAME, type: 'work' }]
const created = {
  schemas: [USER],
  userName: NAME,
  name: { givenName: 'Test', familyName: 'User' },
  emails,
  displayName: 'Test User',
  locale: 'en-US',
  externalId: '00ujl29u0le5T6Aj10h7',
  groups: [],
  password: '1mz050nq',
  active: true,
}
const patch = (...Operations: object[]) => ({ schemas: [PATCH], Operations })
const changed = {
  schemas: [USER],
  id: 'USER',
  userName: NAME,
  name: { givenName: 'Another', middleName: 'Excited', familyName: 'User' },
  emails: [{ ...emails[0], display: NAME }],
  active: true,
  groups: [],
  meta: { resourceType: 'User' },
}

export const OKTA: readonly Published[] = [
  {
    name: 'Determine if the user already exists',
    request: ['GET', `/Users?filter=${filter(`userName eq "${NAME}"`)}&startIndex=1&count=100`],
    status: 200,
    shows: { totalResults: 0, startIndex: 1, itemsPerPage: 0, Resources: [] },
  },
  {
    name: 'Create the user',
    request: ['POST', '/Users', created],
    status: 201,
    shows: {
      userName: NAME,
      name: created.name,
      emails,
      displayName: 'Test User',
      locale: 'en-US',
      active: true,
    },
  },
  {
    name: 'Required Test: Expect failure when recreating user with same values',
    request: ['POST', '/Users', created],
    status: 409,
    shows: { status: '409' },
  },
  {
    name: 'Required Test: Test Users endpoint',
    request: ['GET', '/Users?count=1&startIndex=1'],
    status: 200,
    shows: {
      totalResults: 1,
      itemsPerPage: 1,
      startIndex: 1,
      Resources: [{ userName: NAME, active: true, emails }],
    },
  },
  { name: 'Retrieve a user', request: ['GET', '/Users/USER'], status: 200, shows: { userName: NAME } },
  {
    name: 'Required Test: Test invalid User by ID',
    request: ['GET', '/Users/010101001010101011001010101011'],
    status: 404,
    shows: { schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'] },
  },
  {
    name: 'Required Test: Username Case Sensitivity Check',
    request: ['GET', `/Users?filter=${filter(`userName eq "TEST.uSER@OKTA.LOCAL"`)}`],
    status: 200,
    shows: { totalResults: 1 },
  },
  {
    name: 'Update a specific User (PUT), without the externalId',
    request: ['PUT', '/Users/USER', changed],
    status: 200,
    shows: { name: changed.name, emails: changed.emails, externalId: '00ujl29u0le5T6Aj10h7' },
  },
  {
    name: 'Update a specific User (PATCH): deactivate',
    request: ['PATCH', '/Users/USER', patch({ op: 'replace', value: { active: false } })],
    status: 200,
    shows: { active: false, userName: NAME },
  },
  {
    name: 'Update a specific User (PUT): active again',
    request: ['PUT', '/Users/USER', changed],
    status: 200,
    shows: { active: true },
  },
  {
    name: 'Create a group',
    request: ['POST', '/Groups', { schemas: [GROUP], displayName: 'Test SCIMv2', members: [] }],
    status: 201,
    shows: { displayName: 'Test SCIMv2', members: [], meta: { resourceType: 'Group' } },
  },
  {
    name: 'Retrieve groups',
    request: ['GET', '/Groups?startIndex=1&count=100'],
    status: 200,
    shows: { totalResults: 1 },
  },
  {
    name: 'Update a group name',
    request: [
      'PATCH',
      '/Groups/GROUP',
      patch({ op: 'replace', value: { id: 'GROUP', displayName: 'Test SCIMv20' } }),
    ],
    status: 204,
  },
  {
    name: 'Update group membership',
    request: [
      'PATCH',
      '/Groups/GROUP',
      patch(
        { op: 'remove', path: 'members[value eq "89bb1940-b905-4575-9e7f-6f887cfb368e"]' },
        { op: 'add', path: 'members', value: [{ value: 'USER', display: NAME }] },
      ),
    ],
    status: 204,
  },
  {
    name: 'Retrieve a group',
    request: ['GET', '/Groups/GROUP'],
    status: 200,
    shows: { displayName: 'Test SCIMv20', members: [{ value: 'USER' }] },
  },
  {
    name: 'Replace the membership',
    request: [
      'PATCH',
      '/Groups/GROUP',
      patch({ op: 'replace', path: 'members', value: [{ value: 'USER', display: NAME }] }),
    ],
    status: 204,
  },
  {
    name: 'Update a group (PUT)',
    request: [
      'PUT',
      '/Groups/GROUP',
      { schemas: [GROUP], id: 'GROUP', displayName: 'Test SCIMv20', members: [] },
    ],
    status: 200,
    shows: { members: [] },
  },
  { name: 'Delete a group', request: ['DELETE', '/Groups/GROUP'], status: 204 },
]
