/**
 * Requests of Entra ID's provisioning service, as Microsoft publishes them: "SCIM user provisioning to your application",
 * learn.microsoft.com/entra/identity/app-provisioning/use-scim-to-provision-users-and-groups, sections "User operations" and
 * "Group operations", and "Known issues with SCIM" for the older forms. USER and GROUP stand for ids that were given.
 */
import { GROUP, PATCH, USER } from './setting.ts'

export interface Published {
  name: string
  request: [method: string, path: string, body?: object]
  status: number
  /** Parts of the answer. */
  shows?: object
}

const NAME = 'Test_User_ab6490ee-1e48-479e-a20b-2d77186b5dd1'
const patch = (...Operations: object[]) => ({ schemas: [PATCH], Operations })
const work = (value: string) => [{ primary: true, type: 'work', value }]

export const ENTRA: readonly Published[] = [
  {
    name: 'the test of the connection',
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
        schemas: [USER, 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'],
        externalId: '0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef',
        userName: NAME,
        active: true,
        emails: work('Test_User_fd0ea19b@testuser.com'),
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
      emails: work('Test_User_fd0ea19b@testuser.com'),
      meta: { resourceType: 'User' },
    },
  },
  { name: 'Get user', request: ['GET', '/Users/USER'], status: 200, shows: { userName: NAME, active: true } },
  {
    name: 'Get user that is not there',
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
    request: [
      'PATCH',
      '/Users/USER',
      patch({ op: 'Replace', path: 'userName', value: '5b50642d@testuser.com' }),
    ],
    status: 200,
    shows: { userName: '5b50642d@testuser.com' },
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
          path: 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department',
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
    request: ['GET', `/Users?filter=${filter('userName eq "5b50642d@testuser.com"')}`],
    status: 200,
    shows: { totalResults: 1, Resources: [{ active: false }] },
  },
  {
    name: 'values without a path whose names are paths (before aadOptscim062020)',
    request: [
      'PATCH',
      '/Users/USER?aadOptscim062020',
      patch({ op: 'Add', value: { active: 'True', 'name.givenName': 'Larry' } }),
    ],
    status: 200,
    shows: { active: true, name: { givenName: 'Larry' } },
  },
  {
    name: 'values as lists (before aadOptscim062020)',
    request: [
      'PATCH',
      '/Users/USER',
      patch({ op: 'Replace', path: 'displayName', value: [{ $ref: null, value: 'Larry' }] }),
    ],
    status: 200,
    shows: { displayName: 'Larry' },
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
      patch({ op: 'Replace', path: 'displayName', value: 'updatedDisplayName' }),
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
