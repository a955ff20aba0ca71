import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import type { AllocatedEntries, StatusAllocator } from '../status-lists/status-allocator.ts';
import type { CredentialFactory } from './credential-factory.ts';
import type { TenantView } from './tenant-views.ts';

type Ports = {
  readonly credentialFactory: CredentialFactory;
  readonly statusAllocator: StatusAllocator;
  readonly clock: Clock;
  readonly random: Random;
};

export type MadeBatch = {
  /** One per key, or a single one where none is bound. */
  readonly credentials: readonly string[];
  /** What goes on record; its id is the `notification_id`. */
  readonly batch: IssuedBatch;
};

/** Makes the credentials of one request: the same claims, a key and a status entry of its own each. */
export class BatchMaker {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** One status entry per key; undefined for a configuration without status. */
  async allocate(
    view: TenantView,
    configuration: CredentialConfiguration,
    keys: number,
  ): Promise<AllocatedEntries | undefined> {
    if (!configuration.statusManagement) return undefined;
    return this.#ports.statusAllocator.allocate(view, configuration, Math.max(1, keys));
  }

  async make(
    view: TenantView,
    configuration: CredentialConfiguration,
    contents: {
      readonly session: { readonly id: SessionId };
      readonly claims: JsonObject;
      readonly holderKeys: readonly PublicJwk[];
      readonly entries: AllocatedEntries | undefined;
    },
  ): Promise<MadeBatch> {
    const { credentialFactory } = this.#ports;
    const { session, claims, holderKeys, entries } = contents;
    const count = Math.max(1, holderKeys.length);
    const credentials: string[] = [];
    for (let i = 0; i < count; i++) {
      const idx = entries?.indices[i];
      credentials.push(
        await credentialFactory.make(view, configuration, claims, {
          ...(holderKeys[i] === undefined ? {} : { holderKey: holderKeys[i] }),
          ...(entries === undefined || idx === undefined ? {} : { status: { idx, uri: entries.uri } }),
        }),
      );
    }
    return { credentials, batch: this.recordOf(session.id, configuration.id, count, entries) };
  }

  /** What goes on record of credentials that were handed out, also of those that a backend made itself. */
  recordOf(
    sessionId: SessionId,
    credentialConfigurationId: string,
    count: number,
    entries?: AllocatedEntries,
  ): IssuedBatch {
    const { clock, random } = this.#ports;
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
