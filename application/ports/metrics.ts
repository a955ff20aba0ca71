import type { SessionKind, SessionStatus } from '../../domain/sessions/session.ts';
import type { SessionFailureCode } from '../../domain/shared/session-failure.ts';
import type { WebhookFault } from '../../domain/shared/webhook-fault.ts';
import type { RemoteFault } from './remote.ts';

/** Measurement of an answered request. `route` is the pattern of the route, never the address. */
export type RequestMeasure = { readonly method: string; readonly route: string; readonly status: number; readonly seconds: number };

export type SessionMeasure = {
  readonly tenantId: string;
  /** Undefined for a session that this process has not seen before. */
  readonly kind: SessionKind | undefined;
  readonly outcome: SessionStatus | 'opened';
  readonly code?: SessionFailureCode | undefined;
};

/** An expiry date that wallets depend on. */
export type ExpiryDate = {
  readonly kind: 'certificate' | 'authority' | 'trust-list' | 'registration';
  readonly tenantId: string;
  readonly id: string;
  readonly endsAt: Date;
};

export type ListFill = { readonly lists: number; readonly used: number; readonly capacity: number };

/** Gauges that are read at each scrape; each is a few numbers in memory. */
export const GAUGES = {
  database_connections: ['state', 'PostgreSQL connections: in use, idle, and requests waiting for one'],
  database_connections_limit: [undefined, 'DATABASE_POOL of this process'],
  http_connections: [undefined, 'Open connections of callers'],
  http_connections_limit: [undefined, 'Limit by MAX_CONNECTIONS and open files'],
  open_session_bytes_highest: [undefined, 'Bytes of open sessions of the tenant with most of them, among those served in the last minute'],
  open_session_bytes_limit: [undefined, 'QUOTA_SESSION_BYTES'],
  requests_waiting: [undefined, 'Requests waiting for a slot (REQUESTS_AT_ONCE)'],
  cache_bytes: ['cache', 'Approximate bytes in caches'],
  heap_limit_bytes: [undefined, 'Heap limit of this process'],
  draining: [undefined, '1 while the process drains, else 0'],
} as const satisfies Record<string, readonly [label: string | undefined, help: string]>;
export type Watched = keyof typeof GAUGES;

/**
 * Metrics for operators. Code that measures asks for it as an optional port, since metrics may be switched off. Label values come from
 * closed lists: nothing that callers choose, and no personal data.
 */
export abstract class Metrics {
  abstract request(request: RequestMeasure): void;
  abstract session(session: SessionMeasure): void;
  /** A session was rejected because the open sessions of its tenant reached their quota. */
  abstract sessionRefused(tenantId: string): void;
  abstract webhook(outcome: WebhookFault | 'delivered' | 'failed', seconds: number): void;
  abstract signatures(provider: string, outcome: 'signed' | 'failed', count: number, seconds: number): void;
  abstract outgoing(outcome: RemoteFault | 'answered' | 'failed', seconds: number): void;
  abstract job(name: string, outcome: 'done' | 'failed', seconds: number): void;
  /** A component of the health answer. */
  abstract health(part: string, isUp: boolean): void;
  /** Replaces all reported expiry dates. They are dropped if no update follows for a while. */
  abstract endings(dates: readonly ExpiryDate[]): void;
  abstract listFill(fill: ListFill): void;
  /** @param waiting removed tenants with remaining rows. @param removedRows rows of them that were removed since the last call. */
  abstract tenantRemovals(waiting: number, removedRows: number): void;
  /** @param read returns values by label value; the key is the empty string for a gauge without label. */
  abstract observeGauge(gauge: Watched, read: () => Readonly<Record<string, number>>): void;
}
