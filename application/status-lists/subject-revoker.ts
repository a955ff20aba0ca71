import type { TenantActor } from '../../domain/audit/audit-entry.ts';
import { describeRevocation } from '../../domain/audit/describe-change.ts';
import type { Change } from '../../domain/changes/change.ts';
import { isSharedOffer } from '../../domain/issuance/offer.ts';
import { SESSION_STATUSES } from '../../domain/sessions/session.ts';
import type { IssuedBatch, StatusChange } from '../../domain/status-lists/status-list.ts';
import { needs } from '../needs.ts';
import type { IssuedToSubject, RevocationOrder } from '../ports/issued-subjects.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { WORLD } from '../transactions/known.ts';
import { listsOfBatches } from './lists-of-batches.ts';
import { StatusAllocator } from './status-allocator.ts';

const REVOKED = 1;
/** Issuances of one session, and others who revoke the same, that may come in between. */
const ATTEMPTS = 10;

/** Revokes what a session issued to one person, in one transaction. */
export class SubjectRevoker extends needs({ ...WORLD, statusAllocator: StatusAllocator }) {
  /**
   * @returns how many credentials were revoked, each once however many revoke at the same moment.
   * @throws Error when issuances of the session come in between all the time.
   */
  async revoke(configured: TenantConfiguration, order: RevocationOrder, by: TenantActor): Promise<number> {
    const { store } = this.ports;
    for (let left = ATTEMPTS; left > 0; left--) {
      const read = await store.read(order.tenantId).issued(order.sessionId);
      // Later, so that what is missing here makes the session refuse the change.
      const own = await store.maintenance.batchesOf(order);
      const batches = read?.batches ?? [];
      const statuses = await this.#changesOf(
        configured,
        batches.filter(({ id }) => own.includes(id)),
      );
      const servesOthers = await store.maintenance.servesOthers(order);
      const isDone = own.length === 0 || (await this.#commit(order, read, own, statuses, by, servesOthers));
      if (!isDone) continue;
      await store.maintenance.fulfilOrder(order);
      return statuses.length;
    }
    throw new Error('the session issues credentials all the time');
  }

  /** @returns false where the session issued something meanwhile, or somebody else has revoked some of these. */
  async #commit(
    { tenantId, fingerprint, sessionId, credentialConfigurationId }: IssuedToSubject,
    read: { readonly configurationIds: readonly string[] | undefined; readonly batches: IssuedBatch[] } | undefined,
    own: readonly string[],
    statuses: readonly StatusChange[],
    by: TenantActor,
    servesOthers: boolean,
  ): Promise<boolean> {
    const { store, clock, tenantConfigurations } = this.ports;
    const { configurationIds = [], batches = [] } = read ?? {};
    const place = configurationIds.indexOf(credentialConfigurationId);
    const isOnlyTheirs =
      !servesOthers &&
      batches.filter((batch) => batch.credentialConfigurationId === credentialConfigurationId).every(({ id }) => own.includes(id));
    const session = isOnlyTheirs ? (await store.read(tenantId).session(sessionId))?.session : undefined;
    // A session that serves other persons goes on for them. What it would issue to this person is refused when it is recorded.
    const isBarred = isOnlyTheirs && place >= 0 && !isSharedOffer(session?.request);
    const releases = { fingerprint, sessionId, batchIds: own };
    const told = describeRevocation({ sessionId, credentialConfigurationId }, statuses);
    const change: Change = {
      releases,
      // Also where nothing is to be revoked: what was issued since the batches were read is not let go.
      session: {
        id: sessionId,
        anytime: SESSION_STATUSES,
        issuedExactly: batches.length,
        bars: { mask: isBarred ? 2 ** place : 0, barred: true },
      },
      statuses,
      ...(statuses.length > 0 && { audit: { by, change: told } }),
    };
    const committed = await store.commit(tenantId, change, clock.now());
    if (committed.done) tenantConfigurations.committed(tenantId, change, committed);
    else if (committed.part !== 'session' && committed.part !== 'releases')
      throw new Error(`credentials could not be revoked: ${committed.part}`);
    return committed.done;
  }

  async #changesOf(configured: TenantConfiguration, batches: readonly IssuedBatch[]): Promise<readonly StatusChange[]> {
    const lists = await listsOfBatches(this.ports.store, configured, batches);
    return batches.flatMap(({ statusListId, firstCounter, count }): StatusChange[] => {
      const list = lists.get(statusListId ?? '');
      if (list === undefined || firstCounter === null) return [];
      const { tenantId } = configured;
      const indices = this.ports.statusAllocator.indicesOf(tenantId, list, firstCounter, count);
      return indices.map((index) => ({ listId: list.id, index, status: REVOKED }));
    });
  }
}
