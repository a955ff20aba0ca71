import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Random } from '../ports/random.ts';
import { type AllocatedEntries, StatusAllocator } from '../status-lists/status-allocator.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { CredentialFactory } from './credential-factory.ts';

export type MadeBatch = {
  /** One per key, or a single one where none is bound. */
  readonly credentials: readonly string[];
  /** What goes on record; its id is the `notification_id`. */
  readonly batch: IssuedBatch;
  /** Taken for it; undefined without statuses, and for what a backend made itself. */
  readonly entries?: AllocatedEntries | undefined;
};

/** Makes the credentials of one request: the same claims, a key and a status entry of its own each. */
export class BatchMaker extends needs({
  credentialFactory: CredentialFactory,
  statusAllocator: StatusAllocator,
  clock: Clock,
  random: Random,
}) {
  /**
   * One credential per key, each with a status entry where the configuration has statuses. A batch that does not get on
   * record has to be discarded.
   */
  async make(
    configured: TenantConfiguration,
    configuration: CredentialConfiguration,
    contents: {
      readonly session: { readonly id: SessionId };
      readonly claims: JsonObject;
      readonly holderKeys: readonly PublicJwk[];
    },
  ): Promise<MadeBatch> {
    const { credentialFactory, statusAllocator } = this.ports;
    const { session, claims, holderKeys } = contents;
    const count = Math.max(1, holderKeys.length);
    const entries = configuration.statusManagement
      ? await statusAllocator.allocate(configured, configuration, count)
      : undefined;
    try {
      const instances = Array.from({ length: count }, (_, i) => {
        const idx = entries?.indices[i];
        const status = entries === undefined || idx === undefined ? undefined : { idx, uri: entries.uri };
        return defined({ holderKey: holderKeys[i], status });
      });
      const credentials = await credentialFactory.make(configured, configuration, claims, instances);
      return { credentials, batch: this.recordOf(session.id, configuration.id, count, entries), entries };
    } catch (error) {
      this.discard(configured, { entries });
      throw error;
    }
  }

  /**
   * For a batch that was refused for sure: its status entries are free for others. Its credentials must not leave the
   * process.
   */
  discard(configured: TenantConfiguration, { entries }: Pick<MadeBatch, 'entries'>): void {
    if (entries !== undefined) this.ports.statusAllocator.giveBack(configured.tenantId, entries);
  }

  /** What goes on record of credentials that were handed out, also of those that a backend made itself. */
  recordOf(
    sessionId: SessionId,
    credentialConfigurationId: string,
    count: number,
    entries?: AllocatedEntries,
  ): IssuedBatch {
    const { clock, random } = this.ports;
    return {
      id: random.token(),
      sessionId,
      credentialConfigurationId,
      count,
      statusListId: entries?.listId ?? null,
      firstCounter: entries?.firstCounter ?? null,
      issuedAt: clock.now(),
    };
  }
}
