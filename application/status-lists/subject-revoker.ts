import type { TenantActor } from '../../domain/audit/audit-entry.ts';
import { describeRevocation } from '../../domain/audit/describe-change.ts';
import type { Change } from '../../domain/changes/change.ts';
import { isSharedOffer } from '../../domain/issuance/offer.ts';
import { SESSION_STATUSES } from '../../domain/sessions/session.ts';
import type { IssuedBatch, StatusChange } from '../../domain/status-lists/status-list.ts';
import { needs } from '../needs.ts';
import type { IssuedToSubject, RevocationOrder } from '../ports/issued-subjects.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { listsOfBatches } from './lists-of-batches.ts';
import { StatusAllocator } from './status-allocator.ts';

const REVOKED = 1;
/** Limit of retries after concurrent issuances and revocations of the session. */
const MAX_ATTEMPTS = 10;

/** Revokes the credentials that a session issued to one person, in one transaction. */
export class SubjectRevoker extends needs({ ...TRANSACTION_PORTS, statusAllocator: StatusAllocator }) {
  /**
   * @returns the number of revoked credentials; each is counted by one of several concurrent calls.
   * @throws Error after too many concurrent issuances of the session.
   */
  async revoke(tenant: TenantConfiguration, order: RevocationOrder, by: TenantActor): Promise<number> {
    const { store } = this.ports;
    for (let remainingAttempts = MAX_ATTEMPTS; remainingAttempts > 0; remainingAttempts--) {
      const issued = await store.read(order.tenantId).issued(order.sessionId);
      // Read later than the batches, so that a batch missing here makes the commit fail.
      const batchIds = await store.maintenance.batchesOf(order);
      const batches = issued?.batches ?? [];
      const statuses = await this.#changesOf(
        tenant,
        batches.filter(({ id }) => batchIds.includes(id)),
      );
      const servesOthers = await store.maintenance.servesOthers(order);
      const isDone = batchIds.length === 0 || (await this.#commit(order, issued, batchIds, statuses, by, servesOthers));
      if (!isDone) continue;
      await store.maintenance.fulfilOrder(order);
      return statuses.length;
    }
    throw new Error('the session issues credentials repeatedly');
  }

  /** @returns false if the session issued something meanwhile, or some of the batches were revoked concurrently. */
  async #commit(
    { tenantId, fingerprint, sessionId, credentialConfigurationId }: IssuedToSubject,
    issued: { readonly configurationIds: readonly string[] | undefined; readonly batches: IssuedBatch[] } | undefined,
    batchIds: readonly string[],
    statuses: readonly StatusChange[],
    by: TenantActor,
    servesOthers: boolean,
  ): Promise<boolean> {
    const { store, clock, tenantConfigurations } = this.ports;
    const { configurationIds = [], batches = [] } = issued ?? {};
    const position = configurationIds.indexOf(credentialConfigurationId);
    const isOnlyPerson =
      !servesOthers &&
      batches.filter((batch) => batch.credentialConfigurationId === credentialConfigurationId).every(({ id }) => batchIds.includes(id));
    const session = isOnlyPerson ? (await store.read(tenantId).session(sessionId))?.session : undefined;
    // A session that serves other persons continues for them. A later issuance to this person is rejected by its commit.
    const isBarred = isOnlyPerson && position >= 0 && !isSharedOffer(session?.request);
    const releases = { fingerprint, sessionId, batchIds };
    const auditChange = describeRevocation({ sessionId, credentialConfigurationId }, statuses);
    const change: Change = {
      releases,
      // Expected also without statuses, so that batches issued since the read are not released.
      session: {
        id: sessionId,
        anytime: SESSION_STATUSES,
        issuedExactly: batches.length,
        bars: { mask: isBarred ? 2 ** position : 0, barred: true },
      },
      statuses,
      ...(statuses.length > 0 && { audit: { by, change: auditChange } }),
    };
    const committed = await store.commit(tenantId, change, clock.now());
    if (committed.done) tenantConfigurations.onCommitted(tenantId, change, committed);
    else if (committed.part !== 'session' && committed.part !== 'releases')
      throw new Error(`credentials could not be revoked: ${committed.part}`);
    return committed.done;
  }

  async #changesOf(tenant: TenantConfiguration, batches: readonly IssuedBatch[]): Promise<readonly StatusChange[]> {
    const lists = await listsOfBatches(this.ports.store, tenant, batches);
    return batches.flatMap(({ statusListId, firstCounter, count }): StatusChange[] => {
      const list = lists.get(statusListId ?? '');
      if (list === undefined || firstCounter === null) return [];
      const { tenantId } = tenant;
      const indices = this.ports.statusAllocator.indicesOf(tenantId, list, firstCounter, count);
      return indices.map((index) => ({ listId: list.id, index, status: REVOKED }));
    });
  }
}
