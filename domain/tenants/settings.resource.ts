import { resource } from '../shared/resource.ts';
import { findStatusListProblems } from './settings-findings.ts';
import type { Tenant } from './tenant.ts';

/** Retention of sessions: a part of the tenant that it edits itself. */
export const sessionSettingsResource = resource<Tenant>()({
  kind: 'session-settings',
  repository: 'tenant',
  editablePart: ({ id, sessionConfig }: Tenant) => [id, sessionConfig],
});

/** Shape of future status lists. */
export const statusListSettingsResource = resource<Tenant>()({
  kind: 'status-list-settings',
  repository: 'tenant',
  editablePart: ({ id, statusListConfig }: Tenant) => [id, statusListConfig],
  findings: findStatusListProblems,
});
