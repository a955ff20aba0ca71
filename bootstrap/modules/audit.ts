import { auditRoutes } from '../../adapters/http/audit/audit.routes.ts';
import { ListAuditEntries } from '../../application/audit/audit-entries.ts';
import type { Feature } from './feature.ts';

/** Who changed what. */
export const audit: Feature = { classes: [ListAuditEntries], administered: [auditRoutes] };
