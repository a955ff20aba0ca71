import { sessionRoutes } from '../../adapters/http/sessions/session.routes.ts';
import { Clock } from '../../application/ports/clock.ts';
import { EventBus } from '../../application/ports/event-bus.ts';
import { Log } from '../../application/ports/log.ts';
import { Store } from '../../application/ports/store.ts';
import { DeleteSession } from '../../application/sessions/delete-session.ts';
import { GetSession } from '../../application/sessions/get-session.ts';
import { ListSessions } from '../../application/sessions/list-sessions.ts';
import { SessionNotes } from '../../application/sessions/session-notes.ts';
import { SessionWatcher } from '../../application/sessions/session-watcher.ts';
import { WatchSession } from '../../application/sessions/watch-session.ts';
import { TenantConfigurations } from '../../application/tenant-configuration.ts';
import { type Feature, given } from './feature.ts';

const wallet = { store: Store, tenantConfigurations: TenantConfigurations, clock: Clock };

/** Sessions as administrators see them. */
export const sessions: Feature = {
  classes: [
    ListSessions,
    given(GetSession, wallet),
    given(DeleteSession, wallet),
    given(SessionWatcher, { store: Store, eventBus: EventBus, log: Log }),
    given(WatchSession, { ...wallet, sessionWatcher: SessionWatcher, log: Log }),
    given(SessionNotes, wallet),
  ],
  administered: [sessionRoutes],
};
