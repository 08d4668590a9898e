/**
 * Requests of Entra ID's provisioning service. Those with the name of a section are as Microsoft publishes them, in "Tutorial:
 * Develop and plan provisioning for a SCIM endpoint in Microsoft Entra ID"
 * (learn.microsoft.com/entra/identity/app-provisioning/use-scim-to-provision-users-and-groups, dated 2025-03-04), sections "User
 * Operations", "Group Operations" and "Schema discovery"; those of the flag aadOptscim062020 are in "Known issues and resolutions
 * with SCIM 2.0 protocol compliance" (…/application-provisioning-config-problem-scim-compatibility, dated 2025-04-15). Names in
 * lower case are of requests that the pages describe in words only. USER and GROUP stand for ids that were given.
 */
import { GROUP, PATCH, USER } from './setting.ts'

export interface Published {
  name: string
  request: [method: string, path: string, body?: object]
  status: number
  /** Parts of the answer. */
  shows?: object
}

const NAME = 'Test_User_00aa00aa-bb11-cc22-dd33-44ee44ee44ee'
const EMAIL = 'Test_User_11bb11bb-cc22-dd33-ee44-55ff55ff55ff@testuser.com'
const NEW_NAME = '5b50642d-79fc-4410-9e90-4c077cdd1a59@testuser.com'
const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const patch = (...Operations: object[]) => ({ schemas: [PATCH], Operations })
const work = (value: string) => [{ primary: true, type: 'work', value }]

