import { resource } from '../shared/resource.ts';
import { findStatusListProblems } from './settings-findings.ts';
import type { Tenant } from './tenant.ts';

/** How long a tenant keeps sessions: a part of the tenant that it edits itself. */
export const sessionSettingsResource = resource<Tenant>()({
  kind: 'session-settings',
  repository: 'tenant',
  edited: ({ id, sessionConfig }: Tenant) => [id, sessionConfig],
});

/** The shape of the status lists that it gets from now on. */
export const statusListSettingsResource = resource<Tenant>()({
  kind: 'status-list-settings',
  repository: 'tenant',
  edited: ({ id, statusListConfig }: Tenant) => [id, statusListConfig],
  findings: findStatusListProblems,
});
