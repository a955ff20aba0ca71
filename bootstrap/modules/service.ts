import { ContainerModule, type ServiceIdentifier } from 'inversify';
import { ServiceRoutes } from '../../adapters/http/service/service.routes.ts';
import { SessionRoutes } from '../../adapters/http/sessions/session.routes.ts';
import { CheckHealth } from '../../application/health/check-health.ts';
import { Clock } from '../../application/ports/clock.ts';
import { EventBus } from '../../application/ports/event-bus.ts';
import { Log } from '../../application/ports/log.ts';
import { Probe } from '../../application/ports/probe.ts';
import { ServiceSettings } from '../../application/ports/settings.ts';
import { Store } from '../../application/ports/store.ts';
import { DeleteSession } from '../../application/sessions/delete-session.ts';
import { GetSession } from '../../application/sessions/get-session.ts';
import { ListSessions } from '../../application/sessions/list-sessions.ts';
import { SessionWatcher } from '../../application/sessions/session-watcher.ts';
import { WatchSession } from '../../application/sessions/watch-session.ts';
import { TenantConfigurations } from '../../application/tenant-configuration.ts';
import { wire } from '../wire.ts';

/** Sessions as administrators see them, and the service itself. */
export const service = new ContainerModule((options) => {
  const world = { store: Store, tenantConfigurations: TenantConfigurations, clock: Clock };
  wire(options, GetSession, world);
  wire(options, ListSessions, { store: Store, clock: Clock });
  wire(options, DeleteSession, world);
  wire(options, SessionWatcher, { store: Store, eventBus: EventBus, log: Log });
  wire(options, WatchSession, {
    store: Store,
    clock: Clock,
    sessionWatcher: SessionWatcher,
    tenantConfigurations: TenantConfigurations,
    log: Log,
  });
  wire(options, SessionRoutes, {
    listSessions: ListSessions,
    getSession: GetSession,
    deleteSession: DeleteSession,
    watchSession: WatchSession,
    settings: ServiceSettings,
  });

  options
    .bind(CheckHealth)
    .toResolvedValue(
      (log: Log, probes: Probe[]) => new CheckHealth({ log, probes }),
      [
        Log as ServiceIdentifier<Log>,
        { isMultiple: true, serviceIdentifier: Probe as ServiceIdentifier<Probe> },
      ],
    )
    .inSingletonScope();
  wire(options, ServiceRoutes, { checkHealth: CheckHealth, settings: ServiceSettings });
});