export const ENTRA: readonly Published[] = [
  {
    name: 'the test of the connection, for a user that is not there',
    request: ['GET', `/Users?filter=${filter('userName eq "0b2a3e0d"')}`],
    status: 200,
    shows: { totalResults: 0, Resources: [] },
  },
  {
    name: 'Create user',
    request: [
      'POST',
      '/Users',
      {
        schemas: [USER, ENTERPRISE],
        externalId: '0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef',
        userName: NAME,
        active: true,
        emails: work(EMAIL),
        meta: { resourceType: 'User' },
        name: { formatted: 'givenName familyName', familyName: 'familyName', givenName: 'givenName' },
        roles: [],
      },
    ],
    status: 201,
    shows: {
      schemas: [USER],
      externalId: '0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef',
      userName: NAME,
      active: true,
      name: { formatted: 'givenName familyName' },
      emails: work(EMAIL),
      meta: { resourceType: 'User' },
    },
  },
  { name: 'Get user', request: ['GET', '/Users/USER'], status: 200, shows: { userName: NAME, active: true } },
  {
    name: 'Get user (not found)',
    request: ['GET', '/Users/5171a35d82074e068ce2'],
    status: 404,
    shows: { status: '404' },
  },
  {
    name: 'Get user by query',
    request: ['GET', `/Users?filter=${filter(`userName eq "${NAME}"`)}`],
    status: 200,
    shows: { totalResults: 1, startIndex: 1, Resources: [{ userName: NAME }] },
  },
  {
    name: 'Get user by query, zero results',
    request: ['GET', `/Users?filter=${filter('userName eq "non-existent user"')}`],
    status: 200,
    shows: { totalResults: 0, Resources: [] },
  },
  {
    name: 'Update user, multi-valued properties',
    request: [
      'PATCH',
      '/Users/USER',
      patch(
        { op: 'Replace', path: 'emails[type eq "work"].value', value: 'updatedEmail@microsoft.com' },
        { op: 'Replace', path: 'name.familyName', value: 'updatedFamilyName' },
      ),
    ],
    status: 200,
    shows: {
      name: { familyName: 'updatedFamilyName', givenName: 'givenName' },
      emails: work('updatedEmail@microsoft.com'),
    },
  },
  {
    name: 'Update user, single-valued properties',
    request: ['PATCH', '/Users/USER', patch({ op: 'Replace', path: 'userName', value: NEW_NAME })],
    status: 200,
    shows: { userName: NEW_NAME },
  },
  {
    name: 'properties of the default mapping that are not kept',
    request: [
      'PATCH',
      '/Users/USER',
      patch(
        { op: 'Add', path: 'title', value: 'Engineer' },
        { op: 'Add', path: 'phoneNumbers[type eq "mobile"].value', value: '1' },
        { op: 'Add', path: 'addresses[type eq "work"].country', value: 'ML' },
        {
          op: 'Replace',
          path: `${ENTERPRISE}:department`,
          value: 'IT',
        },
        { op: 'Add', path: 'displayName', value: 'Dean Ruiz' },
      ),
    ],
    status: 200,
    shows: { displayName: 'Dean Ruiz' },
  },
  {
    name: 'Disable user',
    request: ['PATCH', '/Users/USER', patch({ op: 'Replace', path: 'active', value: false })],
    status: 200,
    shows: { active: false },
  },
  {
    name: 'a user by query that is disabled',
    request: ['GET', `/Users?filter=${filter(`userName eq "${NEW_NAME}"`)}`],
    status: 200,
    shows: { totalResults: 1, Resources: [{ active: false }] },
  },
  {
    name: 'Requests made to disable users, without feature flag',
    request: ['PATCH', '/Users/USER', patch({ op: 'Replace', path: 'active', value: 'False' })],
    status: 200,
    shows: { active: false },
  },
  {
    name: 'Requests to replace multiple attributes, with feature flag',
    request: [
      'PATCH',
      '/Users/USER',
      patch(
        {
          op: 'replace',
          path: 'emails[type eq "work"].value',
          value: 'TestMhvaes@test.microsoft.com',
        },
        {
          op: 'replace',
          value: {
            displayName: 'Bjfe',
            'name.givenName': 'Kkom',
            'name.familyName': 'Unua',
            [`${ENTERPRISE}:employeeNumber`]: 'Aklq',
          },
        },
      ),
    ],
    status: 200,
    shows: {
      displayName: 'Bjfe',
      name: { givenName: 'Kkom', familyName: 'Unua' },
      emails: work('TestMhvaes@test.microsoft.com'),
    },
  },
  {
    name: 'a user that is restored, with the flag in the URL and a value that is a list of one',
    request: [
      'PATCH',
      '/Users/USER?aadOptscim062020',
      patch(
        { op: 'Replace', path: 'active', value: 'True' },
        { op: 'Replace', path: 'displayName', value: [{ $ref: null, value: 'Larry' }] },
      ),
    ],
    status: 200,
    shows: { active: true, displayName: 'Larry' },
  },
  {
    name: 'Create group',
    request: [
      'POST',
      '/Groups',
      {
        schemas: [GROUP, 'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group'],
        externalId: '8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159',
        displayName: 'displayName',
        meta: { resourceType: 'Group' },
      },
    ],
    status: 201,
    shows: { externalId: '8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159', displayName: 'displayName', members: [] },
  },
  {
    name: 'Get group',
    request: ['GET', '/Groups/GROUP?excludedAttributes=members'],
    status: 200,
    shows: { displayName: 'displayName' },
  },
  {
    name: 'Get group by displayName',
    request: ['GET', `/Groups?excludedAttributes=members&filter=${filter('displayName eq "displayName"')}`],
    status: 200,
    shows: { totalResults: 1, Resources: [{ displayName: 'displayName' }] },
  },
  {
    name: 'Update group, non-member attributes',
    request: [
      'PATCH',
      '/Groups/GROUP',
      patch({
        op: 'Replace',
        path: 'displayName',
        value: '1879db59-3bdf-4490-ad68-ab880a269474updatedDisplayName',
      }),
    ],
    status: 204,
  },
  {
    name: 'Update group, add members',
    request: [
      'PATCH',
      '/Groups/GROUP',
      patch({ op: 'Add', path: 'members', value: [{ $ref: null, value: 'USER' }] }),
    ],
    status: 204,
  },
  {
    name: 'whether a user is a member',
    request: [
      'GET',
      `/Groups?excludedAttributes=members&filter=${filter('id eq "GROUP" and members eq "USER"')}`,
    ],
    status: 200,
    shows: { totalResults: 1 },
  },
  {
    name: 'Update group, remove members',
    request: [
      'PATCH',
      '/Groups/GROUP',
      patch({ op: 'Remove', path: 'members', value: [{ $ref: null, value: 'USER' }] }),
    ],
    status: 204,
  },
  {
    name: 'whether a user is a member no more',
    request: ['GET', `/Groups?filter=${filter('id eq "GROUP" and members eq "USER"')}`],
    status: 200,
    shows: { totalResults: 0 },
  },
  { name: 'Delete group', request: ['DELETE', '/Groups/GROUP'], status: 204 },
  { name: 'Delete user', request: ['DELETE', '/Users/USER'], status: 204 },
  { name: 'Discover schema', request: ['GET', '/Schemas'], status: 200, shows: { totalResults: 2 } },
]

export function filter(text: string): string {
  return encodeURIComponent(text)
}
