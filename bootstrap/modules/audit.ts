import { ContainerModule } from 'inversify';
import { AuditRoutes } from '../../adapters/http/audit/audit.routes.ts';
import { ReadAuditLog } from '../../application/audit/read-audit-log.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import { wire } from '../wire.ts';

/** Who changed what. */
export const audit = new ContainerModule((options) => {
  wire(options, ReadAuditLog, { store: Store });
  wire(options, AuditRoutes, { readAuditLog: ReadAuditLog, settings: ServiceSettings });
});
