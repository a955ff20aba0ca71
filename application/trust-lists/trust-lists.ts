import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import { assertListable } from '../../domain/trust-lists/entity-certificates.ts';
import { assertDistinct } from '../../domain/trust-lists/entity-identity.ts';
import {
  configurationOf,
  type TrustListConfiguration,
  type TrustListReplacement,
  type TrustListUpdate,
} from '../../domain/trust-lists/list-configuration.ts';
import type { PublishedList } from '../../domain/trust-lists/published-list.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { Store } from '../ports/store.ts';
import { type Ground, TrustListPublisher } from './trust-list-publisher.ts';

const PUBLISHER = { trustListPublisher: TrustListPublisher };

/** The trust lists of the caller's tenant, in order of their ids. */
export class ListTrustLists extends needs({ store: Store }) {
  async execute({ tenantId }: TenantCaller): Promise<readonly PublishedList[]> {
    return this.ports.store.forTenant(tenantId, ({ trustLists }) => trustLists.list());
  }
}

/** One trust list of the caller's tenant. */
export class GetTrustList extends needs({ store: Store }) {
  /** @throws Failure `not_found`. */
  async execute({ tenantId }: TenantCaller, id: string): Promise<PublishedList> {
    return this.ports.store.forTenant(tenantId, ({ trustLists }) => trustLists.get(id));
  }
}

/** Publishes a new trust list. */
export class CreateTrustList extends needs({ ...PUBLISHER, random: Random }) {
  /** @throws Failure `conflict` when the id is taken, `invalid_input` for what cannot be listed or signed. */
  async execute(caller: TenantCaller, wanted: TrustListReplacement): Promise<PublishedList> {
    const { trustListPublisher, random } = this.ports;
    const id = wanted.id ?? random.token();
    return release(trustListPublisher, caller, id, ({ known }) => {
      if (known !== undefined) {
        throw new Failure('conflict', 'a trust list of this id exists already; PUT replaces it');
      }
      return configurationOf(id, wanted);
    });
  }
}

/** Replaces what a trust list is made of. */
export class ReplaceTrustList extends needs(PUBLISHER) {
  /** @throws Failure `not_found`, or `invalid_input` for what cannot be listed or signed. */
  async execute(caller: TenantCaller, id: string, wanted: TrustListReplacement): Promise<PublishedList> {
    assertSameId(id, wanted.id);
    return release(this.ports.trustListPublisher, caller, id, (ground) => {
      knownIn(ground);
      return configurationOf(id, wanted);
    });
  }
}

/** Changes members of a trust list; null resets one to its default. Without any it is signed anew. */
export class UpdateTrustList extends needs(PUBLISHER) {
  /** @throws Failure `not_found`, or `invalid_input` when the result cannot be listed or signed. */
  async execute(caller: TenantCaller, id: string, changes: TrustListUpdate): Promise<PublishedList> {
    assertSameId(id, changes.id);
    return release(this.ports.trustListPublisher, caller, id, (ground) => merge(knownIn(ground), changes));
  }
}

/** Takes a trust list out of publication. A later list of its id goes on from its last number. */
export class DeleteTrustList extends needs(PUBLISHER) {
  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: string): Promise<void> {
    await this.ports.trustListPublisher.remove(caller.tenantId, id, caller);
  }
}

function assertSameId(id: string, wanted: string | undefined): void {
  if (wanted !== undefined && wanted !== id) throw invalidInput('id', 'An id cannot be changed.');
}

/** @throws Failure `not_found`. */
function knownIn({ known }: Ground): PublishedList {
  if (known === undefined) throw new Failure('not_found', 'there is no such trust list');
  return known;
}

async function release(
  publisher: TrustListPublisher,
  caller: TenantCaller,
  id: string,
  next: (ground: Ground) => TrustListConfiguration,
): Promise<PublishedList> {
  const list = await publisher.publish(caller.tenantId, id, caller, (ground) => {
    const wanted = next(ground);
    assertListable(wanted.entities, ground.chains, ground.now);
    assertDistinct(wanted.entities, ground.chains);
    return wanted;
  });
  if (list === undefined) throw new Error('A write always makes a release.');
  return list;
}

/** Members are replaced whole. */
function merge(known: PublishedList, changes: TrustListUpdate): TrustListConfiguration {
  const { description = known.description, keyChainId = known.keyChainId } = changes;
  const { entities = known.entities, data = known.data } = changes;
  return configurationOf(known.id, { description, keyChainId, entities, data });
}
